import AppSessions
import CallModel
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
}
