public import AppSessions
public import CallModel
public import Devices
public import TrunklineBytes

/// A request of the cluster to the shared store. A request is one command or one script on keys of one hash slot; none is a
/// transaction over two users, calls or trunks. Docs: docs/design/cluster-shared-store.md.
///
/// A request may be carried out though its reply is lost, and may be sent again: each is idempotent, or (`consumeQuota`) errs on
/// the safe side.
public enum SharedStoreRequest: Hashable, Sendable {
  // MARK: nodes

  /// Sets this node's lease for `Limits.lease` and reads all valid leases. → `nodes`. If another incarnation of the same name has
  /// a valid lease, nothing is set, and that lease is in the reply.
  case renew(NodeLease, for: Duration)
  /// Ends the lease of a node that stops in an orderly way, or of an incarnation that is over. → `done`
  case endLease(Incarnation)

  // MARK: devices of a user

  /// Enters where a device is; reads where it was before, the user's live calls and the device's registration. `since`: the value
  /// of an earlier `entered` of this session; with it, a newer session of the device is not replaced. → `entered`
  case enter(Whereabouts, since: Int64? = nil)
  /// Updates the device's state, caps or accounts; changes nothing if its session is another by now. → `done`
  case update(Whereabouts)
  /// Removes a device whose socket is closed; changes nothing if its session is another by now. → `done`
  case leave(DeviceKey, SessionID)
  /// Reads a user's whereabouts, registry and live calls; and enters this call among them (nil: reads only). → `located`
  case locate(user: String, entering: CallLocation?)
  /// → `done`
  case leaveCall(user: String, CallID)
  /// Changes one user's registry; if two stores of one device compete, the later `lastSeen` or revocation wins. → `done`
  case register(user: String, [DeviceChange])

  // MARK: calls

  /// Writes the entry by which another node can close the call, at this incarnation; replaces an earlier entry. → `done`
  case put(CallEntry, at: Incarnation)
  case remove(CallID, at: Incarnation)
  /// The calls of an incarnation, at most `Limits.entriesPerRead` from `cursor` on (0: from the beginning). → `entries`
  case entries(of: Incarnation, cursor: UInt64)
  /// One call of an incarnation, if it has it. → `entries`, with one or none
  case entry(CallID, of: Incarnation)
  /// Claims the closing of a call, for which several reapers may compete: the first is granted, for `Limits.reapClaim`. →
  /// `granted`
  case claimReaping(CallID, of: Incarnation, by: Incarnation)
  /// This reaper has closed the call: removes its entry, and for `Limits.reaped` no other node is granted it. → `done`
  case reaped(CallID, of: Incarnation, by: Incarnation)
  /// Claims the client's UUID of a `call.start`, once in the cluster, for `Limits.startClaim`; the same device at the same
  /// incarnation is granted again. → `granted`
  case claimStart(CallID, device: DeviceKey, at: Incarnation)
  /// Writes how a call ended for which devices were woken, for devices that connect late to another node; kept for
  /// `Limits.tombstone`. → `done`
  case putTombstone(CallID, RemoteTombstone)
  /// → `tombstone`
  case tombstone(of: CallID)

  // MARK: counts

  /// Counts one more call of a trunk, if all incarnations together have fewer than `most`. → `granted`
  case admit(trunk: String, most: Int, at: Incarnation)
  /// Sets this incarnation's number of calls of a trunk, which repairs lost counts. 0 removes its share. → `done`
  case share(trunk: String, count: Int, of: Incarnation)
  /// Counts a call of a user, if there were fewer than `most` in the last 3,600 s by the shared store's clock. → `granted`
  case consumeQuota(user: String, most: Int)

  // MARK: tasks

  /// Leads a task for `Limits.leadership`, or renews that, if no other node leads it. → `granted`, with the leader
  case lead(SingleTask, Incarnation)
  case resign(SingleTask, Incarnation)

  // MARK: messages and records

  /// → `done`, even if no node received it.
  case publish(ClusterMessage, to: String)
  /// To every node that is subscribed. → `done`
  case broadcast(ClusterMessage)
  /// Adds a call's record, a line of JSON, unless the call has one. → `granted`: it was added
  case append(CallID, record: [UInt8])

  // MARK: histories and directories

  /// Adds a call to a user's history, unless it is in it. `row` is JSON of the call, without its first brace and with `"c"`, the
  /// call, first: the shared store prepends the row's number. At most `most` rows are kept, none longer than `keep`. → `added`
  case addHistory(CallID, user: String, row: [UInt8], most: Int, keep: Duration)
  /// The newest rows of a user with numbers below `before` (nil: all), at most `most`. → `values`, with the number
  /// 1 if more rows follow
  case history(of: String, before: Int64?, most: Int, keep: Duration)
  /// → `count` of removed rows
  case forgetHistory(of: String)
  /// Directories with versions later than `since`, at most `Limits.directoriesPerRead`. → `directories`
  case directories(since: Int64)
  /// The head of a directory's current version. → `directoryHead`
  case directoryHead(String)
  /// Parts by their names, at most `Limits.partsPerRequest`. → `directoryParts`
  case directoryParts([String])
  /// Stores parts under names that were never used before, at most `Limits.partsPerRequest`; they expire after `Limits.staged`
  /// unless a commit keeps them. → `done`
  case stageDirectoryParts([DirectoryPiece])
  /// The parts that the commit drops wait until `expireDirectoryParts`. → `committed`
  case commitDirectory(DirectoryCommit)
  /// Lets dropped parts expire after `Limits.staged`, `Limits.partsPerExpiry` of them. → `count` of those that still wait
  case expireDirectoryParts

  // MARK: grants of login tokens

  /// Writes grants of tokens and erasures of users, all in one step:
  ///
  /// | the user's row | then |
  /// |---|---|
  /// | none, or of an earlier token | is replaced. The user gets each number that no user has, and each that another user has by an earlier token, who loses it (if two tokens are as late, the user with the lesser id wins) |
  /// | of the same token | keeps those of its numbers that are named again; gets the later `seen` |
  /// | of a later token, or of an erasure that is as late | stays |
  ///
  /// Each changed row gets the next position. Rows that no token named for `Limits.grantsKept` are removed. → `grantsPut`
  case putGrants([SharedGrant])
  /// Rows that were added or changed after the position `since`, at most `Limits.grantsPerRead`, by position, with the numbers
  /// that their users have. → `grants`
  case grants(since: Int64)

  // MARK: for operators

  /// The record of a call, if it was added in the last day and is still in the stream. → `record`
  case record(of: CallID)
}

/// The reply to a `SharedStoreRequest`. Values that cannot be read (not JSON, too long, of a format that is too new) are left
/// out, and counted in `dropped`.
public enum SharedStoreReply: Hashable, Sendable {
  case done
  /// `holder`: the owner if it was not granted, where the request has an owner.
  case granted(Bool, holder: Incarnation? = nil)
  /// Every valid lease, including ours if it was set. `hadLease`: this incarnation had one until now. `clock`: the shared
  /// store's, in milliseconds since 1970.
  case nodes([NodeLease], hadLease: Bool, clock: Int64, dropped: Int = 0)
  /// `before`: where the device was entered last, at a living or dead node. `device`: its registration, revoked or not. `since`:
  /// when this session was entered first, in milliseconds of the shared store's clock. `isOlder`: `before` is the newer session,
  /// and stays.
  case entered(
    before: Whereabouts?, calls: [CallLocation], device: Device?, since: Int64, isOlder: Bool = false, dropped: Int = 0)
  /// `calls` by rank, including the entered one.
  case located(LocatedUser)
  case entries([CallEntry], next: UInt64, dropped: Int = 0)
  case tombstone(RemoteTombstone?, dropped: Int = 0)
  /// A line of JSON; nil: there is none.
  case record([UInt8]?)
  /// The number of the history's new row, nil: the call was in it; and the nodes at which the user's devices are.
  case added(Int64?, at: Set<Incarnation>)
  case count(Int)
  /// The values as they were written; the caller decodes them and knows what the number means.
  case values([[UInt8]], Int64)
  case directories(DirectoryVersions)
  /// `head`: nil if there is none, or none with our signature. `version`: the shared store's current one, 0: it has no such
  /// directory. `clock`: the shared store's, in milliseconds since 1970.
  case directoryHead([UInt8]?, version: Int64, clock: Int64)
  /// The parts that exist and have our signature.
  case directoryParts([DirectoryPiece])
  case grants(GrantPage)
  /// The number of rows that were put; and, where a user did not get all numbers, that user's row and those of the users who have
  /// them, at most `Limits.grantsPerRead`.
  case grantsPut(Int, others: [SharedGrant], dropped: Int = 0)
  /// `version`: of the directory before the commit. `last`: the highest that the shared store ever had, of any directory.
  case committed(CommitOutcome, version: Int64, last: Int64)
}

/// A part of a directory. Its content is signed together with its name.
public struct DirectoryPiece: Hashable, Sendable {
  public var name: String
  public var content: [UInt8]
  public init(_ name: String, _ content: [UInt8]) { (self.name, self.content) = (name, content) }
}

/// A user's data in the shared store. These are hints: the reader drops those of dead incarnations.
public struct LocatedUser: Hashable, Sendable {
  public var user: String
  public var whereabouts: [Whereabouts] = []
  public var devices: [Device] = []
  public var calls: [CallLocation] = []
  public var dropped = 0
  public init(_ user: String) { self.user = user }
}

/// Grants of the shared store, one page.
public struct GrantPage: Hashable, Sendable {
  public var rows: [SharedGrant] = []
  /// The position of the last row; `since` of the next request.
  public var position: Int64 = 0
  public var hasMore = false
  /// Changes when the shared store has lost its grants, or is another one. Empty: it has no grants.
  public var epoch = ""
  /// The position of the last row of all.
  public var last: Int64 = 0
  public var dropped = 0
  public init() {}
}

/// Why a request has no reply.
public enum SharedStoreFailure: Error, Hashable, Sendable {
  /// No answer in time: the request may have been carried out.
  case timeout
  /// Not connected, or the circuit breaker is open: nothing was sent.
  case away
  /// The shared store refused: wrong password, no right to a command, full, read-only. The text is the beginning of its error, at
  /// most 64 bytes.
  case refused(String)
  /// The queue of requests is full.
  case full
}

/// Events that the shared store's thread posts to the cluster machine.
public enum SharedStoreEvent: Sendable {
  case reply(SharedStoreRequestID, Result<SharedStoreReply, SharedStoreFailure>)
  /// Commands can be sent and messages are received from now on: what was missed meanwhile must be read again. `wasFlushed`: the
  /// shared store is another one, or has lost its data.
  case connected(wasFlushed: Bool)
  /// The connection is lost; the text is for the log.
  case lost(String)
  /// `from` is the sender that the message names; the message was decoded completely.
  case message(ClusterMessage, from: Incarnation)
  /// The number of messages that could not be decoded.
  case dropped(Int)
}

/// Numbered by the caller; never reused in a process.
public struct SharedStoreRequestID: Hashable, Sendable {
  public var number: UInt64
  public init(_ number: UInt64) { self.number = number }
}
