import CTrunklineAres
import Glibc
public import Logging
public import TrunklineBytes
public import TrunklinePlatform
public import TrunklineSIPDialogs

/// Questions to the domain name system through c-ares, on the loop of the asking thread: nothing here waits.
///
/// Belongs to the thread of its loop; call `close` before it is released. Each question gets one answer, in a later step, never
/// from within `ask`.
///
///     let resolver = try Resolver(loop: loop, servers: [], logger: log) { question, answer in … }
///     resolver.ask(DNSQuestion("carrier.example", .naptr))
public final class Resolver {
  /// One question under way; c-ares holds it until it calls back, which it does exactly once.
  private final class Query {
    weak var resolver: Resolver?
    let question: DNSQuestion
    init(_ resolver: Resolver, _ question: DNSQuestion) { (self.resolver, self.question) = (resolver, question) }
  }

  private let loop: EventLoop
  private let logger: Logger
  private let firstTime: Duration
  private let deliver: (DNSQuestion, DNSAnswer) -> Void
  private var servers: [SocketAddress]
  private var channel: ares_channel?
  private var watched: Set<Int32> = []
  private var waiting: [(DNSQuestion, DNSAnswer)] = []
  private var underWay = 0
  /// Questions whose failure was logged.
  private var failing: Set<DNSQuestion> = []
  /// The stamp of `resolv.conf` when it was read.
  private var stamp: SystemFileStamp?
  private var timer: EventLoop.TimerID?
  private var deliveryTimer: EventLoop.TimerID?
  let counts = ResolverMetrics()
  /// Called on the loop's thread with the name servers in use, when these have changed.
  public var serversChanged: (([String]) -> Void)?

  /// Without `servers` it uses those of the system's `resolv.conf`.
  public convenience init(
    loop: EventLoop, servers: [SocketAddress] = [], logger: Logger, deliver: @escaping (DNSQuestion, DNSAnswer) -> Void
  ) throws(ResolverFailure) {
    try self.init(loop: loop, servers: servers, logger: logger, firstTime: Limits.firstTime, deliver: deliver)
  }

  /// - Parameter firstTime: the wait of the first try at each server; doubled with each round.
  init(
    loop: EventLoop, servers: [SocketAddress], logger: Logger, firstTime: Duration,
    deliver: @escaping (DNSQuestion, DNSAnswer) -> Void
  ) throws(ResolverFailure) {
    (self.loop, self.servers, self.logger, self.firstTime, self.deliver) = (loop, servers, logger, firstTime, deliver)
    stamp = SystemFileStamp(Limits.systemFile)
    guard ares_library_init(ARES_LIB_INIT_ALL) == 0 else { throw ResolverFailure(description: "c-ares cannot be initialised") }
    channel = try open()
    timer = loop.addTimer("names") { [weak self] in self?.process(readable: ARES_SOCKET_BAD, writable: ARES_SOCKET_BAD) }
    deliveryTimer = loop.addTimer("answers") { [weak self] in self?.deliverWaiting() }
  }

  public var metrics: [MetricFamily] { counts.families }

  /// The name servers in use, as they are written in a configuration.
  public var serverNames: [String] { serverList.split(separator: ", ").map(String.init) }

  /// Sends a question; one that cannot be sent is answered `failed`.
  public func ask(_ question: DNSQuestion) {
    loop.preconditionOnThread()
    readSystemFileAnew()
    guard let channel, underWay < Limits.questions else { return finish(question, .failed) }
    underWay += 1
    counts.questions[question.kind].increment()
    let query = Unmanaged.passRetained(Query(self, question)).toOpaque()
    switch question.kind {
    case .naptr: ares_query(channel, question.name, 1, 35, answered, query)
    case .srv: ares_query(channel, question.name, 1, 33, answered, query)
    case .a: askAddresses(channel, of: question.name, family: AF_INET, query: query)
    case .aaaa: askAddresses(channel, of: question.name, family: AF_INET6, query: query)
    }
    arm()
  }

  /// Asks for addresses, also in the hosts file, as any program of this machine would.
  private func askAddresses(_ channel: ares_channel, of name: String, family: Int32, query: UnsafeMutableRawPointer) {
    var hints = ares_addrinfo_hints()
    hints.ai_family = family
    hints.ai_socktype = Int32(SOCK_DGRAM.rawValue)
    hints.ai_flags = ARES_AI_NOSORT
    ares_getaddrinfo(channel, name, nil, &hints, addressesAnswered, query)
  }

  /// `resolv.conf` is empty while a machine starts, and is rewritten when the machine changes its network.
  private func readSystemFileAnew() {
    guard servers.isEmpty, channel != nil, let now = SystemFileStamp(Limits.systemFile), now != stamp else { return }
    stamp = now
    do throws(ResolverFailure) {
      try restart(servers: [])
      logger.notice("names: \(Limits.systemFile) has changed and is read", metadata: ["servers": "\(serverList)"])
    } catch {
      logger.warning("names: \(Limits.systemFile) has changed and cannot be read", metadata: ["why": "\(error)"])
    }
  }

  /// Uses other name servers (SIGHUP), or those read again from `resolv.conf`. Questions under way are asked again there.
  public func restart(servers: [SocketAddress]) throws(ResolverFailure) {
    loop.preconditionOnThread()
    self.servers = servers
    let next = try open()
    let old = channel
    channel = next
    if let old { ares_destroy(old) }
    serversChanged?(serverNames)
    arm()
  }

  /// Ends the resolver: no answer is delivered afterwards.
  public func close() {
    loop.preconditionOnThread()
    let last = channel
    channel = nil
    if let last { ares_destroy(last) }
    waiting = []
    for timer in [timer, deliveryTimer].compactMap(\.self) { loop.setTimer(timer, at: nil) }
  }

  // MARK: c-ares

  private func open() throws(ResolverFailure) -> ares_channel {
    var options = ares_options()
    options.flags = ARES_FLAG_NOSEARCH
    options.timeout = Int32(firstTime.milliseconds)
    options.tries = 3
    options.sock_state_cb = socketChanged
    // The channel is destroyed before this object is released.
    options.sock_state_cb_data = Unmanaged.passUnretained(self).toOpaque()
    var channel: ares_channel?
    let mask = ARES_OPT_FLAGS | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_SOCK_STATE_CB
    let status = ares_init_options(&channel, &options, mask)
    guard status == 0, let channel else { throw ResolverFailure(status) }
    if !servers.isEmpty {
      let list = servers.prefix(Limits.servers).map(\.description).joined(separator: ",")
      let status = ares_set_servers_ports_csv(channel, list)
      guard status == 0 else {
        ares_destroy(channel)
        throw ResolverFailure(status)
      }
    }
    return channel
  }

  fileprivate func watch(_ fd: Int32, reads: Bool, writes: Bool) {
    var events: IOEvents = []
    if reads { events.insert(.readable) }
    if writes { events.insert(.writable) }
    guard !events.isEmpty else {
      if watched.remove(fd) != nil { loop.unregister(fd) }
      return
    }
    do throws(SystemError) {
      if watched.contains(fd) { return try loop.modify(fd, events) }
      try loop.register(fd, events) { [weak self] ready in
        let failed = ready.hasFailure
        self?.process(
          readable: failed || ready.contains(.readable) ? fd : ARES_SOCKET_BAD,
          writable: failed || ready.contains(.writable) ? fd : ARES_SOCKET_BAD)
      }
      watched.insert(fd)
    } catch {
      logger.error("\(error)")
    }
  }

  private func process(readable: Int32, writable: Int32) {
    guard let channel else { return }
    ares_process_fd(channel, readable, writable)
    arm()
  }

  private func arm() {
    guard let timer, let channel else { return }
    var next = timeval()
    guard ares_timeout(channel, nil, &next) != nil else { return loop.setTimer(timer, at: nil) }
    loop.setTimer(timer, at: loop.now + .seconds(next.tv_sec) + .microseconds(Int64(next.tv_usec)))
  }

  fileprivate static func finish(_ argument: UnsafeMutableRawPointer?, _ status: Int32, _ read: () -> DNSAnswer) {
    guard let argument else { return }
    let query = Unmanaged<Query>.fromOpaque(argument).takeRetainedValue()
    guard let resolver = query.resolver else { return }
    resolver.underWay -= 1
    switch status {
    case 0: resolver.finish(query.question, read())
    case ARES_ENODATA, ARES_ENOTFOUND: resolver.finish(query.question, .none)
    // the channel was replaced
    case ARES_EDESTRUCTION: if resolver.channel != nil { resolver.ask(query.question) }
    default: resolver.failed(query.question, status)
    }
  }

  /// Logged once for each question, until it has an answer.
  private func failed(_ question: DNSQuestion, _ status: Int32) {
    if failing.count < Limits.questions, failing.insert(question).inserted {
      logger.warning(
        "names: a query has no answer: nothing waits for it, and it is repeated",
        metadata: [
          "name": "\(question.name)", "type": "\(question.kind.rawValue)", "servers": "\(serverList)",
          "why": "\(String(cString: ares_strerror(status)))",
        ])
    }
    finish(question, .failed)
  }

  /// The name servers in use, as they are written in a configuration.
  private var serverList: String {
    var list: UnsafeMutablePointer<ares_addr_port_node>?
    guard let channel, ares_get_servers_ports(channel, &list) == 0 else { return "" }
    defer { ares_free_data(list) }
    var out: [String] = []
    var next = list
    while let node = next, out.count < Limits.servers {
      var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
      _ = ares_inet_ntop(node.pointee.family, &node.pointee.addr, &text, ares_socklen_t(text.count))
      let host = text.withUnsafeBufferPointer { $0.baseAddress.map { String(cString: $0) } ?? "" }
      let port = node.pointee.udp_port
      out.append(
        port == 0 || port == 53 ? host : IPAddress(host).map { "\(SocketAddress($0, UInt16(truncatingIfNeeded: port)))" } ?? host)
      next = node.pointee.next
    }
    return out.joined(separator: ", ")
  }

  private func finish(_ question: DNSQuestion, _ answer: DNSAnswer) {
    if answer != .failed, failing.remove(question) != nil {
      logger.notice(
        "names: a query that had no answer has one",
        metadata: ["name": "\(question.name)", "type": "\(question.kind.rawValue)"])
    }
    switch answer {
    case .failed: counts.answers[.failed].increment()
    case .none: counts.answers[.none].increment()
    default: counts.answers[.records].increment()
    }
    waiting.append((question, answer))
    if let deliveryTimer { loop.setTimer(deliveryTimer, at: loop.now) }
  }

  private func deliverWaiting() {
    let now = waiting
    waiting = []
    for (question, answer) in now where channel != nil { deliver(question, answer) }
  }

  fileprivate static func kind(_ argument: UnsafeMutableRawPointer?) -> DNSQuestion.Kind? {
    argument.map { Unmanaged<Query>.fromOpaque($0).takeUnretainedValue().question.kind }
  }
}

/// The values that change when a file is rewritten, compared in place of its content.
struct SystemFileStamp: Equatable {
  private let device: UInt64, inode: UInt64, size: Int64, seconds: Int64, nanoseconds: Int64

  init?(_ path: String) {
    var status = Glibc.stat()
    guard fstatat(AT_FDCWD, path, &status, 0) == 0 else { return nil }
    (device, inode, size) = (UInt64(status.st_dev), UInt64(status.st_ino), Int64(status.st_size))
    (seconds, nanoseconds) = (Int64(status.st_mtim.tv_sec), Int64(status.st_mtim.tv_nsec))
  }
}

/// Why a resolver could not be made.
public struct ResolverFailure: Error, CustomStringConvertible {
  public let description: String
  init(description: String) { self.description = description }
  init(_ status: Int32) { description = "c-ares: \(String(cString: ares_strerror(status)))" }
}

private func socketChanged(_ data: UnsafeMutableRawPointer?, _ fd: ares_socket_t, _ readable: Int32, _ writable: Int32) {
  guard let data else { return }
  Unmanaged<Resolver>.fromOpaque(data).takeUnretainedValue().watch(fd, reads: readable != 0, writes: writable != 0)
}

private func answered(
  _ argument: UnsafeMutableRawPointer?, _ status: Int32, _: Int32, _ bytes: UnsafeMutablePointer<UInt8>?, _ count: Int32
) {
  let kind = Resolver.kind(argument)
  Resolver.finish(argument, status) {
    guard let bytes, count > 0 else { return .failed }
    let time =
      shortestTimeToLive(UnsafeBufferPointer(start: bytes, count: Int(count))).map { Duration.seconds(Int64($0)) } ?? .zero
    return kind == .naptr ? readNAPTR(bytes, count: count, time) : readSRV(bytes, count: count, time)
  }
}

private func addressesAnswered(
  _ argument: UnsafeMutableRawPointer?, _ status: Int32, _: Int32, _ result: UnsafeMutablePointer<ares_addrinfo>?
) {
  Resolver.finish(argument, status) { readAddresses(result) }
  if let result { ares_freeaddrinfo(result) }
}
