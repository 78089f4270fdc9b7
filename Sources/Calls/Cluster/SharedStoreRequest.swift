public import AppSessions
public import Bytes
public import CallFlow
public import Devices

/// What the cluster asks of the shared store. One request is one command or one script on keys of one hash slot; none is a transaction
/// over two users, calls or trunks. Docs: docs/design/cluster-shared-store.md.
///
/// Every request may be carried out though its reply is lost, and may be sent again: each is idempotent, or (`take`) errs on the safe side.
public enum SharedStoreRequest: Hashable, Sendable {
  // MARK: nodes

  /// Sets this node's lease for `Limits.lease` and reads all that live. → `nodes`. If another incarnation of the same name has a lease
  /// that lives, nothing is set, and that one is in the reply.
  case renew(NodeLease, for: Duration)
  /// The lease ends now: a node that stops in order. → `done`
  case endLease(Incarnation)

  // MARK: devices of a user

  /// A device has come: enters where it is, reads what it was before, the user's live calls and the device's registration. `since`: what an
  /// earlier `entered` of this session said; with it a session that is newer keeps the place. → `entered`
  case enter(Whereabouts, since: Int64? = nil)
  /// Its state, caps or accounts have changed; nothing if its session is another by now. → `done`
  case update(Whereabouts)
  /// Its socket is gone; nothing if its session is another by now. → `done`
  case leave(DeviceKey, SessionID)
  /// What a call needs to know of a user: whereabouts, registry, live calls; and enters this call among them (nil: only looks).
  /// → `located`
  case locate(user: String, entering: CallLocation?)
  /// → `done`
  case leaveCall(user: String, CallID)
  /// Changes of one user's registry; of two stores of one device the later `lastSeen` or revocation wins. → `done`
  case register(user: String, [DeviceChange])

  // MARK: calls

  /// What closes the call's legs, at this incarnation; replaces what was there. → `done`
  case put(CallEntry, at: Incarnation)
  case remove(CallID, at: Incarnation)
  /// The calls of an incarnation, at most `Limits.entriesPerRead` from `cursor` on (0: from the beginning). → `entries`
  case entries(of: Incarnation, cursor: UInt64)
  /// One call of an incarnation, if it has it. → `entries`, of one or none
  case entry(CallID, of: Incarnation)
  /// One of possibly several reapers closes this call: the first is granted, for `Limits.reapClaim`. → `granted`
  case claimReaping(CallID, of: Incarnation, by: Incarnation)
  /// This reaper has closed the call: its entry goes, and for `Limits.reaped` nobody else is granted it. → `done`
  case reaped(CallID, of: Incarnation, by: Incarnation)
  /// The client's UUID of a `call.start`, once in the cluster, for `Limits.startClaim`; the same device at the same incarnation is granted
  /// again. → `granted`
  case claimStart(CallID, device: DeviceKey, at: Incarnation)
  /// How a call ended that devices were woken for, for those that come late to another node; kept for `Limits.tombstone`. → `done`
  case putTombstone(CallID, RemoteTombstone)
  /// → `tombstone`
  case tombstone(of: CallID)

  // MARK: counts

  /// One call more of a trunk, if all incarnations together have fewer than `most`. → `granted`
  case admit(trunk: String, most: Int, at: Incarnation)
  /// This incarnation's calls of a trunk are so many: heals what was lost. 0 removes its share. → `done`
  case share(trunk: String, count: Int, of: Incarnation)
  /// A call of a user in this hour, if there were fewer than `most` in the last 3,600 s by the shared store's clock. → `granted`
  case consumeQuota(user: String, most: Int)

  // MARK: tasks

  /// Leads a task for `Limits.leadership`, or renews it, if nobody else does. → `granted`, with who leads
  case lead(SingleTask, Incarnation)
  case resign(SingleTask, Incarnation)

  // MARK: messages and records

  /// → `done`; nobody may have heard it.
  case publish(ClusterMessage, to: String)
  /// To every node that listens. → `done`
  case broadcast(ClusterMessage)
  /// A call's record, as a line of JSON; a second one of the same call is not added. → `granted`: it was added
  case append(CallID, record: [UInt8])

  // MARK: histories and directories

  /// A call of a user's history; one that is there is not added again. `row` is JSON of the call, without its first brace and with `"c"`, the
  /// call, first: the shared store puts the number before it. At most `most` are kept, none longer than `keep`. → `added`
  case addHistory(CallID, user: String, row: [UInt8], most: Int, keep: Duration)
  /// The newest rows of a user with numbers below `before` (nil: all), at most `most`. → `values`, the number is 1 if there are more
  case history(of: String, before: Int64?, most: Int, keep: Duration)
  /// → `count` of rows that are gone
  case forgetHistory(of: String)
  /// Directories with versions later than `since`, at most `Limits.directoriesPerRead`. → `directories`
  case directories(since: Int64)
  /// What a directory's current version consists of. → `directoryHead`
  case directoryHead(String)
  /// Parts by their names, at most `Limits.partsPerRequest`. → `directoryParts`
  case directoryParts([String])
  /// Parts under names that were never used before, at most `Limits.partsPerRequest`; they are kept for `Limits.staged` unless a commit keeps
  /// them. → `done`
  case stageDirectoryParts([DirectoryPiece])
  /// → `committed`
  case commitDirectory(DirectoryCommit)

  // MARK: grants of login tokens

  /// What tokens grant, and users who were erased; in one step for all of them:
  ///
  /// | the user's row | then |
  /// |---|---|
  /// | none, or of an earlier token | is replaced. The user gets each number that no user has, or one by an earlier token (of two that are as late, the user with the lesser id), who loses it |
  /// | of the same token | keeps those of its numbers that are named again; has the later `seen` |
  /// | of a later token, or of an erasure that is as late | stays |
  ///
  /// Each row that has changed gets the next place. Rows that no token named for `Limits.grantsKept` go. → `grantsPut`
  case putGrants([SharedGrant])
  /// Those that have come or changed behind the place `since`, at most `Limits.grantsPerRead`, by their places, with the numbers that their users
  /// have. → `grants`
  case grants(since: Int64)

  // MARK: for operators

  /// The record of a call, if it is of the last day and still in the stream. → `record`
  case record(of: CallID)
}

/// The answer to an `SharedStoreRequest`. Values that cannot be read (no JSON, too long, of a format that is too new) are left out, and counted
/// in `dropped`.
public enum SharedStoreReply: Hashable, Sendable {
  case done
  /// `holder`: whose it is if it was not granted, where the request has such a thing.
  case granted(Bool, holder: Incarnation? = nil)
  /// Every lease that lives; ours among them if it was set. `hadLease`: this incarnation had one until now. `clock`: the shared store's, milliseconds
  /// since 1970.
  case nodes([NodeLease], hadLease: Bool, clock: Int64, dropped: Int = 0)
  /// `before`: where the device was entered last, dead or alive. `device`: its registration, revoked or not. `since`: when this session was
  /// entered first, in milliseconds of the shared store's clock. `isOlder`: `before` is the newer session, and stays.
  case entered(
    before: Whereabouts?, calls: [CallLocation], device: Device?, since: Int64, isOlder: Bool = false, dropped: Int = 0)
  /// `calls` by rank, with the one that was entered.
  case located(LocatedUser)
  case entries([CallEntry], next: UInt64, dropped: Int = 0)
  case tombstone(RemoteTombstone?, dropped: Int = 0)
  /// A line of JSON; nil: there is none.
  case record([UInt8]?)
  /// The number of a history's new row, nil: it was there; and the nodes at which the user's devices are.
  case added(Int64?, at: Set<Incarnation>)
  case count(Int)
  /// As they were written; who asked reads them, and what the number says.
  case values([[UInt8]], Int64)
  case directories(DirectoryVersions)
  /// `head`: nil if there is none, or none of ours. `version`: as the shared store counts it, 0: it has no such directory. `clock`: the shared store's,
  /// milliseconds since 1970.
  case directoryHead([UInt8]?, version: Int64, clock: Int64)
  /// Those that are there, and ours.
  case directoryParts([DirectoryPiece])
  case grants(GrantPage)
  /// How many rows were put; and, where a user did not get all of it, that user's row and those of the users who have the numbers, at most
  /// `Limits.grantsPerRead`.
  case grantsPut(Int, others: [SharedGrant], dropped: Int = 0)
  /// `version`: of the directory until then. `last`: the highest that the shared store ever had, of any.
  case committed(CommitOutcome, version: Int64, last: Int64)
}

/// A part of a directory. What is in it is signed with its name.
public struct DirectoryPiece: Hashable, Sendable {
  public var name: String
  public var content: [UInt8]
  public init(_ name: String, _ content: [UInt8]) { (self.name, self.content) = (name, content) }
}

/// What the shared store has of a user. Hints: whoever reads them drops those of incarnations that are dead.
public struct LocatedUser: Hashable, Sendable {
  public var user: String
  public var whereabouts: [Whereabouts] = []
  public var devices: [Device] = []
  public var calls: [CallLocation] = []
  public var dropped = 0
  public init(_ user: String) { self.user = user }
}

/// Grants of the shared store.
public struct GrantPage: Hashable, Sendable {
  public var rows: [SharedGrant] = []
  /// The position of the last row; `since` of the next question.
  public var position: Int64 = 0
  public var hasMore = false
  /// Another text: the shared store has lost its grants, or is another. Empty: it has none.
  public var epoch = ""
  /// The place of what came last of all.
  public var last: Int64 = 0
  public var dropped = 0
  public init() {}
}

/// Why a request has no reply.
public enum SharedStoreFailure: Error, Hashable, Sendable {
  /// No answer in time: it may have been carried out.
  case timeout
  /// Not connected, or the circuit breaker is open: nothing was sent.
  case away
  /// The shared store said no: wrong password, no right to a command, full, read-only. The text is the shared store's first words, at most 64 bytes.
  case refused(String)
  /// The queue of requests is full.
  case full
}

/// What the shared store's thread tells the cluster machine.
public enum SharedStoreEvent: Sendable {
  case reply(SharedStoreRequestID, Result<SharedStoreReply, SharedStoreFailure>)
  /// Commands can be sent and messages are heard from now on: what was missed meanwhile has to be read again. `wasFlushed`: the shared store is
  /// another one, or has lost what it held.
  case connected(wasFlushed: Bool)
  /// Nothing comes through; the text is for the log.
  case lost(String)
  /// `from` is what the message claims; it was read whole.
  case message(ClusterMessage, from: Incarnation)
  /// Messages that were no message: counted.
  case dropped(Int)
}

/// Numbered by who asks; never reused in a process.
public struct SharedStoreRequestID: Hashable, Sendable {
  public var number: UInt64
  public init(_ number: UInt64) { self.number = number }
}
