/// The named limits of this module; every bound on a queue, table or message stands here.
public enum Limits {
  /// Records kept in memory while the file cannot be written; beyond that the newest are lost and counted.
  public static let waitingRecords = 10_000
  /// Start lines kept in memory while the journal cannot be written.
  public static let waitingLines = 10_000
  /// Removals of start lines that wait for new lines to go with.
  static let waitingRemovals = 1_000
  /// Devices whose last state waits while the store cannot be written.
  public static let waitingChanges = 200_000
  /// Events kept in memory while their journal cannot be written; beyond that the newest are lost and counted.
  static let waitingEvents = 20_000
  /// Commands waiting for the store thread.
  static let mailbox = 32_768
  /// How long a record may wait for others to be written with (group commit), and with it the removal of its start line.
  static let groupCommitDelay = Duration.milliseconds(10)
  /// From this size on a journal that is mostly history is written anew.
  static let journalBytes = 1 << 20
  /// How long a failed write waits for its next try.
  static let retry = Duration.seconds(1)
  /// How much of the end of the records file a start searches for the orphans' records.
  static let searchedBytes = 16 << 20
  /// Records given to the stream without an answer, how many a second, and how much at once after a pause: a cluster's nodes all begin again
  /// when the engine is back.
  static let streamedUnanswered = 64
  static let streamedPerSecond = 1_000
  static let streamBurst = Duration.milliseconds(64)
  /// Lines of one turn; the store has other things to do.
  static let streamedPerTurn = 256
  /// Times `retry` between two tries, at most.
  static let streamRetries = 5
  /// A longer line of the records file is no record; no more is a value of the engine.
  public static let streamedRecordBytes = 64 * 1_024
  static let streamReadBytes = 64 * 1_024
  /// How long a stop waits for the last records to be in the stream.
  static let lastRecords = Duration.seconds(2)
  /// Files of log rotation that are looked at.
  static let rotatedFiles = 1_000
}
