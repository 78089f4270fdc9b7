import Glibc
import TrunklineBytes
import TrunklinePlatform
import TrunklineSIP
import TrunklineSIPDialogs

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
/// | a guest's, until it has authenticated | 30 s without a byte, 60 s in all | closed |
/// | open, made by us | 95 s without a byte | CRLF CRLF; 10 s later closed if this peer answers them (RFC 5626 §3.5.1) |
struct TCPConnection {
  /// The result of a step for the connection's owner.
  enum Outcome: Hashable {
    case continues
    /// The peer closed, or broke a rule; none of our messages is lost.
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
  /// For a peer that no list names, until it has authenticated: when its time for that ends.
  private(set) var guestUntil: Instant?
  private var guestMessages = 0
  private var hasBegun = false
  /// When the peer last sent data, or the connection began.
  private(set) var receivedAt: Instant
  /// The peer's failure that ended the connection.
  private(set) var peerFailure: UserAgent.PeerFailure?
  /// Why it was ended early, if the peer is to blame.
  private(set) var fault: TransportMetrics.Drop?

  init(
    accepted socket: TCPSocket, flow: Flow, trunk: String, tls: TLSSession? = nil, handshakeTime: Duration = Limits.handshakeTime,
    isGuest: Bool = false, at now: Instant
  ) {
    (self.socket, self.flow, self.trunk, isConnecting) = (socket, flow, trunk, false)
    (self.tls, isOurs, receivedAt) = (tls, false, now)
    guestUntil = isGuest ? now + Limits.guestTime : nil
    deadline = now + (tls != nil ? handshakeTime : isGuest ? Limits.guestIdleTime : Limits.firstMessageTime)
    socket.limit(Limits.patience)
  }

  init(connecting socket: TCPSocket, flow: Flow, trunk: String, tls: TLSSession? = nil, at now: Instant) {
    (self.socket, self.flow, self.trunk, isConnecting) = (socket, flow, trunk, true)
    (self.tls, isOurs, receivedAt) = (tls, true, now)
    (deadline, hasHadMessage) = (now + Limits.connectTime, true)
    socket.limit(Limits.patience)
  }

  /// The connection is open, with its TLS.
  var isOpen: Bool { !isConnecting && !isHandshaking }
  /// The TLS handshake is not done yet.
  var isHandshaking: Bool { tls?.state == .handshaking }
  /// Why TLS failed, for the log.
  var tlsFailure: String? { tls?.failure }

  /// The events that epoll must watch for.
  var interest: IOEvents { isConnecting || written < waiting.count ? [.readable, .writable] : .readable }
  var hasUnsent: Bool { written < waiting.count }
  /// Why the deadline that passed is the peer's fault; nil: an open connection was idle, or ours could not be opened.
  var lateness: TransportMetrics.Drop? {
    if isHandshaking { return isConnecting ? nil : .handshake }
    if guestUntil != nil, deadline != messageDeadline { return .unauthenticated }
    return messageDeadline != nil || !hasHadMessage ? .framing : nil
  }

  /// The peer has answered a challenge, or sent a request within a dialog: its connection now counts as that of a listed peer.
  mutating func authenticated(at now: Instant) {
    guestUntil = nil
    touch(now)
  }

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
    tls.drainUnsent(into: &waiting)
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
    return append([13, 10, 13, 10]) ? .continues : .failed
  }

  /// Sends the TLS close before an orderly end.
  mutating func close() {
    guard let tls, !isConnecting else { return }
    tls.close()
    tls.drainUnsent(into: &waiting)
    _ = write(at: .zero)
  }

  /// Writes as much as the kernel accepts; first completes a connection that is being made.
  mutating func write(at now: Instant) -> Outcome {
    if isConnecting {
      if let error = socket.connectionError() {
        // a reset after the connection was accepted is another error
        peerFailure = error.code == ECONNRESET ? .closed : UserAgent.PeerFailure(error.code)
        return .failed
      }
      isConnecting = false
      if let tls {
        tls.start()
        tls.drainUnsent(into: &waiting)
      }
      touch(now)
    }
    while written < waiting.count {
      var step: Result<Int, SystemError> = .success(0)
      waiting.withUnsafeBytes { raw in
        step = Result { () throws(SystemError) in try socket.write(UnsafeRawBufferPointer(rebasing: raw[written...])) }
      }
      guard case .success(let count) = step else {
        peerFailure = .closed
        return .failed
      }
      if count == 0 { return .continues }
      written += count
      touch(now)
    }
    waiting.removeAll(keepingCapacity: waiting.count <= Limits.readBytes)
    written = 0
    return .continues
  }

  /// Reads a step's share of the available bytes and returns whole messages, and the bytes before a framing error (the user agent
  /// answers those with 400).
  mutating func read(
    into buffer: UnsafeMutableRawBufferPointer, at now: Instant, message: ([UInt8]) -> Void, broken: ([UInt8]) -> Void
  ) -> Outcome {
    let share = UnsafeMutableRawBufferPointer(rebasing: buffer[..<min(buffer.count, Limits.readBytesPerStep)])
    do throws(SystemError) {
      switch try socket.read(into: share) {
      case .wait: return .continues
      case .closed:
        peerFailure = .closed
        return hasUnsent ? .failed : .ended
      case .bytes(let count):
        receivedAt = now
        if awaitsPong, count == 2 || tls != nil { answersPings = true }
        awaitsPong = false
        let bytes = UnsafeRawBufferPointer(rebasing: buffer[..<min(count, buffer.count)])
        guard receive(bytes, into: buffer, at: now) else { return tls?.state == .closed || fault != nil ? .ended : .failed }
      }
    } catch {
      if error.code == ECONNRESET { peerFailure = .closed }
      return .failed
    }
    while let frame = framer.next() {
      switch frame {
      case .message(let bytes):
        hasHadMessage = true
        messageDeadline = nil
        if guestUntil != nil {
          guestMessages += 1
          if guestMessages > Limits.guestMessages {
            fault = .unauthenticated
            return .ended
          }
        }
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
    return .continues
  }

  /// Handles bytes of the socket, decrypted; false if TLS has ended, or the first byte shows another protocol.
  private mutating func receive(_ bytes: UnsafeRawBufferPointer, into scratch: UnsafeMutableRawBufferPointer, at now: Instant)
    -> Bool
  {
    guard let tls else { return add(bytes) }
    let wasHandshaking = isHandshaking
    tls.received(bytes, plain: { _ = add($0) }, into: scratch)
    tls.drainUnsent(into: &waiting)
    if wasHandshaking, tls.state == .open, !hasHadMessage { deadline = now + Limits.firstMessageTime }
    return fault == nil && (tls.state == .open || tls.state == .handshaking)
  }

  /// Adds to the stream, unless it begins with a byte that no message begins with (RFC 3261 §25.1: a method or version, or a line
  /// end).
  private mutating func add(_ bytes: UnsafeRawBufferPointer) -> Bool {
    if !hasBegun, let first = bytes.first {
      hasBegun = true
      if !Self.mayBegin(first) { fault = first == Self.tlsHandshake && tls == nil ? .tlsOnPlain : .notSIP }
    }
    guard fault == nil else { return false }
    framer.append(bytes)
    return true
  }

  /// RFC 8446 §5.1: the content type of the record with a hello.
  private static let tlsHandshake: UInt8 = 0x16

  private static func mayBegin(_ byte: UInt8) -> Bool {
    switch byte {
    case 13, 10, UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "a")...UInt8(ascii: "z"):
      true
    default: "-.!%*_+`'~".utf8.contains(byte)
    }
  }

  private mutating func touch(_ now: Instant) {
    guard !isHandshaking, !awaitsPong else { return }
    if let guestUntil {
      deadline = min(guestUntil, now + Limits.guestIdleTime, messageDeadline ?? .distantFuture)
      return
    }
    // the deadline of the first message does not move
    guard hasHadMessage else { return }
    pingDue = isOurs && messageDeadline == nil ? now + Limits.pingInterval : nil
    deadline = min(messageDeadline ?? now + Limits.idleTime, pingDue ?? .distantFuture)
  }

}
