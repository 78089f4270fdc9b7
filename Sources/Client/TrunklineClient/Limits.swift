// The named limits of this module; every bound on a queue, table or message stands here.
import Bytes

enum Limits {
  /// Numbered messages kept until acked (docs/protocol.md, Frames); beyond it the session starts afresh.
  static let outboxMessages = 256
  /// Requests without an answer.
  static let openRequests = 256
  /// Longest text frame taken.
  static let frameBytes = 65_536
  static let reconnectFirst = Duration.milliseconds(200)
  static let reconnectLongest = Duration.seconds(5)
  /// A received message is acked within this time (docs/protocol.md: 200 ms).
  static let ackDelay = Duration.milliseconds(100)
  /// No `welcome` by then: the socket is given up.
  static let welcomeDeadline = Duration.seconds(10)
}
