import Bytes
import Glibc
import Platform
import SIP
import SIPDialogs

/// One TCP connection with a trunk, accepted or made by us, with TLS or without: framing inwards, a bounded queue outwards, one
/// deadline at a time.
///
/// | phase | deadline | then |
/// |---|---|---|
/// | connecting, with its TLS handshake | 10 s | failed |
/// | accepted, in the TLS handshake | 10 s | closed |
/// | accepted, no whole message yet | 32 s | closed |
/// | in the middle of a message | 20 s from its first byte | closed |
/// | open | 5 h without a byte | closed |
/// | open, made by us | 95 s without a byte | CRLF CRLF; 10 s later closed if this peer answers them (RFC 5626 §3.5.1) |
struct TCPConnection {
  /// What a step of the connection means for its owner.
  enum Outcome: Hashable {
    case goesOn
    /// The peer closed, or broke a rule; nothing of ours is lost.
    case ended
    /// The connection failed while it carried, or was to carry, our messages.
    case failed
  }

  let socket: TCPSocket
  let flow: Flow
  let trunk: String
  private(set) var isConnecting: Bool
  private(set) var deadline: Instant
  private var framer = StreamFramer()
  private var waiting: [UInt8] = []
  private var written = 0
  private var messageDeadline: Instant?
  private var hasHadMessage = false
  private let tls: TLSSession?
  private let isOurs: Bool
  private var pingDue: Instant?
  private var awaitsPong = false
  private var answersPings = false

  init(accepted socket: TCPSocket, flow: Flow, trunk: String, tls: TLSSession? = nil, at now: Instant) {
    (self.socket, self.flow, self.trunk, isConnecting) = (socket, flow, trunk, false)
    (self.tls, isOurs) = (tls, false)
    deadline = now + (tls == nil ? Limits.firstMessageTime : Limits.handshakeTime)
    keepAlive()
  }

  init(connecting socket: TCPSocket, flow: Flow, trunk: String, tls: TLSSession? = nil, at now: Instant) {
    (self.socket, self.flow, self.trunk, isConnecting) = (socket, flow, trunk, true)
    (self.tls, isOurs) = (tls, true)
    (deadline, hasHadMessage) = (now + Limits.connectTime, true)
    keepAlive()
  }

  /// The TLS handshake is still to be done.
  var isHandshaking: Bool { tls?.state == .handshaking }
  /// Why TLS failed, for the log.
  var tlsFailure: String? { tls?.failure }

  /// What epoll is to watch for.
  var interest: IOEvents { isConnecting || written < waiting.count ? [.readable, .writable] : .readable }
  var hasUnsent: Bool { written < waiting.count }
  /// The deadline that passed was that of a half-received message, or of the first one.
  var isLate: Bool { !isHandshaking && (messageDeadline != nil || !hasHadMessage) }

  /// Adds a message to the queue; false if the peer has stopped reading and the queue is full.
  mutating func append(_ bytes: [UInt8]) -> Bool {
    guard waiting.count - written + bytes.count <= Limits.waitingBytes else { return false }
    if written == waiting.count {
      waiting.removeAll(keepingCapacity: true)
      written = 0
    }
    guard let tls else {
      waiting += bytes
      return true
    }
    guard tls.write(bytes) else { return false }
    tls.takeUnsent(into: &waiting)
    return true
  }

  /// The deadline has passed.
  mutating func expired(at now: Instant) -> Outcome {
    if isConnecting { return .failed }
    guard !isHandshaking, messageDeadline == nil, hasHadMessage, let pingDue, pingDue <= now, !(awaitsPong && answersPings) else {
      return awaitsPong ? .failed : .ended
    }
    awaitsPong = true
    self.pingDue = now + (answersPings ? Limits.pongTime : Limits.pingInterval)
    deadline = now + (answersPings ? Limits.pongTime : Limits.pingInterval)
    return append([13, 10, 13, 10]) ? .goesOn : .failed
  }

  /// Says goodbye before an orderly end.
  mutating func close() {
    guard let tls, !isConnecting else { return }
    tls.close()
    tls.takeUnsent(into: &waiting)
    _ = write(at: .zero)
  }

  /// Writes what the kernel takes; settles the connection first if it is being made.
  mutating func write(at now: Instant) -> Outcome {
    if isConnecting {
      guard socket.connectionError() == nil else { return .failed }
      isConnecting = false
      if let tls {
        tls.start()
        tls.takeUnsent(into: &waiting)
      }
      touch(now)
    }
    while written < waiting.count {
      var step: Result<Int, SystemError> = .success(0)
      waiting.withUnsafeBytes { raw in
        step = Result { () throws(SystemError) in try socket.write(UnsafeRawBufferPointer(rebasing: raw[written...])) }
      }
      guard case .success(let count) = step else { return .failed }
      if count == 0 { return .goesOn }
      written += count
      touch(now)
    }
    waiting.removeAll(keepingCapacity: waiting.count <= Limits.readBytes)
    written = 0
    return .goesOn
  }

  /// Reads a turn's share of what is there and hands out whole messages, and what comes before a break of framing (the user agent
  /// answers that with 400).
  mutating func read(
    into buffer: UnsafeMutableRawBufferPointer, at now: Instant, message: ([UInt8]) -> Void, broken: ([UInt8]) -> Void
  ) -> Outcome {
    let share = UnsafeMutableRawBufferPointer(rebasing: buffer[..<min(buffer.count, Limits.readBytesPerTurn)])
    do throws(SystemError) {
      switch try socket.read(into: share) {
      case .wait: return .goesOn
      case .closed: return hasUnsent ? .failed : .ended
      case .bytes(let count):
        if awaitsPong, count == 2 || tls != nil { answersPings = true }
        awaitsPong = false
        let bytes = UnsafeRawBufferPointer(rebasing: buffer[..<min(count, buffer.count)])
        guard take(bytes, into: buffer, at: now) else { return tls?.state == .closed ? .ended : .failed }
      }
    } catch {
      return .failed
    }
    while let frame = framer.next() {
      switch frame {
      case .message(let bytes):
        (hasHadMessage, messageDeadline) = (true, nil)
        message(bytes)
      case .ping: _ = append([13, 10])
      case .broken(let bytes, _):
        broken(bytes)
        return .ended
      }
    }
    if framer.isMidMessage {
      if messageDeadline == nil { messageDeadline = now + Limits.messageTime }
    } else {
      messageDeadline = nil
    }
    touch(now)
    return .goesOn
  }

  /// What the socket gave, decrypted; false if TLS is over.
  private mutating func take(_ bytes: UnsafeRawBufferPointer, into scratch: UnsafeMutableRawBufferPointer, at now: Instant)
    -> Bool
  {
    guard let tls else {
      framer.append(bytes)
      return true
    }
    let wasHandshaking = isHandshaking
    tls.received(bytes, plain: { framer.append($0) }, into: scratch)
    tls.takeUnsent(into: &waiting)
    if wasHandshaking, tls.state == .open, !hasHadMessage { deadline = now + Limits.firstMessageTime }
    return tls.state == .open || tls.state == .handshaking
  }

  private mutating func touch(_ now: Instant) {
    // the time for the handshake and for the first message does not grow
    guard hasHadMessage, !isHandshaking, !awaitsPong else { return }
    pingDue = isOurs && messageDeadline == nil ? now + Limits.pingInterval : nil
    deadline = min(messageDeadline ?? now + Limits.idleTime, pingDue ?? .distantFuture)
  }

  /// A peer that vanished without a word is found after two minutes, also in the middle of a quiet call.
  private func keepAlive() {
    func set(_ level: Int32, _ option: Int32, _ value: Int32) {
      var value = value
      setsockopt(socket.fd, level, option, &value, socklen_t(MemoryLayout<Int32>.size))
    }
    set(SOL_SOCKET, SO_KEEPALIVE, 1)
    set(Int32(IPPROTO_TCP), TCP_KEEPIDLE, Limits.keepAliveIdleSeconds)
    set(Int32(IPPROTO_TCP), TCP_KEEPINTVL, Limits.keepAliveIntervalSeconds)
    set(Int32(IPPROTO_TCP), TCP_KEEPCNT, Limits.keepAliveProbes)
  }
}
