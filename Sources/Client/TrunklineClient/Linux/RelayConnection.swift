#if os(Linux) && !APPLE_SURFACE
  import Foundation
  import Glibc
  import Synchronization

  /// A connection to a TURN server: UDP, TCP or TLS, on its own thread, which also looks the name up. The thread ends with the
  /// connection.
  final class RelayConnection: RelaySocket {
    private struct State {
      var waiting: [[UInt8]] = []
      var isClosing = false
      var isOver = false
    }
    private struct Ended: Error { let why: String }

    /// Limits of messages that wait for the thread, and octets that wait for the kernel: more are lost, as on any slow network.
    private static let messages = 64
    private static let unsentBytes = 65_536
    /// Addresses of a name that are tried; time limit of each but the last.
    private static let addresses = 4
    private static let addressTime = Duration.seconds(2)
    /// Time limit for opening the connection.
    private static let setupTime = Duration.seconds(10)
    /// ICMP errors in a row (port unreachable), without a datagram from the server between, that end the connection.
    private static let refusals = 5
    private static let datagramBytes = 2_048
    private static let chunkBytes = 16_384

    private let state = Mutex(State())
    private let wakeUp: (read: Int32, write: Int32)
    private let address: RelayAddress
    private let trust: TLSTrust
    private let events: @Sendable (RelayEvent) -> Void

    /// Nil: the process has no descriptor left.
    /// - Parameter ended: called once, when the thread is about to end.
    init?(
      _ address: RelayAddress, trust: TLSTrust, events: @escaping @Sendable (RelayEvent) -> Void,
      ended: @escaping @Sendable () -> Void
    ) {
      var ends: [Int32] = [0, 0]
      guard pipe(&ends) == 0 else { return nil }
      for fd in ends {
        _ = fcntl(fd, F_SETFL, O_NONBLOCK)
        _ = fcntl(fd, F_SETFD, FD_CLOEXEC)
      }
      wakeUp = (ends[0], ends[1])
      (self.address, self.trust, self.events) = (address, trust, events)
      let thread = Thread { [self] in
        run()
        ended()
      }
      thread.name = "relay"
      thread.start()
    }

    deinit {
      Glibc.close(wakeUp.read)
      Glibc.close(wakeUp.write)
    }

    func send(_ bytes: [UInt8]) {
      state.withLock { state in
        guard !state.isOver, !state.isClosing, state.waiting.count < Self.messages else { return }
        state.waiting.append(bytes)
      }
      wake()
    }

    func close() {
      state.withLock { $0.isClosing = true }
      wake()
    }

    private func wake() {
      var byte: UInt8 = 1
      _ = write(wakeUp.write, &byte, 1)
    }

    // MARK: the thread

    private func run() {
      var why = "closed"
      do throws(Ended) {
        let socket = try connect()
        defer { Glibc.close(socket) }
        if address.transport == .udp { try serveDatagrams(socket) } else { try serveStream(socket) }
      } catch { why = error.why }
      state.withLock { $0 = State(isClosing: true, isOver: true) }
      events(.closed(why))
    }

    private var isClosing: Bool { state.withLock { $0.isClosing } }

    private func drain() -> (messages: [[UInt8]], isClosing: Bool) {
      var bytes: UInt64 = 0
      while read(wakeUp.read, &bytes, 8) > 0 {}
      return state.withLock { state in
        defer { state.waiting.removeAll(keepingCapacity: true) }
        return (state.waiting, state.isClosing)
      }
    }

    /// Waits until the socket is ready, the owner has a command, or the deadline has passed.
    private func wait(_ socket: Int32, for wanted: Int32, until deadline: ContinuousClock.Instant? = nil) throws(Ended) -> Bool {
      var polls = [
        pollfd(fd: socket, events: Int16(wanted), revents: 0), pollfd(fd: wakeUp.read, events: Int16(POLLIN), revents: 0),
      ]
      var milliseconds: Int32 = -1
      if let deadline {
        let left = (deadline - ContinuousClock.now).components
        milliseconds = Int32(clamping: left.seconds * 1_000 + left.attoseconds / 1_000_000_000_000_000 + 1)
        if milliseconds <= 0 { throw Ended(why: "no answer") }
      }
      _ = poll(&polls, 2, milliseconds)
      return polls[0].revents != 0
    }

    // MARK: connecting

    /// RFC 8656 §7: tries the addresses of the name in their order.
    private func connect() throws(Ended) -> Int32 {
      var hints = addrinfo()
      hints.ai_socktype = address.transport == .udp ? Int32(SOCK_DGRAM.rawValue) : Int32(SOCK_STREAM.rawValue)
      hints.ai_flags = Int32(AI_NUMERICSERV)
      var first: UnsafeMutablePointer<addrinfo>?
      let status = getaddrinfo(address.host, "\(address.port)", &hints, &first)
      guard status == 0, let first else { throw Ended(why: "\(address.host): \(String(cString: gai_strerror(status)))") }
      defer { freeaddrinfo(first) }
      let deadline = ContinuousClock.now + Self.setupTime
      var why = Ended(why: "no address")
      var next: UnsafeMutablePointer<addrinfo>? = first
      for _ in 0..<Self.addresses {
        guard let entry = next?.pointee else { break }
        if isClosing { throw Ended(why: "closed") }
        next = entry.ai_next
        let limit = entry.ai_next == nil ? deadline : min(deadline, ContinuousClock.now + Self.addressTime)
        do throws(Ended) { return try connect(entry, until: limit) } catch { why = error }
      }
      throw why
    }

    private func connect(_ entry: addrinfo, until deadline: ContinuousClock.Instant) throws(Ended) -> Int32 {
      let flags = Int32(SOCK_CLOEXEC.rawValue) | Int32(SOCK_NONBLOCK.rawValue)
      let made = socket(entry.ai_family, entry.ai_socktype | flags, 0)
      guard made >= 0 else { throw Ended(why: String(cString: strerror(errno))) }
      var isConnected = false
      defer { if !isConnected { Glibc.close(made) } }
      if Glibc.connect(made, entry.ai_addr, entry.ai_addrlen) != 0 {
        guard errno == EINPROGRESS else { throw Ended(why: String(cString: strerror(errno))) }
        while try !wait(made, for: POLLOUT, until: deadline) { if isClosing { throw Ended(why: "closed") } }
        var (failure, length): (Int32, socklen_t) = (0, 4)
        guard getsockopt(made, SOL_SOCKET, SO_ERROR, &failure, &length) == 0, failure == 0 else {
          throw Ended(why: String(cString: strerror(failure)))
        }
      }
      if address.transport != .udp {
        var one: Int32 = 1
        setsockopt(made, Int32(IPPROTO_TCP), TCP_NODELAY, &one, 4)
        limitPatience(ofSocket: made)
      }
      isConnected = true
      return made
    }

    // MARK: UDP

    private func serveDatagrams(_ socket: Int32) throws(Ended) {
      events(.opened)
      var (hasReceived, refusals) = (false, 0)
      func refused(_ error: Int32) throws(Ended) {
        refusals += 1
        // no server is listening; once it has answered, a few datagrams may be lost
        if !hasReceived || refusals == Self.refusals { throw Ended(why: String(cString: strerror(error))) }
      }
      var buffer = [UInt8](repeating: 0, count: Self.datagramBytes)
      while true {
        let isReady = try wait(socket, for: POLLIN)
        let (messages, isClosing) = drain()
        for message in messages {
          guard Glibc.send(socket, message, message.count, Int32(MSG_NOSIGNAL)) < 0, errno == ECONNREFUSED else { continue }
          // The ICMP error of an earlier datagram is reported once, by the next call on the socket, which then sends nothing.
          try refused(ECONNREFUSED)
          _ = Glibc.send(socket, message, message.count, Int32(MSG_NOSIGNAL))
        }
        if isClosing { return }
        while isReady {
          let count = recv(socket, &buffer, buffer.count, 0)
          if count > 0 {
            refusals = 0
            hasReceived = true
            events(.received(Array(buffer.prefix(count))))
          } else if count == 0 || errno == EINTR {
            continue
          } else if errno == EAGAIN {
            break
          } else {
            try refused(errno)
          }
        }
      }
    }

    // MARK: TCP and TLS

    private func serveStream(_ socket: Int32) throws(Ended) {
      let tls: TLSStream?
      do throws(TLSStream.Failure) {
        tls = address.transport == .tls ? try TLSStream(host: address.certificateHost, trust: trust) : nil
      } catch { throw Ended(why: "\(error)") }
      var unsent: [UInt8] = []
      if let tls { try shakeHands(tls, socket, &unsent) }
      events(.opened)
      // bytes received directly after the handshake
      if let tls { try decrypt(tls) }
      var buffer = [UInt8](repeating: 0, count: Self.chunkBytes)
      while true {
        let isReady = try wait(socket, for: unsent.isEmpty ? POLLIN : POLLIN | POLLOUT)
        let (messages, isClosing) = drain()
        // whole messages or none: a partial one would break the stream
        for message in messages where unsent.count < Self.unsentBytes { try encrypt(message, tls, &unsent) }
        if isClosing {
          tls?.close()
          tls?.drainUnsent(into: &unsent)
        }
        try flush(socket, &unsent)
        if isClosing { return }
        while isReady {
          let count = recv(socket, &buffer, buffer.count, 0)
          if count < 0, errno == EINTR { continue }
          if count < 0, errno == EAGAIN { break }
          guard count > 0 else { throw Ended(why: count == 0 ? "the server has ended it" : String(cString: strerror(errno))) }
          if let tls {
            try feed(tls, &buffer, count)
            try decrypt(tls)
          } else {
            events(.received(Array(buffer.prefix(count))))
          }
        }
      }
    }

    private func shakeHands(_ tls: TLSStream, _ socket: Int32, _ unsent: inout [UInt8]) throws(Ended) {
      let deadline = ContinuousClock.now + Self.setupTime
      var buffer = [UInt8](repeating: 0, count: Self.chunkBytes)
      while true {
        var failure: Ended?
        do throws(TLSStream.Failure) { try tls.handshake() } catch { failure = Ended(why: "\(error)") }
        tls.drainUnsent(into: &unsent)
        // an alert states the reason
        try flush(socket, &unsent)
        if let failure { throw failure }
        if tls.isOpen { return }
        while try !wait(socket, for: unsent.isEmpty ? POLLIN : POLLIN | POLLOUT, until: deadline) {
          if isClosing { throw Ended(why: "closed") }
        }
        let count = recv(socket, &buffer, buffer.count, 0)
        if count < 0, errno == EAGAIN || errno == EINTR { continue }
        guard count > 0 else { throw Ended(why: count == 0 ? "the server has ended it" : String(cString: strerror(errno))) }
        try feed(tls, &buffer, count)
      }
    }

    private func feed(_ tls: TLSStream, _ buffer: inout [UInt8], _ count: Int) throws(Ended) {
      var failure: Ended?
      buffer.withUnsafeBytes { bytes in
        do throws(TLSStream.Failure) { try tls.feed(UnsafeRawBufferPointer(rebasing: bytes.prefix(count))) } catch {
          failure = Ended(why: "\(error)")
        }
      }
      if let failure { throw failure }
    }

    private func decrypt(_ tls: TLSStream) throws(Ended) {
      do throws(TLSStream.Failure) {
        while let (bytes, isOver) = try tls.read() {
          if isOver { throw TLSStream.Failure(description: "the server has ended it") }
          events(.received(bytes))
        }
      } catch { throw Ended(why: "\(error)") }
    }

    private func encrypt(_ message: [UInt8], _ tls: TLSStream?, _ unsent: inout [UInt8]) throws(Ended) {
      guard let tls else { return unsent += message }
      do throws(TLSStream.Failure) { try tls.write(message) } catch { throw Ended(why: "\(error)") }
      tls.drainUnsent(into: &unsent)
    }

    private func flush(_ socket: Int32, _ unsent: inout [UInt8]) throws(Ended) {
      while !unsent.isEmpty {
        let count = Glibc.send(socket, unsent, unsent.count, Int32(MSG_NOSIGNAL))
        if count < 0, errno == EINTR { continue }
        if count < 0, errno == EAGAIN { return }
        guard count > 0 else { throw Ended(why: String(cString: strerror(errno))) }
        unsent.removeFirst(count)
      }
    }
  }
#endif
