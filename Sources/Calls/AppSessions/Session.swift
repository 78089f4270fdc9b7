import TrunklineAppProtocol
import TrunklineBytes

/// A socket, from its upgrade to its end.
struct Connection {
  enum Phase: Equatable {
    case awaitingHello(until: Instant)
    case bound(SessionID)
    /// A close was sent; what still arrives is ignored.
    case closing
  }
  let address: IPAddress
  var phase: Phase
  var lastReceived: Instant
  /// A ping was sent since the peer's last frame.
  var isPinged = false
  /// When the first numbered message since then was sent.
  var unansweredSince: Instant?
  var messages: TokenBucket
  var bytes: TokenBucket
  var refreshes: TokenBucket

  init(address: IPAddress, at now: Instant) {
    self.address = address
    phase = .awaitingHello(until: now + Limits.helloWait)
    lastReceived = now
    messages = TokenBucket(perSecond: Limits.messagesPerSecond, burst: Limits.messageBurst, at: now)
    bytes = TokenBucket(perSecond: Limits.bytesPerSecond, burst: Limits.byteBurst, at: now)
    refreshes = TokenBucket(perSecond: Limits.refreshesPerSecond, burst: Limits.refreshBurst, at: now)
  }
}

/// One `sid`: numbering both ways, over the sockets that carry it one after the other.
struct Session {
  let id: SessionID
  let device: DeviceKey
  /// Empty in a cluster, where the token itself names its owner.
  let resumeToken: [UInt8]
  var info: DeviceInfo
  /// nil while the session has no socket and can be resumed.
  var connection: ConnectionID?
  /// The `id` of the `hello` that control has not welcomed yet.
  var awaitsWelcome: Identifier?
  /// Frames after that `hello`: none is read before control has said who may act.
  var early: [ClientFrame] = []
  var earlyBytes = 0
  var outbox = Outbox()
  /// The highest `seq` received in order, and the highest of those acked.
  var receivedSeq = 0
  var ackSentSeq = 0
  var ackDue: Instant?
  /// Calls that hold this session open.
  var live: Set<Identifier> = []
  /// When the token expires, leeway included; milliseconds since 1970.
  var expiresAt: Int64
  /// When the token's end is announced, milliseconds since 1970; `nil`: it was announced, or there is nothing to refresh.
  var expiryNoticeAt: Int64?
  /// The version of the last `dir.changed`; `welcome` contains it if it was known before, and the `welcome` of a resume again.
  var directoryVersion = 0
  /// Why this session is closed as soon as no call holds it open.
  var closesAfterCalls: CloseCode?
  /// Set while disconnected and without live calls.
  var resumableUntil: Instant?

  func isExpired(unixMilliseconds now: Int64) -> Bool { now >= expiresAt }

  /// Set to a minute before the token's end, and for a short token to half of the rest: a client that returns the same token
  /// while it is valid would otherwise be asked at once and in vain.
  mutating func announceExpiry(after now: Int64) {
    let expiry = expiresAt - Limits.expiryLeewayMilliseconds
    expiryNoticeAt = expiry - min(Limits.expiryNotice.milliseconds, max(expiry - now, 0) / 2)
  }
}
