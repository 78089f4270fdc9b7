#if os(Linux) && !APPLE_SURFACE
  import TrunklineBytes
  import CTrunklineWebSockets
  import Foundation
  import Synchronization

  /// Any number of WebSockets over libwebsockets, on one thread for all. Events arrive on that thread, in order; `connect`, `send`
  /// and `close` may be called from any. The owner chooses the sockets' numbers, 0 to `count` − 1.
  package final class WebSocketPool: Sendable {
    /// Runs a body on its own thread, and returns a function that waits for its end.
    package typealias ThreadStart = @Sendable (@escaping @Sendable () -> Void) throws -> @Sendable () -> Void

    private enum Command: Sendable {
      case connect(Int, Endpoint, over: Interface?)
      case send(Int, [UInt8])
      case close(Int, UInt16)
      case stop
    }

    static let messageLimit = 65_536
    private let endpoint: Endpoint
    private let handler: @Sendable (Int, Event) -> Void
    private let commands = Mutex<[Command]>([])
    private let context = Mutex<ContextBox?>(nil)
    private let join = Mutex<(@Sendable () -> Void)?>(nil)
    /// The address at which a socket of an endpoint opened last, by host and port.
    private let reached = Mutex<[String: IPAddress]>([:])
    private static let reachedLimit = 64

    /// An alternate path: an address of this machine, and one of the gateway's of the same family, since the name servers of a dead
    /// network do not answer.
    struct Interface: Sendable {
      var local: IPAddress
      var remote: IPAddress?
    }

    /// A pointer that other threads use for `lws_cancel_service` only, the one call that is legal off the service thread.
    private struct ContextBox: @unchecked Sendable { let pointer: OpaquePointer }

    /// - Parameter start: runs the pool's thread; by default a thread of Foundation.
    package init(
      endpoint: Endpoint, count: Int, start: ThreadStart = WebSocketPool.startThread,
      handler: @escaping @Sendable (Int, Event) -> Void
    ) throws {
      self.endpoint = endpoint
      self.handler = handler
      let wait = try start { [self] in PoolLoop(owner: self, count: max(1, count)).run() }
      join.withLock { $0 = wait }
    }

    package static let startThread: ThreadStart = { body in
      let isOver = DispatchSemaphore(value: 0)
      namedThread("ws-client") {
        body()
        isOver.signal()
      }.start()
      return {
        isOver.wait()
        isOver.signal()
      }
    }

    /// Connects to `endpoint`, or to the pool's own; replaces the socket that has the number.
    package func connect(_ number: Int, to other: Endpoint? = nil) { post(.connect(number, other ?? endpoint, over: nil)) }
    func connect(_ number: Int, to other: Endpoint, over interface: Interface) { post(.connect(number, other, over: interface)) }
    func endpoint(of url: String) throws(AddressError) -> Endpoint { try Endpoint(url: url, isInsecure: endpoint.isInsecure) }
    package func send(_ number: Int, _ text: [UInt8]) { post(.send(number, text)) }
    package func close(_ number: Int, _ code: UInt16) { post(.close(number, code)) }

    /// Nil: no socket of this host and port has opened yet.
    func address(of endpoint: Endpoint) -> IPAddress? { reached.withLock { $0[endpoint.authority] } }

    private func opened(_ endpoint: Endpoint?, at address: IPAddress?) {
      guard let endpoint, let address else { return }
      reached.withLock { reached in
        if reached.count >= Self.reachedLimit { reached = [:] }
        reached[endpoint.authority] = address
      }
    }

    /// Closes the open sockets and joins the thread.
    package func stop() {
      post(.stop)
      join.withLock { $0 }?()
    }

    private func post(_ command: Command) {
      commands.withLock { $0.append(command) }
      context.withLock { if let box = $0 { lws_cancel_service(box.pointer) } }
    }

    /// One socket, or an attempt to open one. libwebsockets holds the slot's address while the socket lives.
    private final class Slot {
      let number: Int
      var socket: OpaquePointer?
      var outgoing: [[UInt8]] = []
      var incoming: [UInt8] = []
      var closeCode: UInt16?
      var peerCode: UInt16 = 1006
      var isOpen = false
      /// Closed before it was open.
      var isAbandoned = false
      var endpoint: Endpoint?
      init(number: Int) { self.number = number }
    }

    /// State of the service thread, which makes and releases it.
    private final class PoolLoop {
      let owner: WebSocketPool
      private let slots: [Slot]
      private var stopping = false

      init(owner: WebSocketPool, count: Int) {
        (self.owner, slots) = (owner, (0..<count).map { Slot(number: $0) })
      }

      func run() {
        lws_set_log_level(0, nil)
        var protocols = [lws_protocols(), lws_protocols()]
        let name = Endpoint.subprotocol.utf8CString.withUnsafeBufferPointer { source -> UnsafeMutablePointer<CChar> in
          let copy = UnsafeMutablePointer<CChar>.allocate(capacity: source.count)
          if let base = source.baseAddress { copy.update(from: base, count: source.count) }
          return copy
        }
        defer { name.deallocate() }
        protocols[0].name = UnsafePointer(name)
        protocols[0].rx_buffer_size = WebSocketPool.messageLimit
        protocols[0].callback = { wsi, reason, _, bytes, count in
          guard let context = lws_get_context(wsi), let user = lws_context_user(context) else { return 0 }
          return Unmanaged<PoolLoop>.fromOpaque(user).takeUnretainedValue().handle(wsi, reason, bytes, count)
        }
        protocols.withUnsafeMutableBufferPointer { table in
          var info = lws_context_creation_info()
          info.port = CONTEXT_PORT_NO_LISTEN
          info.protocols = UnsafePointer(table.baseAddress)
          info.gid = -1
          info.uid = -1
          info.user = Unmanaged.passUnretained(self).toOpaque()
          info.options = UInt64(LWS_SERVER_OPTION_DO_SSL_GLOBAL_INIT)
          guard let context = lws_create_context(&info) else { return refuseAll() }
          owner.context.withLock { $0 = ContextBox(pointer: context) }
          drainCommands(context)
          while !stopping || slots.contains(where: \.isOpen) { if lws_service(context, 0) < 0 { break } }
          owner.context.withLock { $0 = nil }
          lws_context_destroy(context)
        }
      }

      private func refuseAll() { for slot in slots { owner.handler(slot.number, .closed(1006, "libwebsockets did not start")) } }

      private func drainCommands(_ context: OpaquePointer) {
        let drained = owner.commands.withLock { list in
          defer { list.removeAll() }
          return list
        }
        for command in drained {
          switch command {
          case .connect(let number, let endpoint, let interface):
            if slots.indices.contains(number) { open(slots[number], to: endpoint, over: interface, in: context) }
          case .send(let number, let text):
            guard slots.indices.contains(number) else { continue }
            slots[number].outgoing.append(text)
            wake(slots[number])
          case .close(let number, let code): if slots.indices.contains(number) { close(slots[number], code) }
          case .stop:
            stopping = true
            for slot in slots { close(slot, slot.closeCode ?? 1000) }
          }
        }
      }

      private func wake(_ slot: Slot) { if let socket = slot.socket, slot.isOpen { lws_callback_on_writable(socket) } }

      private func close(_ slot: Slot, _ code: UInt16) {
        slot.closeCode = code
        wake(slot)
        if !slot.isOpen { (slot.socket, slot.closeCode, slot.isAbandoned) = (nil, nil, slot.socket != nil) }
      }

      private func open(_ slot: Slot, to endpoint: Endpoint, over interface: Interface?, in context: OpaquePointer) {
        slot.outgoing = []
        slot.incoming = []
        slot.closeCode = nil
        slot.peerCode = 1006
        slot.isOpen = false
        slot.isAbandoned = false
        slot.endpoint = endpoint
        var info = lws_client_connect_info()
        info.context = context
        info.port = Int32(endpoint.port)
        info.ietf_version_or_minus_one = -1
        info.opaque_user_data = Unmanaged.passUnretained(slot).toOpaque()
        if endpoint.isSecure {
          info.ssl_connection = Int32(LCCSCF_USE_SSL.rawValue)
          if endpoint.isInsecure {
            info.ssl_connection |= Int32(LCCSCF_ALLOW_SELFSIGNED.rawValue | LCCSCF_SKIP_SERVER_CERT_HOSTNAME_CHECK.rawValue)
          }
        }
        let remote = interface?.remote?.description ?? endpoint.host
        let local = interface?.local.description ?? ""
        let texts = [endpoint.host, endpoint.path, Endpoint.subprotocol, remote, local].map { (text: String) in strdup(text) }
        defer { for text in texts { free(text) } }
        // `address` is connected to; TLS verifies `host`
        info.host = UnsafePointer(texts[0])
        info.path = UnsafePointer(texts[1])
        info.protocol = UnsafePointer(texts[2])
        info.address = UnsafePointer(texts[3])
        if interface != nil { info.iface = UnsafePointer(texts[4]) }
        slot.socket = lws_client_connect_via_info(&info)
        // CLIENT_CONNECTION_ERROR has already reported a refused connection.
      }

      private func handle(_ wsi: OpaquePointer?, _ reason: lws_callback_reasons, _ bytes: UnsafeMutableRawPointer?, _ count: Int)
        -> Int32
      {
        if reason == LWS_CALLBACK_EVENT_WAIT_CANCELLED {
          if let context = lws_get_context(wsi) { drainCommands(context) }
          return 0
        }
        guard let wsi, let data = lws_get_opaque_user_data(wsi) else { return 0 }
        let slot = Unmanaged<Slot>.fromOpaque(data).takeUnretainedValue()
        // A socket that was replaced may still cause events.
        guard slot.socket == nil || slot.socket == wsi else { return reason == LWS_CALLBACK_CLIENT_ESTABLISHED ? -1 : 0 }
        switch reason {
        case LWS_CALLBACK_CLIENT_ESTABLISHED:
          if slot.isAbandoned { return -1 }
          slot.isOpen = true
          slot.socket = wsi
          limitPatience(ofSocket: lws_get_socket_fd(wsi))
          owner.opened(slot.endpoint, at: peerAddress(ofSocket: lws_get_socket_fd(wsi)))
          owner.handler(slot.number, .opened)
          lws_callback_on_writable(wsi)
        case LWS_CALLBACK_CLIENT_RECEIVE: return received(slot, wsi: wsi, bytes: bytes, count: count)
        case LWS_CALLBACK_CLIENT_WRITEABLE: return write(slot, wsi)
        case LWS_CALLBACK_WS_PEER_INITIATED_CLOSE:
          if let bytes, count >= 2 {
            slot.peerCode = UInt16(bytes.load(as: UInt8.self)) << 8 | UInt16(bytes.load(fromByteOffset: 1, as: UInt8.self))
          }
        case LWS_CALLBACK_CLIENT_CONNECTION_ERROR:
          let why = bytes.map { String(decoding: UnsafeRawBufferPointer(start: $0, count: count), as: UTF8.self) }
          ended(slot, why ?? "connection failed")
        case LWS_CALLBACK_CLIENT_CLOSED: ended(slot, nil)
        default: break
        }
        return 0
      }

      private func ended(_ slot: Slot, _ why: String?) {
        slot.isOpen = false
        slot.socket = nil
        owner.handler(slot.number, .closed(slot.peerCode, why))
      }

      private func received(_ slot: Slot, wsi: OpaquePointer, bytes: UnsafeMutableRawPointer?, count: Int) -> Int32 {
        if let bytes, count > 0 { slot.incoming.append(contentsOf: UnsafeRawBufferPointer(start: bytes, count: count)) }
        guard slot.incoming.count <= WebSocketPool.messageLimit else { return -1 }
        if lws_is_final_fragment(wsi) != 0, lws_remaining_packet_payload(wsi) == 0 {
          owner.handler(slot.number, .received(slot.incoming))
          slot.incoming.removeAll(keepingCapacity: true)
        }
        return 0
      }

      private func write(_ slot: Slot, _ wsi: OpaquePointer) -> Int32 {
        while !slot.outgoing.isEmpty {
          let text = slot.outgoing.removeFirst()
          var buffer = [UInt8](repeating: 0, count: clws_pre()) + text
          let written = buffer.withUnsafeMutableBufferPointer { area -> Int32 in
            guard let base = area.baseAddress else { return -1 }
            return lws_write(wsi, base + clws_pre(), text.count, LWS_WRITE_TEXT)
          }
          if written < Int32(text.count) { return -1 }
          if !slot.outgoing.isEmpty, lws_send_pipe_choked(wsi) != 0 {
            lws_callback_on_writable(wsi)
            return 0
          }
        }
        if let code = slot.closeCode {
          slot.peerCode = code
          lws_close_reason(wsi, lws_close_status(UInt32(code)), nil, 0)
          return -1
        }
        return 0
      }
    }
  }
#endif
