import TrunklineBytes

/// The named limits of this module; every bound on a queue, table or message is here.
public enum Limits {
  /// Format of messages and values in the shared store. A reader skips formats that are newer than its own.
  public static let format = 1
  /// The oldest format that this version reads.
  public static let oldestFormat = 1
  /// A node's name: letters, digits, `-`, `_` and `.`.
  static let nodeNameBytes = 63
  static let incarnationBytes = nodeNameBytes + 1 + 20
  /// A lease ends this long after its last renewal.
  public static let lease = Duration.seconds(6)
  /// Interval of renewals.
  public static let renewal = Duration.seconds(2)
  /// An INVITE or `hello` waits this long for the shared store; then the node continues with what it remembers.
  public static let wait = Duration.milliseconds(100)
  /// Accepted values of the shared store's clock, in milliseconds since 1970.
  static let clock: ClosedRange<Int64> = 0...1 << 53
  /// Bounds of a value, a message and the lists of the shared store; the excess is dropped.
  public static let valueBytes = 64 * 1_024
  public static let messageBytes = 16 * 1_024
  public static let nodes = 5_000
  public static let whereaboutsPerUser = 64
  public static let devicesPerUser = 64
  public static let callsPerUser = 256
  public static let entriesPerRead = 100
  /// A reaper's claim on a call is valid for this long.
  public static let reapClaim = Duration.seconds(60)
  /// How long the shared store keeps which calls were closed: a process that restarts within it learns that of the calls in its
  /// journal.
  public static let reaped = Duration.seconds(7 * 86_400)
  /// A claim on a `call.start` is kept this long: no retry is later.
  public static let startClaim = Duration.seconds(3_600)
  public static let tombstone = Duration.seconds(120)
  /// Another node becomes the leader of a single task this long after the leader's last request.
  public static let leadership = Duration.seconds(10)

  // MARK: grants of login tokens

  /// Users with grants, in the shared store and at a node.
  public static let grants = 200_000
  public static let grantsPerRead = 200
  /// Grants in one request; no more are added once their numbers reach `numbersPerPut`.
  public static let grantsPerPut = 32
  static let numbersPerPut = 100
  /// A grant is kept this long after a token last named it; an erasure, while tokens issued before it are still valid.
  public static let grantsKept = Duration.seconds(30 * 86_400)
  /// A node reads the changed grants at least this often, in case it missed a notification.
  static let grantsLook = Duration.seconds(10)
  static let newsOfGrants = Duration.milliseconds(50)

  // MARK: histories and directories

  /// Rows of a user's history.
  public static let historyRows = 200
  public static let directoriesPerRead = 500
  /// Parts in one request or reply: with `valueBytes` each, they are half a megabyte.
  public static let partsPerRequest = 8
  /// Dropped parts that one request lets expire: a fraction of a millisecond of the shared store's time.
  public static let partsPerExpiry = 200
  /// Parts that no commit keeps expire after this time, and so do the parts of a replaced version: a node has this long to read
  /// it.
  public static let staged = Duration.seconds(60)
  public static let directories = 100_000

  // MARK: the cluster machine

  /// Ringing calls of a silent node are moved this long after its lease was first missed.
  public static let movesRinging = Duration.seconds(4)
  public static let calm = Duration.seconds(10)
  public static let restoreSpread = Duration.seconds(5)
  /// A request without a reply for this long has timed out.
  public static let replyWait = Duration.seconds(10)
  /// Requests that wait for their replies; beyond it a request fails at once.
  static let requests = 20_000
  /// Writes for devices that a node sends in a second, and deferred writes in a second.
  static let writesPerSecond = 2_000
  static let restoresPerSecond = 1_000
  /// Writes of all nodes together, including the messages that they cause; each node has its share by the number of living nodes.
  /// Renewals and calls are extra; a shared store handles 50,000 commands a second.
  static let clusterWritesPerSecond = 45_000
  /// The burst of `clusterWritesPerSecond`.
  static let clusterWriteBurst = 4_000
  /// For a node that has read the leases only once: when all nodes start together, each sees only a few others first.
  static let firstWritesPerSecond = 30
  /// A failed write is repeated after this time, or up to twice as long.
  static let restoreAgain = Duration.seconds(1)
  /// Queued messages of nodes that no renewal has shown yet.
  static let earlyMessages = 256
  public static let usersPerCall = 16
  /// The record of a call that ended without a lease waits at most this long: the longest outage that this module is designed
  /// for. An entry does not expire, so a node that returns within this time learns which calls were reaped, however early.
  public static let confirmation = Duration.seconds(900)
  /// Records that wait: as many as a node has calls. Beyond it a record does not wait.
  static let unconfirmedEnds = 20_000
  /// Interval of reading our own entries.
  static let ownEntriesAgain = Duration.seconds(3)
  /// Interval of the steps that send deferred writes.
  static let restoreStep = Duration.milliseconds(20)
  /// Calls, devices or users that a step compares with what the shared store may lack: pages of so many.
  static let reviewPage = 100
  static let reviewPages = 5
  /// While so many writes wait, no more are looked for.
  static let reviewAhead = 100
  /// Claims on our own calls whose entries are missing, in one reading; the next reading finds the others.
  static let claimsPerReading = 1_000
  /// Records that are released in one step of `restoreStep`.
  static let releasesPerStep = 200
  /// Calls of dead nodes that are closed in one step, and the pause between two steps.
  public static let reapStep = 20
  static let reapPause = Duration.milliseconds(20)
  /// How long nodes that do not reap remember a node without lease, and how long all nodes remember one that is held.
  static let suspects = Duration.seconds(3_600)
  /// Interval of probes of a silent node, and of one that is only cut off.
  static let probeAgain = Duration.seconds(2)
  static let cutOffAgain = Duration.seconds(5)
  /// Probes in a second; beyond it the rest waits, for a random time.
  static let probesPerSecond = 200
  static let probeLater = Duration.milliseconds(200)
  /// If another incarnation of a starting node's name has a lease, the node waits this long for that lease to end.
  static let nameWait = Duration.seconds(15)
  /// Interval at which a follower requests a task.
  static let followerAgain = Duration.seconds(9)
  static let followerSoon = Duration.seconds(1)
  /// Memory of users, for use while the shared store is away.
  static let rememberedUsers = 100_000
  static let remembered = Duration.seconds(86_400)
  static let revocations = 100_000
  static let unwritten = 100_000
  /// Writes that a failover may have lost are repeated if they are at most this old.
  static let recent = Duration.seconds(60)
  static let recentWrites = 100_000
  /// A device whose node died is expected to reconnect within this time: its client notices a closed socket at once, and a silent
  /// one in 2 × `hb`.
  static let comingBack = Duration.seconds(30)
  static let reapedNodes = 256
  /// Incarnations that are known to be dead.
  static let departed = 10_000
  /// Calls of dead nodes that wait to be closed.
  static let reapQueue = 100_000
  /// Claims on calls of the previous process wait this long for the shared store.
  static let inheritWait = Duration.seconds(3)
  public static let singleTasks = 1_000
  /// Troubles of trunks that a lease contains.
  static let troubles = 100
}
