import Bytes

// The named limits of this module; every bound on a queue, table or message stands here.
enum Limits {
  /// Requests that wait for the thread.
  static let mailbox = 32_768
  static let messagesPerStep = 1_024
  /// Commands without an answer, of one connection.
  static let inFlight = 20_000
  /// Bytes that the shared store has not taken yet; beyond it the connection is closed.
  static let unsentBytes = 32 * 1_024 * 1_024
  static let readBytes = 65_536
  static let readsPerStep = 8
  /// From the first packet to the last answer of a connection's checks, TLS and the look-up of the name included.
  static let greeting = Duration.seconds(2)
  /// One Sentinel, or one node of a Redis Cluster that is asked for the others.
  static let asking = Duration.milliseconds(500)
  /// A subscription is asked so often whether it is there, and has so long to answer. A connection for commands is asked when nothing else was asked
  /// for so long, and is given up when it does not answer anything for `silence`, or so many commands in a row in time.
  static let ping = Duration.seconds(1)
  static let silence = Duration.seconds(2)
  static let late = 3
  static let addresses = 64
  static let shards = 256
  static let redirections = 3
  /// Of an error of the shared store what is told on.
  static let errorBytes = 64
  /// Of a text that says whether the shared store's directories are those of before.
  static let epochBytes = 256
  /// A refusal of one kind is logged so often.
  static let logInterval = Duration.seconds(60)
  /// Records in the stream, about; and for how long a call's second record is found.
  static let records: Int64 = 1_000_000
  static let recordMark = Duration.seconds(86_400)
  /// Records of one read of a follower, and how long the shared store waits for the next.
  static let followed = 128
  static let followTime = Duration.seconds(5)
  static let hour = Duration.seconds(3_600)
  static let namesPerRead = 1_000
  /// Leases that are looked at in one reading; of these `Cluster.Limits.nodes` are kept.
  static let leases = 10_000
  /// A lease or message of another node is believed for so long after it was written, and a grid longer: clocks of nodes may differ by as much.
  static let sealed = Duration.seconds(7_200)
  static let sealedGrid = Duration.seconds(600)
  /// Between two tries of a follower of records.
  static let retry = Duration.milliseconds(100)...Duration.seconds(5)
}
