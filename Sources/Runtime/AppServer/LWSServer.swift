import AppProtocol
import AppSessions
import Bytes
import CWebSockets
import Glibc
import Logging
import Platform
import Synchronization

/// libwebsockets 4.1 on a thread of its own: one context, one port, HTTP/1.1 and (if asked for) the sub-protocol
/// `trunkline.v1`.
///
/// The only file family that calls lws. Rules it keeps: callbacks capture nothing and find this object through the context's
/// user
/// pointer; nothing is asked of the per-session `user` memory (without a sub-protocol it is null); sockets are found by
/// `wsi`;
/// a WebSocket is closed only from its WRITEABLE callback; `lws_cancel_service` is the one call from other threads.
///
/// Unchecked: every field but `shared` and the constants belongs to the service thread (before it starts, to the starter).
final class LWSServer: Transport, @unchecked Sendable {
  struct Settings: Sendable {
    var name: String
    var address: SocketAddress
    var setting: String
    var tls: TLSFiles?
    /// The path on which `trunkline.v1` is served; nil: plain HTTP only.
    var webSocketPath: String?
    var connections: Int
    var connectionsPerAddress: Int
  }

  /// Crosses threads for `lws_cancel_service` only, under the lock of `shared`.
  struct Context: @unchecked Sendable { let pointer: OpaquePointer }

  /// What other threads reach.
  struct Shared {
    var context: Context?
    var answers: [(UInt64, HTTPResponse)] = []
    var stops = false
    var reloads: [@Sendable (TLSError?) -> Void] = []
  }

  let settings: Settings
  let metrics = TransportMetrics()
  let logger: Logger
  let shared = Mutex(Shared())
  private(set) var address: SocketAddress
  private var thread: NamedThread?
  private var memory: LWSMemory?

  let delegate: any TransportDelegate
  var peers: [OpaquePointer: IPAddress] = [:]
  var perAddress: [IPAddress: Int] = [:]
  var sockets: [OpaquePointer: WebSocket] = [:]
  var socketOfID: [ConnectionID: WebSocket] = [:]
  var exchanges: [OpaquePointer: Exchange] = [:]
  var exchangeOfNumber: [UInt64: Exchange] = [:]
  var lastNumber: UInt64 = 0
  /// Frames are written from here: lws wants room before them.
  var scratch: [UInt8] = []
  private var stopDeadline: Instant?

  init(_ settings: Settings, delegate: any TransportDelegate, logger: Logger) {
    (self.settings, self.delegate, self.logger, address) = (settings, delegate, logger, settings.address)
  }

  /// Binds and starts the thread.
  func start() throws {
    try settings.tls?.check()
    // A bind of our own first, because lws does not say why it could not.
    if settings.address.port != 0 { _ = try TCPListener(bind: settings.address, setting: settings.setting) }
    clws_quiet()
    let memory = LWSMemory(settings)
    let owner = Unmanaged.passRetained(self)
    guard let context = memory.makeContext(user: owner.toOpaque()) else {
      owner.release()
      throw SystemError("start \(settings.name) on", address: settings.address, setting: settings.setting, code: ENOMEM)
    }
    guard let vhost = memory.makeVhost(context) else {
      lws_context_destroy(context)
      owner.release()
      throw SystemError("listen on tcp", address: settings.address, setting: settings.setting, code: EADDRINUSE)
    }
    address.port = UInt16(clamping: lws_get_vhost_listen_port(vhost))
    self.memory = memory
    let crossing = Context(pointer: context)
    shared.withLock { $0.context = crossing }
    do {
      thread = try NamedThread.start(name: settings.name, logger: logger) { self.run() }
    } catch {
      shared.withLock { $0.context = nil }
      lws_context_destroy(context)
      owner.release()
      throw error
    }
  }

  private func run() {
    guard let context = shared.withLock({ $0.context })?.pointer else { return }
    while lws_service(context, 0) >= 0 {
      if turn(context) { break }
    }
    shared.withLock { $0.context = nil }
    lws_context_destroy(context)
    for socket in sockets.values { forget(socket, nil) }
    memory = nil
    Unmanaged.passUnretained(self).release()  // what `start` retained for the callbacks
  }

  /// True when the thread shall end.
  private func turn(_ context: OpaquePointer) -> Bool {
    let (answers, stops, reloads) = shared.withLock { shared in
      defer { (shared.answers, shared.reloads) = ([], []) }
      return (shared.answers, shared.stops, shared.reloads)
    }
    for (number, response) in answers { exchangeOfNumber[number].map { answer($0, response) } }
    for done in reloads { done(reloadCertificates(context)) }
    let now = MonotonicClock.now()
    var next = delegate.turn(now)
    if stops {
      if stopDeadline == nil {
        stopDeadline = now + .milliseconds(Limits.stopMilliseconds)
        for socket in sockets.values { beginClose(socket, .draining) }
      }
      if sockets.isEmpty || stopDeadline.map({ now >= $0 }) ?? false { return true }
      next = min(next ?? .distantFuture, now + .milliseconds(10))
    }
    memory?.wakeUp(context, after: next.map { max(.zero, $0 - now) })
    return false
  }

  func wake() {
    // Under the lock, so that the context cannot go away between look and call.
    shared.withLock { if let context = $0.context { lws_cancel_service(context.pointer) } }
  }

  func stop() {
    shared.withLock { $0.stops = true }
    wake()
    thread?.join()
  }

  /// New connections use the files' present content; the old ones keep theirs. `done` is called on the server's thread.
  func reload(_ done: @escaping @Sendable (TLSError?) -> Void) {
    shared.withLock { $0.reloads.append(done) }
    wake()
  }

  private func reloadCertificates(_ context: OpaquePointer) -> TLSError? {
    guard let files = settings.tls else { return nil }
    do {
      try files.check()
    } catch {
      return error  // the old ones stay in use
    }
    let failed = lws_tls_cert_updated(context, files.certificate, files.key, nil, 0, nil, 0) != 0
    return failed ? TLSError("\(files.certificate): libwebsockets did not take it") : nil
  }
}

/// What lws keeps pointers to: made before the context, freed after it.
final class LWSMemory {
  private let protocols: UnsafeMutablePointer<lws_protocols>
  private let timer: UnsafeMutablePointer<clws_timer>
  private var texts: [UnsafeMutablePointer<CChar>] = []
  private var info = lws_context_creation_info()

  init(_ settings: LWSServer.Settings) {
    protocols = .allocate(capacity: 3)
    protocols.initialize(repeating: lws_protocols(), count: 3)
    timer = .allocate(capacity: 1)
    timer.initialize(to: clws_timer())
    protocols[0].name = text("http")
    protocols[0].callback = lwsCallback
    if settings.webSocketPath != nil {
      protocols[1].name = text("trunkline.v1")
      protocols[1].callback = lwsCallback
    }
    info.protocols = UnsafePointer(protocols)
    info.vhost_name = text(settings.name)
    info.server_string = text("trunkline")
    info.port = Int32(settings.address.port)
    if !settings.address.ip.isUnspecified { info.iface = text("\(settings.address.ip)") }
    info.options = clws_option_explicit_vhosts() | clws_option_fail_unbound()
    if settings.address.ip.family == .v4 { info.options |= clws_option_disable_ipv6() }
    info.max_http_header_data = Limits.headerBytes
    info.max_http_header_pool = Limits.headersAtOnce
    info.timeout_secs = Limits.requestSeconds
    info.keepalive_timeout = Limits.keepAliveSeconds
    info.gid = -1
    info.uid = -1
    if let tls = settings.tls {
      info.options |= clws_option_tls()
      info.ssl_cert_filepath = text(tls.certificate)
      info.ssl_private_key_filepath = text(tls.key)
      info.ssl_options_set = clws_tls12_and_up()
      info.alpn = text("http/1.1")  // h2 in this version has open holes
    }
  }

  func makeContext(user: UnsafeMutableRawPointer) -> OpaquePointer? {
    info.user = user
    return lws_create_context(&info)
  }

  func makeVhost(_ context: OpaquePointer) -> OpaquePointer? { lws_create_vhost(context, &info) }

  /// Ends the present wait of `lws_service` after this time; nil: only when something happens.
  func wakeUp(_ context: OpaquePointer, after time: Duration?) {
    if let time {
      clws_timer_start(timer, context, max(1, time.nanoseconds / 1_000))
    } else {
      clws_timer_stop(timer)
    }
  }

  private func text(_ value: String) -> UnsafePointer<CChar>? {
    guard let copy = strdup(value) else { return nil }
    texts.append(copy)
    return UnsafePointer(copy)
  }

  deinit {
    protocols.deallocate()
    timer.deallocate()
    for text in texts { free(text) }
  }
}

/// A plain function: a closure made on another actor would trap on the service thread.
private func lwsCallback(
  _ wsi: OpaquePointer?, _ reason: lws_callback_reasons, _ user: UnsafeMutableRawPointer?, _ input: UnsafeMutableRawPointer?,
  _ length: Int
) -> Int32 {
  guard let wsi, let context = lws_get_context(wsi), let owner = lws_context_user(context) else { return 0 }
  let server = Unmanaged<LWSServer>.fromOpaque(owner).takeUnretainedValue()
  return server.happened(reason, wsi, UnsafeRawBufferPointer(start: input, count: input == nil ? 0 : max(0, length)))
}
