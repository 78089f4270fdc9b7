// The named limits of this module: every bound on a queue, table or message.
enum Limits {
  /// SSRCs whose packet index one sender tracks: a leg has one.
  static let sourcesSent = 4
  /// … and one receiver, with a replay window each; memory grows with them (72 bytes for each of at most twice as many slots). A
  /// queue that plays announcements starts another SSRC for each.
  static let sourcesReceived = 1_024
  /// SSRCs received before those, of which the highest index is kept (16 bytes for each slot).
  static let sourcesRetired = 8_192
  static let sourcesRetiredAtOnce = 128
  /// Packet indices below the highest one that are distinguished from replays (RFC 3711 §3.3.2 requires at least 64).
  static let replayWindow: UInt64 = 128
  /// The largest UDP payload; nothing longer can be a packet.
  static let packetBytes = 65_535
  /// Packets under one key: 2^48 for SRTP, 2^31 for SRTCP (RFC 3711 §9.2).
  static let packetIndex: UInt64 = 1 << 48 - 1
  static let controlIndex: UInt64 = 1 << 31 - 1
  /// Packets of unknown senders, since the last accepted one, that are all tried under another roll-over count.
  static let otherIndices: UInt32 = 64
  /// How many of a new sender's first packets may be lost across its first roll-over (some begin at any number): 20 s of audio.
  static let missedBeforeFirst: UInt64 = 1_000
}
