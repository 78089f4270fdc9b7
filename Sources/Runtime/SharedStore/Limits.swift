import TrunklineBytes

// The named limits of this module; every bound on a queue, table or message is here.
enum Limits {
  /// Requests that wait for the thread.
  static let mailbox = 32_768
  static let messagesPerStep = 1_024
  /// Commands without an answer, of one connection.
  static let inFlight = 20_000
  /// Bytes that the shared store has not read yet; beyond it the connection is closed.
  static let unsentBytes = 32 * 1_024 * 1_024
  static let readBytes = 65_536
  static let readsPerStep = 8
  /// From the first packet to the last answer of a connection's checks, including TLS and name resolution.
  static let greeting = Duration.seconds(2)
  /// Time limit of a query of one Sentinel, or of one node of a Redis Cluster for the others.
  static let asking = Duration.milliseconds(500)
  /// Interval of PINGs on a subscription, and the time for their answer. A command connection is pinged when it was idle for
  /// `ping`, and given up when it answers nothing for `silence`, or `late` commands in a row are not answered in time.
  static let ping = Duration.seconds(1)
  static let silence = Duration.seconds(2)
  static let late = 3
  static let addresses = 64
  static let shards = 256
  static let redirections = 3
  /// The part of a shared store's error that is passed on.
  static let errorBytes = 64
  /// The epoch of the shared store's directories.
  static let epochBytes = 256
  /// A refusal of one kind is logged this often.
  static let logInterval = Duration.seconds(60)
  /// The approximate number of records in the stream; and how long a call's second record is recognised.
  static let records: Int64 = 1_000_000
  static let recordMark = Duration.seconds(86_400)
  /// Records of one read of a follower, and how long the shared store waits for the next record.
  static let followed = 128
  static let followTime = Duration.seconds(5)
  static let hour = Duration.seconds(3_600)
  static let namesPerRead = 1_000
  /// Leases that are read in one reading; `Cluster.Limits.nodes` of these are kept.
  static let leases = 10_000
  /// A lease or message of another node is valid for this long after it was written, and up to a grid step longer: the clocks of
  /// nodes may differ by as much.
  static let sealed = Duration.seconds(7_200)
  static let sealedGrid = Duration.seconds(600)
  /// Pause between a follower's attempts to connect.
  static let retry = Duration.milliseconds(100)...Duration.seconds(5)
}
