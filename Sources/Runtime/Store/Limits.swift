/// The named limits of this module, with every bound on a queue, table or message.
public enum Limits {
  /// Records kept in memory while the file cannot be written; beyond that the newest are lost and counted.
  public static let waitingRecords = 10_000
  /// Start lines kept in memory while the journal cannot be written.
  public static let waitingLines = 10_000
  /// Removals of journal entries that wait to be written with new lines.
  static let waitingRemovals = 1_000
  /// Devices whose last state waits while the store cannot be written.
  public static let waitingChanges = 200_000
  /// Events kept in memory while their journal cannot be written; beyond that the newest are lost and counted.
  static let waitingEvents = 20_000
  /// Commands waiting for the store thread.
  static let mailbox = 32_768
  /// How long a record may wait for others to be written with (group commit), and with it the removal of its journal entry.
  static let groupCommitDelay = Duration.milliseconds(10)
  /// From this size on a journal that is mostly history is rewritten.
  static let journalBytes = 1 << 20
  /// How long a failed write waits for its next try.
  static let retry = Duration.seconds(1)
  /// How much of the end of the records file a start searches for the orphans' records.
  static let searchedBytes = 16 << 20
  /// Records sent to the stream without an answer yet, how many a second, and the burst after a pause: all nodes of a cluster
  /// resume at once when the shared store is back.
  static let streamedUnanswered = 64
  static let streamedPerSecond = 1_000
  static let streamBurst = Duration.milliseconds(64)
  /// Lines of one step; the store has other work.
  static let streamedPerStep = 256
  /// The longest pause between two tries, as a multiple of `retry`.
  static let streamRetries = 5
  /// A longer line of the records file is no record, and the shared store has no longer value.
  public static let streamedRecordBytes = 64 * 1_024
  /// How long a stop waits until the last records are in the stream.
  static let lastRecords = Duration.seconds(2)
  /// Rotated files that are read.
  static let rotatedFiles = 1_000
  /// Contacts of one directory, and of all; a label's bytes, as iOS accepts them; bytes of a line of an import.
  public static let contacts = 1_000_000
  public static let allContacts = 5_000_000
  public static let labelBytes = 255
  static let contactLineBytes = 4_096
  /// Directories, and bytes of the name of one.
  public static let directories = 100_000
  public static let directoryNameBytes = 256
  /// Changes of a directory that are kept, of one import and in all: a client with an older version gets the whole directory.
  static let loggedPerImport = 20_000
  static let logged = 100_000
  /// Devices whose directory state is known; the oldest are forgotten, and get the whole directory.
  static let views = 1_000_000
  /// Parts of one answer, their bytes before escaping, and rows read for them at a time.
  static let directoryParts = 8
  static let directoryPartBytes = 24_000
  static let directoryRows = 2_048
  /// Contacts of one answer by HTTP.
  static let directoryPage = 10_000
  /// Calls of one page of a history if the app states no number; and handles that are resolved at once.
  static let historyPage = 50
  static let resolvedHandles = 64
  /// Names of one `dir.find` if the app states no number, the most words and the least digits that it accepts, and contacts of a
  /// directory that are searched.
  static let foundNames = 20
  static let searchedWords = 4
  static let searchedDigits = 3
  static let searchedContacts = 250_000
  /// Requests, events and records that wait for the directory's thread, and records that wait for its file.
  static let directoryMailbox = 32_768
  /// Requests of one user's devices that wait: 16 devices with four each. And messages handled before other due work is checked.
  static let directoryPerUser = 64
  static let directoryMessages = 16
  /// Answers that are kept for the same question about the same version: for a user's devices, and those of one account.
  static let directoryAnswers = 16
  static let waitingHistory = 10_000
  /// How often imports of other processes are looked for, and old calls are removed.
  static let directoryLook = Duration.milliseconds(500)
  static let historySweep = Duration.seconds(600)
  /// For a part of a directory in the shared store: contacts, and bytes of their lines. For a head: bytes of its first line, and
  /// parts that it names itself, as many as a page names. And parts of one directory: its lines have 540 bytes at most.
  static let sharedPartContacts = 1_000
  static let sharedPartBytes = 60_000
  static let sharedHeadBytes = 128
  static let headParts = 1_000
  static let sharedParts = 20_000
  /// How often a node looks for versions of other nodes that it was not notified of.
  static let sharedLook = Duration.seconds(5)
  /// Requests to the shared store for directories in each window of time.
  static let sharedPerWindow = 50
  static let sharedWindow = Duration.milliseconds(100)
  /// How long after a failure a directory is read again, and the number of remembered failures.
  static let sharedFault = Duration.seconds(30)
  static let sharedFaults = 1_000
  /// The highest version that a device may state: after a higher one it gets the directories' version, not one of its own.
  static let ownVersions = 9_000_000_000_000_000
  /// How often an import starts again after another one was written first.
  static let importTries = 3
  /// Imports that wait to be written.
  static let waitingImports = 1_000
  /// The shared store's thread answers within a quarter of a second: without an answer by then, its queue was full.
  static let sharedStoreAnswer = Duration.seconds(15)
  /// Rows of histories sent to the shared store without an answer yet, and bytes of one.
  static let historyUnanswered = 32
  static let historyRowBytes = 4_096
  /// How long a write waits for another process's import.
  static let directoryBusySeconds = 20.0
  /// Contacts of a write, some milliseconds, between two calls of `DirectoryFile.onProgress`.
  static let rowsPerSign = 1_000
}
