public import AppSessions
public import Bytes
public import CallFlow
public import Devices
public import SIPDialogs

/// How this node stands to the shared store.
public enum SharedStoreState: String, Hashable, Sendable, CaseIterable {
  /// Not connected: users here ring, users elsewhere are pushed from memory.
  case away
  /// Connected, and without a lease that lives: as `away`, but what is heard counts.
  case isolated
  case up
}

/// What an operator's word on a node came to.
public enum ForgetOutcome: String, Hashable, Sendable {
  /// Its calls are closed now.
  case dead
  /// It has a lease that lives: refused.
  case living
  /// No node of this name was seen since this process began, or it stopped in order.
  case unknown
}

/// A node as this one sees it.
public struct SeenNode: Hashable, Sendable {
  public enum Liveness: String, Hashable, Sendable, CaseIterable {
    case living, draining
    /// No lease; not probed yet.
    case missing
    /// No lease, and it answers: cut off from the shared store only.
    case cutOff
    case silent, dead
    /// More than half of the leases went with it: nothing is done without an operator or a new incarnation.
    case held
  }
  public var lease: NodeLease
  public var liveness: Liveness
}

extension ClusterMachine {
  /// What a `handle` call caused, in order. Owned by the caller and reused.
  public struct Output: Sendable {
    public var actions: [Action] = []
    public init() {}
    public mutating func removeAll() { actions.removeAll(keepingCapacity: true) }
  }

  /// What the machine asks of its surroundings.
  public enum Action: Sendable {
    /// Each has exactly one `SharedStoreEvent.reply`; without one within `Limits.replyWait` it counts as `timeout`.
    case sharedStore(SharedStoreRequestID, SharedStoreRequest)

    case located(CallID, Located)
    case claimed(CallID, ClaimAnswer)
    case admitted(CallID, trunk: String, Bool)
    /// Nil: nobody knows, or the shared store is silent.
    case tombstone(CallID, RemoteTombstone?)

    /// The hello of this session may be completed now. `registration`: the device as the shared store or memory has it. Revoked: close it
    /// with 4003.
    case welcome(DeviceKey, SessionID, registration: Device?, isRevoked: Bool)
    /// The answer to `Input.sessionState`, as `welcome`.
    case sessionState(HTTPRequestID, DeviceKey, registration: Device?, isRevoked: Bool)
    /// Pass a `call.wake` to the socket of a device here; `content` is its `d`.
    case wakeHere(DeviceKey, CallID, content: [UInt8])
    /// A device of a user with live calls here has come to another node: each call wakes it through that node if it may show it.
    case remoteDeviceConnected(RemoteDevice)
    /// The device has a newer session elsewhere: this one ends.
    case replaced(DeviceKey, SessionID)
    /// Turned away by an operator of another node, or found so in the shared store.
    case revoked(DeviceKey)
    /// The same, told later than its session was welcomed: calls that it began here after this time (milliseconds since 1970) end.
    case revokedBefore(DeviceKey, Int64)

    /// Send a SIP OPTIONS to a silent node and answer with `probed`, within 1 s.
    case probe(Incarnation, sip: String)
    /// Close these legs of a dead node's call, at most `Limits.reapStep` calls in one turn.
    case close(CallID, [OrphanedLeg])
    /// Its record: `gatewayRestart`, detail `node lost`, once in the cluster; tell devices that show it (`call.gone`). `of` may be this node's own
    /// incarnation before (`inherited`).
    case orphan(CallEntry, of: Incarnation)
    /// Another node has closed this call of a dead one: devices here that may show it are told.
    case lost(CallID, user: String)
    /// A call of `inherited` that another node has closed and recorded: drop its line.
    case reapedBefore(CallID)
    /// Others closed these calls of ours: end them, without a record.
    case reaped([CallID])
    /// Calls that ended in doubt (`isEndUnconfirmed`), and nobody else has closed, as far as can be known: their records are due.
    case recordsDue([CallID])
    /// What `forget` came to.
    case forgotten(node: String, ForgetOutcome)

    /// What other nodes say of the trunks that they lead: all that is wrong, each time it changes. Nothing while this node has no lease.
    case troubles([String: String])
    /// The shared store's clock, which all nodes share: milliseconds from `Instant` to 1970. When it is heard first, and each time it has moved by a
    /// second or more.
    case clock(offsetMilliseconds: Int64)
    /// So many nodes take calls, this one included, each time it changes.
    case nodes(Int)
    /// This node does the task from now on, or no more.
    case lead(SingleTask, Bool)
    /// Another process has this node's name. At the start: end with status 2 and say where it is. Later: this one's calls were reaped
    /// (`reaped` precedes); end.
    case nameInUse(by: NodeLease, atStart: Bool)
    /// At the start: this living node's version writes what ours does not read, or the other way round: end with status 2 and say which.
    case incompatible(with: NodeLease)
    /// What the shared store has of login tokens' grants: some of it at a time, the latest token first.
    case grants(SharedGrants)
    /// A living node's word on directories or a history.
    case news(ClusterMessage)
    /// For `/readyz`, log and metrics; each time it changes.
    case state(SharedStoreState)
  }
}
