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
  /// when the shared store is back.
  static let streamedUnanswered = 64
  static let streamedPerSecond = 1_000
  static let streamBurst = Duration.milliseconds(64)
  /// Lines of one turn; the store has other things to do.
  static let streamedPerStep = 256
  /// Times `retry` between two tries, at most.
  static let streamRetries = 5
  /// A longer line of the records file is no record; no more is a value of the shared store.
  public static let streamedRecordBytes = 64 * 1_024
  static let streamReadBytes = 64 * 1_024
  /// How long a stop waits for the last records to be in the stream.
  static let lastRecords = Duration.seconds(2)
  /// Files of log rotation that are looked at.
  static let rotatedFiles = 1_000
  /// Contacts of one directory, and of all; a label's bytes, as iOS takes it; bytes of a line of an import.
  public static let contacts = 1_000_000
  public static let allContacts = 5_000_000
  public static let labelBytes = 255
  static let contactLineBytes = 4_096
  /// Directories, and bytes of the name of one.
  public static let directories = 100_000
  public static let directoryNameBytes = 256
  /// Changes of a directory that are kept, of one import and in all: who has an older version gets it whole.
  static let loggedPerImport = 20_000
  static let logged = 100_000
  /// Devices whose directory is known to have been told; the oldest are forgotten, and get theirs whole.
  static let views = 1_000_000
  /// Parts of one answer, their bytes before escaping, and rows read for them at a time.
  static let directoryParts = 8
  static let directoryPartBytes = 24_000
  static let directoryRows = 2_048
  /// Contacts of one answer by HTTP.
  static let directoryPage = 10_000
  /// Calls of one page of a history if the app names no number; and handles that are resolved at once.
  static let historyPage = 50
  static let resolvedHandles = 64
  /// Names of one `dir.find` if the app names no number, the words and the least digits that it takes, and contacts of a directory that are looked at.
  static let foundNames = 20
  static let searchedWords = 4
  static let searchedDigits = 3
  static let searchedContacts = 250_000
  /// Requests, events and records that wait for the directory's thread, and records that wait for its file.
  static let directoryMailbox = 32_768
  /// Requests of one user's devices that wait: 16 devices with four each. And messages between two looks at what else is due.
  static let directoryPerUser = 64
  static let directoryMessages = 16
  /// Answers that are kept for whoever asks the same of the same version: a user's devices, and those of one account.
  static let directoryAnswers = 16
  static let waitingHistory = 10_000
  /// How often other processes' imports are looked for, and old calls are dropped.
  static let directoryLook = Duration.milliseconds(500)
  static let historySweep = Duration.seconds(600)
  /// Of a part of a directory in the shared store: contacts, and bytes of their lines. Of a head: bytes of its first line, and parts that it names itself, as
  /// many as a page names of more. And parts of one directory: its lines have 540 bytes at most.
  static let sharedPartContacts = 1_000
  static let sharedPartBytes = 60_000
  static let sharedHeadBytes = 128
  static let headParts = 1_000
  static let sharedParts = 20_000
  /// How often a node looks for versions of others that it was not told of.
  static let sharedLook = Duration.seconds(5)
  /// Requests to the shared store for directories: so many in so long.
  static let sharedPerWindow = 50
  static let sharedWindow = Duration.milliseconds(100)
  /// A directory that cannot be taken is tried again so long after; and how many are remembered for it.
  static let sharedFault = Duration.seconds(30)
  static let sharedFaults = 1_000
  /// A device that claims a later version gets none of its own.
  static let ownVersions = 9_000_000_000_000_000
  /// An import that another one came before begins again, so often at most.
  static let importTries = 3
  /// Imports that wait for their turn.
  static let waitingImports = 1_000
  /// The shared store's thread answers within a quarter of a second: an answer that is not here by then found no room.
  static let sharedStoreAnswer = Duration.seconds(15)
  /// Rows of histories that are given to the shared store without an answer, and bytes of one.
  static let historyUnanswered = 32
  static let historyRowBytes = 4_096
  /// How long a write waits for another process's import.
  static let directoryBusySeconds = 20.0
  /// Contacts of a write, some milliseconds, between two signs of life.
  static let rowsPerSign = 1_000
}
