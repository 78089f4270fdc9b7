// The named limits of this module: every bound on a queue, table or message.
enum Limits {
  /// Connections at one time; a new one above it is closed.
  static let connections = 256
  /// Streams of one connection that a client may open at one time.
  static let streams: UInt32 = 1_000
  /// Streams that a client may reset in a second.
  static let resets: UInt64 = 1_000_000
  /// Bytes of a request's headers and of its body.
  static let headerBytes = 16_384
  static let bodyBytes = 16_384
  /// Bytes waiting to be written to one connection; a slower reader is closed.
  static let waitingBytes = 4 << 20
  /// Pushes kept for apps that have not connected yet.
  static let keptPushes = 1_000
  /// Bytes of one line of an app that waits for pushes.
  static let lineBytes = 8_192
}
