import Bytes
import CWebSockets
import Platform
import Synchronization

/// One WebSocket to the gateway over libwebsockets, on a thread of its own. Events arrive on that thread, in order;
/// `connect`, `send` and `close` may be called from any.
final class WebSocketClient: Sendable {
  enum Event: Sendable {
    case opened
    /// One whole text message.
    case received([UInt8])
    /// 1006 when no close frame came; the text says why a connection attempt failed.
    case closed(UInt16, String?)
  }

  struct Endpoint: Sendable {
    var host: String
    var port: UInt16
    var path: String
    var isSecure: Bool
    var subprotocol: String
    /// Takes self-signed certificates: for tests.
    var isInsecure: Bool

    /// Parses `ws://host:port/path` or `wss://…`; nil for anything else.
    init?(url: String, subprotocol: String, isInsecure: Bool = false) {
      let isSecure = url.hasPrefix("wss://")
      guard isSecure || url.hasPrefix("ws://") else { return nil }
      let rest = url.dropFirst(isSecure ? 6 : 5)
      let authority = rest.prefix { $0 != "/" }
      let path = rest.dropFirst(authority.count)
      var host = String(authority)
      var port: UInt16 = isSecure ? 443 : 80
      if let colon = authority.lastIndex(of: ":"), !authority.hasSuffix("]") {
        guard let number = UInt16(authority[authority.index(after: colon)...]) else { return nil }
        (host, port) = (String(authority[..<colon]), number)
      }
      host = host.trimming("[", "]")
      guard !host.isEmpty else { return nil }
      (self.host, self.port, self.path) = (host, port, path.isEmpty ? "/" : String(path))
      (self.isSecure, self.subprotocol, self.isInsecure) = (isSecure, subprotocol, isInsecure)
    }
  }

  private enum Order: Sendable {
    case connect
    case send([UInt8])
    case close(UInt16)
    case stop
  }

  static let messageLimit = 65_536
  private let endpoint: Endpoint
  private let handler: @Sendable (Event) -> Void
  private let orders = Mutex<[Order]>([])
  private let context = Mutex<ContextBox?>(nil)
  private let thread = Mutex<NamedThread?>(nil)

  /// A pointer that other threads use for `lws_cancel_service` only, the one call that is legal off the service thread.
  private struct ContextBox: @unchecked Sendable { let pointer: OpaquePointer }

  init(endpoint: Endpoint, handler: @escaping @Sendable (Event) -> Void) throws {
    self.endpoint = endpoint
    self.handler = handler
    let started = try NamedThread.start(name: "ws-client") { [self] in ClientLoop(owner: self, endpoint: endpoint).run() }
    thread.withLock { $0 = started }
  }

  func connect() { post(.connect) }
  func send(_ text: [UInt8]) { post(.send(text)) }
  func close(_ code: UInt16) { post(.close(code)) }

  /// Closes the socket if one is open and joins the thread.
  func stop() {
    post(.stop)
    thread.withLock { $0 }?.join()
  }

  private func post(_ order: Order) {
    orders.withLock { $0.append(order) }
    context.withLock { if let box = $0 { lws_cancel_service(box.pointer) } }
  }

  /// What runs on the service thread; lives and dies there.
  private final class ClientLoop {
    let owner: WebSocketClient
    let endpoint: Endpoint
    private var socket: OpaquePointer?
    private var outgoing: [[UInt8]] = []
    private var incoming: [UInt8] = []
    private var closeCode: UInt16?
    private var peerCode: UInt16 = 1006
    private var isOpen = false
    private var stopping = false

    init(owner: WebSocketClient, endpoint: Endpoint) { (self.owner, self.endpoint) = (owner, endpoint) }

    func run() {
      lws_set_log_level(0, nil)
      var protocols = [lws_protocols(), lws_protocols()]
      let name = endpoint.subprotocol.utf8CString.withUnsafeBufferPointer { source -> UnsafeMutablePointer<CChar> in
        let copy = UnsafeMutablePointer<CChar>.allocate(capacity: source.count)
        if let base = source.baseAddress { copy.update(from: base, count: source.count) }
        return copy
      }
      defer { name.deallocate() }
      protocols[0].name = UnsafePointer(name)
      protocols[0].rx_buffer_size = WebSocketClient.messageLimit
      protocols[0].callback = { wsi, reason, _, bytes, count in
        guard let context = lws_get_context(wsi), let user = lws_context_user(context) else { return 0 }
        return Unmanaged<ClientLoop>.fromOpaque(user).takeUnretainedValue().happened(wsi, reason, bytes, count)
      }
      protocols.withUnsafeMutableBufferPointer { table in
        var info = lws_context_creation_info()
        info.port = CONTEXT_PORT_NO_LISTEN
        info.protocols = UnsafePointer(table.baseAddress)
        info.gid = -1
        info.uid = -1
        info.user = Unmanaged.passUnretained(self).toOpaque()
        if endpoint.isSecure { info.options = UInt64(LWS_SERVER_OPTION_DO_SSL_GLOBAL_INIT) }
        guard let context = lws_create_context(&info) else { return owner.handler(.closed(1006, "libwebsockets did not start")) }
        owner.context.withLock { $0 = ContextBox(pointer: context) }
        takeOrders(context)
        while !stopping || isOpen { if lws_service(context, 0) < 0 { break } }
        owner.context.withLock { $0 = nil }
        lws_context_destroy(context)
      }
    }

    private func takeOrders(_ context: OpaquePointer) {
      let taken = owner.orders.withLock { list in
        defer { list.removeAll() }
        return list
      }
      for order in taken {
        switch order {
        case .connect: open(context)
        case .send(let text): outgoing.append(text)
        case .close(let code): closeCode = code
        case .stop:
          stopping = true
          closeCode = closeCode ?? 1000
        }
      }
      if let socket, isOpen { lws_callback_on_writable(socket) }
      if !isOpen, closeCode != nil { (socket, closeCode) = (nil, nil) }
    }

    private func open(_ context: OpaquePointer) {
      (outgoing, incoming, closeCode, peerCode, isOpen) = ([], [], nil, 1006, false)
      var info = lws_client_connect_info()
      info.context = context
      info.port = Int32(endpoint.port)
      info.ietf_version_or_minus_one = -1
      if endpoint.isSecure {
        info.ssl_connection = Int32(LCCSCF_USE_SSL.rawValue)
        if endpoint.isInsecure {
          info.ssl_connection |= Int32(LCCSCF_ALLOW_SELFSIGNED.rawValue | LCCSCF_SKIP_SERVER_CERT_HOSTNAME_CHECK.rawValue)
        }
      }
      endpoint.host.withCString { host in
        endpoint.path.withCString { path in
          endpoint.subprotocol.withCString { subprotocol in
            (info.address, info.host, info.origin, info.path) = (host, host, nil, path)
            info.protocol = subprotocol
            socket = lws_client_connect_via_info(&info)
          }
        }
      }
      // A refused connection has been told by CLIENT_CONNECTION_ERROR already.
    }

    private func happened(_ wsi: OpaquePointer?, _ reason: lws_callback_reasons, _ bytes: UnsafeMutableRawPointer?, _ count: Int) -> Int32 {
      switch reason {
      case LWS_CALLBACK_EVENT_WAIT_CANCELLED:
        if let context = lws_get_context(wsi) { takeOrders(context) }
      case LWS_CALLBACK_CLIENT_ESTABLISHED:
        isOpen = true
        owner.handler(.opened)
        lws_callback_on_writable(wsi)
      case LWS_CALLBACK_CLIENT_RECEIVE: return received(wsi, bytes, count)
      case LWS_CALLBACK_CLIENT_WRITEABLE: return write(wsi)
      case LWS_CALLBACK_WS_PEER_INITIATED_CLOSE:
        if let bytes, count >= 2 { peerCode = UInt16(bytes.load(as: UInt8.self)) << 8 | UInt16(bytes.load(fromByteOffset: 1, as: UInt8.self)) }
      case LWS_CALLBACK_CLIENT_CONNECTION_ERROR:
        let why = bytes.map { String(decoding: UnsafeRawBufferPointer(start: $0, count: count), as: UTF8.self) }
        ended(why ?? "connection failed")
      case LWS_CALLBACK_CLIENT_CLOSED: ended(nil)
      default: break
      }
      return 0
    }

    private func ended(_ why: String?) {
      isOpen = false
      socket = nil
      owner.handler(.closed(peerCode, why))
    }

    private func received(_ wsi: OpaquePointer?, _ bytes: UnsafeMutableRawPointer?, _ count: Int) -> Int32 {
      if let bytes, count > 0 { incoming.append(contentsOf: UnsafeRawBufferPointer(start: bytes, count: count)) }
      guard incoming.count <= WebSocketClient.messageLimit else { return -1 }
      if lws_is_final_fragment(wsi) != 0, lws_remaining_packet_payload(wsi) == 0 {
        owner.handler(.received(incoming))
        incoming.removeAll(keepingCapacity: true)
      }
      return 0
    }

    private func write(_ wsi: OpaquePointer?) -> Int32 {
      while !outgoing.isEmpty {
        let text = outgoing.removeFirst()
        var buffer = [UInt8](repeating: 0, count: clws_pre()) + text
        let written = buffer.withUnsafeMutableBufferPointer { area -> Int32 in
          guard let base = area.baseAddress else { return -1 }
          return lws_write(wsi, base + clws_pre(), text.count, LWS_WRITE_TEXT)
        }
        if written < Int32(text.count) { return -1 }
        if !outgoing.isEmpty, lws_send_pipe_choked(wsi) != 0 {
          lws_callback_on_writable(wsi)
          return 0
        }
      }
      if let code = closeCode {
        peerCode = code
        lws_close_reason(wsi, lws_close_status(UInt32(code)), nil, 0)
        return -1
      }
      return 0
    }
  }
}

extension String {
  fileprivate func trimming(_ first: Character, _ last: Character) -> String {
    hasPrefix(String(first)) && hasSuffix(String(last)) ? String(dropFirst().dropLast()) : self
  }
}
