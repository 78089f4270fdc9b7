import Bytes

/// The named limits of this module; every bound on a queue, table or message stands here.
public enum Limits {
  /// Of messages and values in the shared store. One that is newer than ours by a whole number is not read.
  public static let format = 1
  /// The oldest format that this version reads.
  public static let oldestFormat = 1
  /// A node's name: letters, digits, `-`, `_` and `.`.
  public static let nodeNameBytes = 1...63
  static let incarnationBytes = 63 + 1 + 20
  /// A lease ends so long after it was renewed last.
  public static let lease = Duration.seconds(6)
  /// Between two renewals.
  public static let renewal = Duration.seconds(2)
  /// An INVITE or `hello` waits so long for the shared store; then the node goes on with what it knows.
  public static let wait = Duration.milliseconds(100)
  /// What a shared store's clock may say, in milliseconds since 1970.
  static let clock: ClosedRange<Int64> = 0...1 << 53
  /// A value, a message and a list of the shared store; beyond it is dropped.
  public static let valueBytes = 64 * 1_024
  public static let messageBytes = 16 * 1_024
  public static let wakeBytes = 8 * 1_024
  public static let nodes = 5_000
  public static let whereaboutsPerUser = 64
  public static let devicesPerUser = 64
  public static let callsPerUser = 256
  public static let entriesPerRead = 100
  /// A reaper that has claimed a call has so long to close it.
  public static let reapClaim = Duration.seconds(60)
  /// A process that starts again so late finds in the shared store which calls of its journal were closed.
  public static let reaped = Duration.seconds(7 * 86_400)
  /// No retry of a `call.start` comes later.
  public static let startClaim = Duration.seconds(3_600)
  public static let tombstone = Duration.seconds(120)
  /// A single task is taken over so long after its leader was heard last.
  public static let leadership = Duration.seconds(10)

  // MARK: grants of login tokens

  /// Users; as many as a node takes.
  public static let grants = 200_000
  public static let grantsPerRead = 200
  /// In one request; no more are added once they name so many numbers.
  public static let grantsPerPut = 32
  static let numbersPerPut = 100
  /// Kept without a login by a token; of a user who was erased, for tokens that are still valid.
  public static let grantsKept = Duration.seconds(30 * 86_400)
  /// A node that has missed the news looks so often.
  static let grantsLook = Duration.seconds(10)
  static let newsOfGrants = Duration.milliseconds(50)
  /// Taken in one turn of control.
  static let grantsPerStep = 500

  // MARK: histories and directories

  /// Calls of a user's history.
  public static let historyRows = 200
  public static let directoriesPerRead = 500
  /// Parts in one request or reply: of `valueBytes` each, they are half a megabyte.
  public static let partsPerRequest = 8
  /// Parts that no commit has kept within it are gone, and so are those of a version before: a node that reads it has so long.
  public static let staged = Duration.seconds(60)
  /// Directories.
  public static let directories = 100_000

  // MARK: the cluster machine

  /// Ringing calls of a silent node are moved so long after its lease was missed.
  public static let movesRinging = Duration.seconds(4)
  public static let calm = Duration.seconds(10)
  public static let restoreSpread = Duration.seconds(5)
  /// A request without a reply for so long has none.
  public static let replyWait = Duration.seconds(10)
  /// Requests that wait for their replies; beyond it a request fails at once.
  static let requests = 20_000
  /// Writes for devices that a node sends in a second, and of what it puts back.
  static let writesPerSecond = 2_000
  static let restoresPerSecond = 1_000
  /// Of all nodes together, with what writes make nodes tell each other: each takes its share by the number of living nodes. What comes on top are
  /// renewals and calls; a shared store bears 50,000 commands a second.
  static let clusterWritesPerSecond = 45_000
  /// The same at once.
  static let clusterWriteBurst = 4_000
  /// Of a node that has seen the leases once only: where all begin together, each sees a few of the others first.
  static let firstWritesPerSecond = 30
  /// What failed is written again so long after, and up to twice that.
  static let restoreAgain = Duration.seconds(1)
  /// Messages of nodes that no renewal has shown yet.
  static let earlyMessages = 256
  public static let usersPerCall = 16
  /// The record of a call that ended without lease waits so long at most: the longest outage for which everything else here is made. An entry has
  /// no end of its own, so a node that comes back within it learns what was reaped, however early that was.
  public static let confirmation = Duration.seconds(900)
  /// Such calls: all that a node has. Beyond it a record does not wait.
  static let unconfirmedEnds = 20_000
  /// Our own entries are read again so long after.
  static let ownEntriesAgain = Duration.seconds(3)
  /// What is put back goes out in steps.
  static let restoreStep = Duration.milliseconds(20)
  /// Calls of dead nodes that are closed in one step, and between two steps.
  public static let reapStep = 20
  static let reapPause = Duration.milliseconds(20)
  /// A node without lease is remembered so long by those that do not look after it, and one that is held by all.
  static let suspects = Duration.seconds(3_600)
  /// A silent node, and one that is cut off only, is asked again.
  static let probeAgain = Duration.seconds(2)
  static let cutOffAgain = Duration.seconds(5)
  /// Nodes that are asked in a second: beyond it the rest waits, for a random time.
  static let probesPerSecond = 200
  static let probeLater = Duration.milliseconds(200)
  /// A lone node of a name whose other incarnation has a lease waits for its end.
  static let nameWait = Duration.seconds(15)
  /// A follower asks again whether a task is free.
  static let followerAgain = Duration.seconds(9)
  static let followerSoon = Duration.seconds(1)
  /// What is remembered of users, for when the shared store is away.
  static let rememberedUsers = 100_000
  static let remembered = Duration.seconds(86_400)
  static let revocations = 100_000
  /// What has to be put back.
  static let unwritten = 100_000
  /// Writes that a failover may have lost are made again.
  static let recent = Duration.seconds(60)
  static let recentWrites = 100_000
  /// A device whose node died is expected at another one for so long: its client finds a dead socket at once, a silent one in 2 × `hb`.
  static let comingBack = Duration.seconds(30)
  static let reapedNodes = 256
  /// Incarnations that are known to be gone.
  static let departed = 10_000
  /// Calls of dead nodes that wait to be closed.
  static let reapQueue = 100_000
  /// Claims on what the process before this one left wait so long for the shared store.
  static let inheritWait = Duration.seconds(3)
  public static let singleTasks = 1_000
  /// Trunks in trouble that a lease names.
  static let troubles = 100
}
