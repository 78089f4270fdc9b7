import AppSessions
import Bytes
import CallFlow
import Devices

// What the cluster machine keeps of calls, devices, nodes and questions.

extension ClusterMachine {
  enum Timer: Hashable {
    case renewal, leaseEnd, restore, reap, inherited
    case question(UInt64)
    case task(SingleTask)
    case suspect(Incarnation)
    /// Our entries are read a second time.
    case ownEntries
    /// A record has waited long enough.
    case unconfirmedEnds
    case grants
  }

  /// What one request is for.
  enum Purpose {
    case renewal
    case part(UInt64, CallID?, Part)
    case write(WriteKey)
    /// A user of ours is read, to see what was missed.
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

  /// Of what a question waits for.
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
    /// Whose the `call.start` is.
    var holder: Incarnation?
    var registration: Device?
    var tombstone: RemoteTombstone?
    /// What the call has by this question, and loses if it is refused.
    var addedUsers: [String] = []
    var addedTrunk: String?
    /// Shares of that trunk that were sent before: if one was sent since, a refusal makes it wrong.
    var sharesBefore: UInt64 = 0
    var hasAskedLeases = false
    /// Of a call that was not sent on, and that its trunk counts only then.
    var remote: [Whereabouts]?
    /// Of a `call.start`: whose it is was asked, and then the rest.
    var hasStart = false
    init(_ subject: Subject, number: UInt64) { (self.subject, self.number) = (subject, number) }
  }

  /// A call here.
  struct OwnCall {
    var direction: CallDirection
    /// Where it is entered.
    var users: [String] = []
    /// Trunks with a limit that count it.
    var trunks: [String] = []
    var entry: CallEntry?
    /// When the shared store last said that it has the entry; nil: not since it was flushed.
    var putSent: Instant?

    mutating func isStored(since sent: Instant) { if entry != nil, putSent == nil { putSent = sent } }
  }

  enum ConfirmationState {
    case none
    /// Shared store or lease is gone, since then.
    case open
    /// Both are back, and our own entries are read.
    case reading
  }

  /// A call here that ended while others may have closed it.
  struct UnconfirmedEnd {
    var putSent: Instant
    /// For devices that come late to other nodes, once it is ours.
    var tombstone: RemoteTombstone?
  }

  /// A device with a socket here.
  struct OwnDevice {
    var whereabouts: Whereabouts
    /// In the order in which they came.
    var number: UInt64
    var came: Instant
    /// The shared store had it since it was flushed last.
    var isEntered = false
    /// When its session was entered first, by the shared store's clock.
    var since: Int64?
  }

  struct Remembered {
    var devices: [Device]
  }

  /// A write that has to be made, by what it is of: what is written is what holds when it goes out.
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
    /// We lead until then.
    var until: Instant?
    var holder: Incarnation?
    var isAsking = false
  }

  /// A node whose lease is gone.
  struct Suspect {
    enum Verdict { case missing, cutOff, silent, dead }
    enum Due: Int { case nothing, ringing, all }
    var lease: NodeLease
    /// Nothing was heard of it since.
    var silentSince: Instant
    var missingSince: Instant
    var verdict = Verdict.missing
    var isHeld = false
    var byOperator = false
    var probedAt: Instant?
    /// The reading of its entries that is under way; nil: no reading under way.
    var scan: Scan?
    /// Of its calls: its counts of them go back.
    var trunks: Set<String> = []
    /// The part that was closed whole.
    var done = Due.nothing
    var scanAgain: Instant?
    struct Scan {
      var number: UInt64
      var due: Due
      var cursor: UInt64 = 0
      var isReading = false
      var isRead = false
      /// Entries that were found, those that wait, and those that others close.
      var found = 0
      var waiting = 0
      var skipped = 0
    }
  }

  struct ReapItem: Hashable {
    var entry: CallEntry
    var incarnation: Incarnation
    /// Of which reading: what is left of an older one is dropped.
    var scan: UInt64
  }

  struct Inherited {
    var entry: CallEntry
    var incarnation: Incarnation
    var deadline: Instant
    var isAsking = false
  }
}
