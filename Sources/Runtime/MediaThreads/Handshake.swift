import TrunklineBytes
import TrunklineDTLS
import TrunklineMediaSession
import TrunklinePlatform

/// One key's state; only the DTLS thread uses it.
final class Handshake {
  let key: HandshakeKey
  let reply: Mailbox<MediaWork>
  var expected: DTLSFingerprint?
  /// The peer is the server.
  var isClient = false
  /// In the order in which they began.
  var attempts: [HandshakeAttempt] = []
  /// No attempt was begun yet.
  var isFirst = true
  var furtherAttempts = RateLimit(perSecond: Limits.attemptsPerSecond, burst: Limits.attemptsPerSecond)
  /// When the first attempt began.
  var startedAt = Instant.zero
  var isFinished = false
  /// The last flight that was sent.
  var flight: [[UInt8]] = []
  var flightKeptUntil = Instant.zero
  var repeats = 0

  init(_ key: HandshakeKey, _ reply: Mailbox<MediaWork>) { (self.key, self.reply) = (key, reply) }
}

/// An attempt, begun by one ClientHello.
final class HandshakeAttempt {
  let random: [UInt8]
  var association: DTLSAssociation
  let startedAt: Instant

  init(_ random: [UInt8], _ association: consuming DTLSAssociation, at now: Instant) {
    self.random = random
    self.association = association
    startedAt = now
  }

  func receive(_ datagram: [UInt8]) { datagram.withUnsafeBytes { association.receive($0) } }

  /// It ended before the peer had shown its certificate and proved that it has the key.
  var hasFailedEarly: Bool {
    guard association.peerFingerprint == nil else { return false }
    switch association.state {
    case .failed(.openSSL), .failed(.unavailable), .closed: return true
    case .failed, .handshaking, .unverified, .established: return false
    }
  }

  /// Why the association cannot be used; nil if it can.
  var failure: AppLegFailure? {
    switch association.state {
    case .failed(.fingerprintMismatch): .fingerprintMismatch
    case .failed(.noSRTPProfile): .noCommonProfile
    case .failed(let failure): .dtls("\(failure)")
    case .closed where association.keyMaterial == nil: .dtls("the peer closed the handshake")
    case .closed, .handshaking, .unverified, .established: nil
    }
  }
}
