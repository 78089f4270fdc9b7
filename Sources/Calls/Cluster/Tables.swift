import AppSessions
import CallFlow
import Devices
import TrunklineBytes

// The cluster machine's tables of calls, devices, nodes and questions.

extension ClusterMachine {
  enum Timer: Hashable {
    case renewal, leaseEnd, restore, reap, inherited
    case question(UInt64)
    case task(SingleTask)
    case suspect(Incarnation)
    /// The next reading of our own entries.
    case ownEntries
    /// The end of a record's wait.
    case unconfirmedEnds
    case grants
  }

  /// The purpose of a request.
  enum Purpose {
    case renewal
    case part(UInt64, CallID?, Part)
    case write(WriteKey)
    /// Reads a user with a device here, to find what was missed.
    case review(String)
    case lead(SingleTask)
    case entries(Incarnation)
    case ownEntries
    case ownMissing(CallID)
    case reaping(ReapItem)
    case inheriting(CallID)
    case grants
    case putGrants([SharedGrant])
    case none
  }

  struct PendingRequest {
    var purpose: Purpose
    var sent: Instant
  }

  /// A part of the answer that a question waits for.
  enum Part: Hashable {
    case user(String)
    case trunk(String)
    case start, hour, leases, tombstone
    case enter(DeviceKey, SessionID)
  }

  struct Question {
    enum Subject {
      case locate(LocateQuestion)
      case claim(ClaimQuestion)
      case admit(CallID, trunk: String, most: Int)
      case welcome(DeviceKey, SessionID)
      case sessionState(HTTPRequestID, DeviceKey)
      case tombstone(CallID)
    }
    let number: UInt64
    let subject: Subject
    var waiting: Set<Part> = []
    var located: [String: LocatedUser] = [:]
    var verdicts: [Part: Bool] = [:]
    /// The owner of the `call.start`.
    var holder: Incarnation?
    var registration: Device?
    var tombstone: RemoteTombstone?
    /// The users and the trunk that this question added to the call, which loses them if it is refused.
    var addedUsers: [String] = []
    var addedTrunk: String?
    /// The number of shares of that trunk sent before: if one was sent since, it may include this call, and a refusal makes it
    /// wrong.
    var sharesBefore: UInt64 = 0
    var hasAskedLeases = false
    /// Remote devices of a call that was not redirected, kept while its trunk is asked to count it.
    var remote: [Whereabouts]?
    /// For a `call.start`: the owner is known or could not be asked; the limits are asked next.
    var hasStart = false
    init(_ subject: Subject, number: UInt64) { (self.subject, self.number) = (subject, number) }
  }

  /// A call here.
  struct OwnCall {
    var direction: CallDirection
    /// The users for whom it is entered.
    var users: [String] = []
    /// Trunks with a limit that count it.
    var trunks: [String] = []
    var entry: CallEntry?
    /// When the put that the shared store confirmed was sent; nil: none was confirmed since a flush.
    var putSent: Instant?

    mutating func isStored(since sent: Instant) { if entry != nil, putSent == nil { putSent = sent } }
  }

  enum ConfirmationState {
    case none
    /// Shared store or lease is lost.
    case open
    /// Both are restored, and our own entries are being read.
    case reading
  }

  /// A call here that ended while others may have closed it.
  struct UnconfirmedEnd {
    var putSent: Instant
    /// For devices that connect late to other nodes; written once the end is confirmed as ours.
    var tombstone: RemoteTombstone?
  }

  /// A device with a socket here.
  struct OwnDevice {
    var whereabouts: Whereabouts
    /// The order of their connecting.
    var number: UInt64
    var came: Instant
    /// The shared store has had it since the last flush.
    var isEntered = false
    /// When its session was entered first, by the shared store's clock.
    var since: Int64?
  }

  struct Remembered {
    var devices: [Device]
  }

  /// A pending write, by its subject: the value sent is the state at the time of sending.
  enum WriteKey: Hashable {
    case entry(CallID)
    case location(String, CallID)
    case share(String)
    /// A dead incarnation has no calls of the trunk.
    case shareGone(String, Incarnation)
    case entryGone(CallID, Incarnation)
    case device(DeviceKey)
    case left(DeviceKey, SessionID)
    case registration(DeviceKey)
    case review(String)

    var isOfCalls: Bool {
      switch self {
      case .entry, .location, .share, .shareGone, .entryGone: true
      case .device, .left, .registration, .review: false
      }
    }
  }

  struct Registration {
    var change: DeviceChange
    var isStored = false
  }

  struct TaskState {
    /// The end of our leadership; nil: another node leads, or none.
    var until: Instant?
    var holder: Incarnation?
    var isAsking = false
  }

  /// A node whose lease has ended.
  struct Suspect {
    enum Verdict { case missing, cutOff, silent, dead }
    enum Due: Int { case nothing, ringing, all }
    var lease: NodeLease
    /// Silent since then.
    var silentSince: Instant
    var missingSince: Instant
    var verdict = Verdict.missing
    var isHeld = false
    var byOperator = false
    var probedAt: Instant?
    /// The pending scan of its entries; nil: none.
    var scan: Scan?
    /// The trunks of its calls: its shares of them are removed at the end.
    var trunks: Set<String> = []
    /// The entries that are closed completely.
    var done = Due.nothing
    var scanAgain: Instant?
    struct Scan {
      var number: UInt64
      var due: Due
      var cursor: UInt64 = 0
      var isReading = false
      var isRead = false
      /// Numbers of entries that were found, that wait, and that other nodes close.
      var found = 0
      var waiting = 0
      var skipped = 0
    }
  }

  struct ReapItem: Hashable {
    var entry: CallEntry
    var incarnation: Incarnation
    /// The number of its scan: items of an older scan are dropped.
    var scan: UInt64
  }

  struct Inherited {
    var entry: CallEntry
    var incarnation: Incarnation
    var deadline: Instant
    var isAsking = false
  }
}
