public import AppSessions
public import CallModel
public import Devices
public import TrunklineAppProtocol
public import TrunklineBytes
public import TrunklineSIPDialogs

/// The connection of this node to the shared store.
public enum SharedStoreState: String, Hashable, Sendable, CaseIterable {
  /// Not connected: users here ring, users elsewhere are pushed from memory.
  case away
  /// Connected, but without a valid lease: as `away`, but what is received counts.
  case isolated
  case up
}

/// The result of an operator's `nodes forget`.
public enum ForgetOutcome: String, Hashable, Sendable {
  /// Its calls are closed now.
  case dead
  /// It has a valid lease: refused.
  case living
  /// No node of this name was seen since this process began, or it stopped in an orderly way.
  case unknown
}

/// A node as this one sees it.
public struct SeenNode: Hashable, Sendable {
  public enum Liveness: String, Hashable, Sendable, CaseIterable {
    case living, draining
    /// No lease; not probed yet.
    case missing
    /// No lease, but it answers: cut off from the shared store only.
    case cutOff
    case silent, dead
    /// More than half of the leases ended together with its own: nothing is done without an operator or a new incarnation.
    case held
  }
  public var lease: NodeLease
  public var liveness: Liveness
}

extension SeenNode {
  /// A node with this lease, which is valid.
  init(lease: NodeLease) { self.init(lease: lease, liveness: lease.isDraining ? .draining : .living) }
}

extension ClusterMachine {
  /// The actions of a `handle` call, in order. Owned by the caller and reused.
  public struct Output: Sendable {
    public var actions: [Action] = []
    public init() {}
    public mutating func removeAll() { actions.removeAll(keepingCapacity: true) }
  }

  /// A request of the machine to its environment.
  public enum Action: Sendable {
    /// Each has exactly one `SharedStoreEvent.reply`; without one within `Limits.replyWait` it counts as `timeout`.
    case sharedStore(SharedStoreRequestID, SharedStoreRequest)

    case located(CallID, Located)
    case claimed(CallID, ClaimAnswer)
    case admitted(CallID, trunk: String, Bool)
    /// Nil: no node has a tombstone of the call, or the shared store does not answer.
    case tombstone(CallID, RemoteTombstone?)

    /// The hello of this session may be completed now. `registration`: the device as the shared store or memory has it. If it is
    /// revoked, close the session with 4003.
    case welcome(DeviceKey, SessionID, registration: Device?, isRevoked: Bool)
    /// The answer to `Input.sessionState`, as `welcome`.
    case sessionState(HTTPRequestID, DeviceKey, registration: Device?, isRevoked: Bool)
    /// Pass a `call.wake` to the socket of a device here.
    indirect case wakeHere(DeviceKey, CallWake)
    /// For the call machine.
    case remote(RemoteEvent)
    /// The device has a newer session elsewhere: this one ends.
    case replaced(DeviceKey, SessionID)
    /// Revoked by an operator at another node, or found revoked in the shared store.
    case revoked(DeviceKey)
    /// As `revoked`, but learnt after its session was welcomed: calls that it began here after this time (milliseconds since
    /// 1970) end.
    case revokedBefore(DeviceKey, Int64)

    /// Send a SIP OPTIONS to a silent node and answer with `probed`, within 1 s.
    case probe(Incarnation, sip: String)
    /// Close these legs of a dead node's call, at most `Limits.reapStep` calls in one step.
    case close(CallID, [OrphanedLeg])
    /// Write the call's record, `gatewayRestart` with detail `node lost`, once in the cluster, and notify devices that show the
    /// call (`call.gone`). `of` may be the previous incarnation of this node (`inherited`).
    case orphan(CallEntry, of: Incarnation)
    /// Another node has closed and recorded this call of `inherited`: drop its line.
    case reapedBefore(CallID)
    /// Other nodes closed these calls of ours: end them, without a record.
    case reaped([CallID])
    /// Calls with unconfirmed ends (`isEndUnconfirmed`) that no other node has closed, as far as can be known: write their
    /// records now.
    case recordsDue([CallID])
    /// The result of `forget`.
    case forgotten(node: String, ForgetOutcome)

    /// All troubles that other nodes report of the trunks that they lead, each time these change. Empty while this node has no
    /// lease.
    case troubles([String: String])
    /// The shared store's clock, which all nodes share: milliseconds from `Instant` to 1970. Sent when it is first received, and
    /// each time it has moved by a second or more.
    case clock(offsetMilliseconds: Int64)
    /// The number of nodes that accept calls, including this one, each time it changes.
    case nodes(Int)
    /// This node starts (true) or stops (false) leading the task.
    case lead(SingleTask, Bool)
    /// Another process has this node's name. At the start: end with status 2, and state where the other process is. Later: the
    /// calls of this node were reaped (`reaped` precedes); end.
    case nameInUse(by: NodeLease, atStart: Bool)
    /// At the start: a living node's version writes a format that this version does not read, or the reverse: end with status 2,
    /// and name the node.
    case incompatible(with: NodeLease)
    /// Grants of login tokens in the shared store, in steps. After `SharedGrants.comparison`, `comparisonStep` follows until
    /// `Input.grantsCompared`.
    case grants(SharedGrants)
    /// The answer to `Input.restoreGrants`: the shared store has the grants of so many users of the batch. If the rest has failed,
    /// it is queued as a login's grants are.
    case grantsRestored(users: Int, hasFailed: Bool)
    /// Whether this node may lack grants that the shared store or another node has; each time it changes.
    case grantsUncertain(Bool)
    /// A living node's message on directories or a history.
    case news(ClusterMessage)
    /// For `/readyz`, log and metrics; each time it changes.
    case state(SharedStoreState)
  }
}
