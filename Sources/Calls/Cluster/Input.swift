public import AppSessions
public import CallModel
public import Devices
public import TrunklineAppProtocol
public import TrunklineBytes

/// The result of a SIP OPTIONS to a silent node.
public enum ProbeResult: Hashable, Sendable {
  /// Any SIP response.
  case answered
  /// ICMP unreachable, or a TCP reset: no host or process has the address.
  case refused
  /// Nothing within 1 s.
  case silent
}

extension ClusterMachine {
  /// An event for a `ClusterMachine`. Unknown calls, devices and requests are ignored.
  public enum Input: Sendable {
    case sharedStore(SharedStoreEvent)

    // MARK: devices here

    /// A session without `resumed`. Exactly one `Action.welcome` follows, after `Settings.wait` at the latest. A session that a
    /// wake token began (`onlyCall`) is not entered: its device may have a session elsewhere, which stays.
    case deviceCame(DeviceKey, SessionID, DeviceInfo)
    /// An HTTP request of a device. Exactly one `Action.sessionState` follows, after `Settings.wait` at the latest.
    case sessionState(HTTPRequestID, DeviceKey)
    /// State, caps or accounts have changed; or a session that a wake token began has become a login.
    case deviceChanged(DeviceKey, SessionID, DeviceInfo)
    /// The socket is closed. A session that resumes is entered again by `deviceChanged`.
    case deviceLeft(DeviceKey, SessionID)
    /// Changes that the registry wants stored.
    case devices([DeviceChange])
    /// An operator revoked the device at this node.
    case revoke(DeviceKey)

    // MARK: calls here

    /// Exactly one `Action.located` follows, after `Settings.wait` at the latest. With `here` the call is entered for all its
    /// users until `ended`. May be repeated for further users of a live call.
    case locate(LocateQuestion)
    /// Exactly one `Action.claimed` follows, after `Settings.wait` at the latest. If it is granted, the call is entered until
    /// `ended`.
    case claim(ClaimQuestion)
    /// A further trunk of a live call (the next one of its route, a diversion). Exactly one `Action.admitted` follows. The call
    /// counts for the trunk until `released` or its end.
    case admit(CallID, trunk: String, most: Int)
    case released(CallID, trunk: String)
    /// The call's journal entry with its legs, each time it changes; and the users whose devices may show the call.
    case started(JournalEntry, users: [String])
    /// The call has ended. `over`: the end, for devices that connect late to other nodes; nil if no device was woken for the
    /// call.
    case ended(CallID, over: CallOver?)
    /// Exactly one `Action.tombstone` follows, after `Settings.wait` at the latest.
    case tombstone(CallID)
    /// Asks the device's node to pass on a `call.wake`. Best effort: nothing follows.
    indirect case wake(CallWake, DeviceKey, node: String)

    // MARK: this node

    /// This node's load, for its lease. `refuses`: new calls are refused for overload.
    case load(calls: Int, sessions: Int, refuses: Bool)
    case draining
    /// All troubles of the trunks that this node leads; other nodes read them in our lease.
    case troubles([String: String])
    /// The new address of our SIP for other nodes, which read it with the next renewal of the lease.
    case moved(sip: String)
    /// The process ends in an orderly way, without calls. Lease and tasks are given up.
    case stopping
    /// Trunks whose REGISTER or OPTIONS one node does for all; and trunks with a limit, from whose counts a dead node's calls are
    /// removed.
    case trunks(single: [String], limited: [String])
    /// Calls that the previous process left in its journal. For each, one `Action.orphan` follows, or one `Action.reapedBefore`
    /// if another node has closed it; after 3 s at the latest.
    case inherited([CallEntry], of: Incarnation)

    // MARK: other nodes

    /// The answer to `Action.probe`.
    case probed(Incarnation, ProbeResult)
    /// An operator states that a node is dead (`nodes forget`). `Action.forgotten` follows.
    case forget(node: String)

    // MARK: grants of login tokens

    /// Whether tokens may grant something here; repeated when the configuration of what they may grant has changed.
    case sharesGrants(Bool)
    /// Grants of tokens, or erasures of users, for the shared store.
    case grants([SharedGrant])
    /// A batch of grants that the shared store has lost, from this node's copy. `Action.grantsRestored` follows.
    case restoreGrants([SharedGrant])
    /// The comparison that `Action.grants` began is complete.
    case grantsCompared
    /// A digest of the users whose grants this node serves although the shared store has lost them; 0: none.
    case staleGrants(UInt64)
    /// `now` has reached `nextDeadline` (early or late calls do no harm).
    case timer
  }
}
