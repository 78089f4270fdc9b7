// The named limits of this module: every bound on a queue, table or message.
enum Limits {
  /// Bytes of a datagram we send; below every path MTU met in practice (IPv6's minimum is 1280 with headers).
  static let datagramBytes = 1200
  /// Retransmission: the first after 50 ms, because a handshake that waits OpenSSL's default of 1 s misses the media gate.
  static let firstTimeoutMicroseconds: UInt32 = 50_000
  /// Later intervals double up to this; OpenSSL gives up after 12 of them, about 15 s.
  static let longestTimeoutMicroseconds: UInt32 = 2_000_000
  /// Records of one datagram that are read after the handshake.
  static let recordsPerDatagram = 16
  /// A self-signed certificate is trusted by its fingerprint alone; it must only outlive the process.
  static let certificateSeconds = 10 * 365 * 24 * 3600
  /// A day in the past, for peers whose clock is behind.
  static let certificateBacklogSeconds = 24 * 3600
}
