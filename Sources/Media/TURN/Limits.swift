import Bytes

// The named limits of this module; every bound on a queue, table or message stands here.
enum Limits {
  /// Of a server's address and of its credentials (RFC 8489 §14.3: fewer than 509 bytes).
  static let hostBytes = 253
  static let usernameBytes = 508
  static let passwordBytes = 512
  /// Addresses that may send through the relay, and of channels to them.
  static let peers = 8
  /// A request or indication that we write.
  static let messageBytes = 1_500
  /// The longest datagram that is sent through the relay.
  static let payloadBytes = 1_400
  /// The longest message that a server may send over a stream, and what of a stream waits to become one.
  static let frameBytes = 4_096
  static let streamBytes = 65_536
  /// Times that a request is sent again because its nonce was stale (438).
  static let challenges = 3
  /// Retransmission over UDP (RFC 8489 §6.2.1): RTO, Rc and Rm, 39.5 s in all.
  static let firstRetransmission: Duration = .milliseconds(500)
  static let transmissions = 7
  static let lastWait: Duration = .seconds(8)
  /// Over a stream nothing is sent again. Ti would be 39.5 s; a call does not wait so long.
  static let streamAnswer: Duration = .seconds(10)
  /// What a server's LIFETIME is believed to be at most, and without one (RFC 8656 §3.2).
  static let lifetimeSeconds: UInt32 = 3_600
  static let usualLifetimeSeconds: UInt32 = 600
  /// An allocation is refreshed so long before it ends.
  static let refreshMargin: Duration = .seconds(60)
  /// A server that media goes over and that is silent so long is asked whether it still has us: over UDP nothing else tells.
  static let silence: Duration = .seconds(4)
  /// A permission lives for 5 minutes (RFC 8656 §9), a channel for 10 (§12).
  static let permissionRefresh: Duration = .seconds(240)
  static let channelRefresh: Duration = .seconds(540)
  /// The first channel number (RFC 8656 §12).
  static let firstChannel: UInt16 = 0x4000
}
