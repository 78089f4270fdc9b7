import TrunklineBytes

// The named limits of this module: every bound on a queue, table or message.
enum Limits {
  /// Bytes of a server's address and of its credentials (RFC 8489 §14.3: fewer than 509 bytes).
  static let hostBytes = 253
  static let usernameBytes = 508
  static let passwordBytes = 512
  /// Addresses that may send through the relay, and channels to them.
  static let peers = 8
  /// A request or indication that we write.
  static let messageBytes = 1_500
  /// The longest datagram that is sent through the relay.
  static let payloadBytes = 1_400
  /// The longest message that a server may send over a stream, and the bytes of a stream that may wait to become one.
  static let frameBytes = 4_096
  static let streamBytes = 65_536
  /// Times that a request is sent again because its nonce was stale (438).
  static let challenges = 3
  /// Retransmission over UDP (RFC 8489 §6.2.1): RTO, Rc and Rm, 39.5 s in all.
  static let firstRetransmission: Duration = .milliseconds(500)
  static let transmissions = 7
  static let lastWait: Duration = .seconds(8)
  /// Over a stream nothing is sent again. Ti would be 39.5 s; a call does not wait that long.
  static let streamAnswer: Duration = .seconds(10)
  /// The longest LIFETIME of a server that is accepted, and the one that counts without any (RFC 8656 §3.2).
  static let lifetimeSeconds: UInt32 = 3_600
  static let usualLifetimeSeconds: UInt32 = 600
  /// How long before its end an allocation is refreshed.
  static let refreshMargin: Duration = .seconds(60)
  /// A server that carries media and has been silent for this long is queried whether it still has our allocation: over UDP
  /// nothing else shows it.
  static let silence: Duration = .seconds(4)
  /// A permission lives for 5 minutes (RFC 8656 §9), a channel for 10 (§12).
  static let permissionRefresh: Duration = .seconds(240)
  static let channelRefresh: Duration = .seconds(540)
  /// The first channel number (RFC 8656 §12).
  static let firstChannel: UInt16 = 0x4000
}
