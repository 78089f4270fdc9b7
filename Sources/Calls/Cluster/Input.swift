public import AppProtocol
public import AppSessions
public import Bytes
public import CallFlow
public import Devices

/// What a SIP OPTIONS to a silent node came to.
public enum ProbeResult: Hashable, Sendable {
  /// Any SIP response.
  case answered
  /// ICMP unreachable, or a TCP reset: nobody has the address.
  case refused
  /// Nothing within 1 s.
  case silent
}

extension ClusterMachine {
  /// What can happen to a `ClusterMachine`. Unknown calls, devices and requests are ignored.
  public enum Input: Sendable {
    case sharedStore(SharedStoreEvent)

    // MARK: devices here

    /// A session without `resumed`. Exactly one `Action.welcome` follows, after `Settings.wait` at the latest. One that a wake token began
    /// (`onlyCall`) enters nothing: its device may have a session elsewhere, which stays.
    case deviceCame(DeviceKey, SessionID, DeviceInfo)
    /// A device asks by HTTP. Exactly one `Action.sessionState` follows, after `Settings.wait` at the latest.
    case sessionState(HTTPRequestID, DeviceKey)
    /// State, caps or accounts; also a session that a wake token began and that is a login from now on.
    case deviceChanged(DeviceKey, SessionID, DeviceInfo)
    /// The socket is gone; when it resumes it comes again with `deviceChanged`.
    case deviceLeft(DeviceKey, SessionID)
    /// What the registry wants stored.
    case devices([DeviceChange])
    /// An operator turned it away here.
    case revoke(DeviceKey)

    // MARK: calls here

    /// Exactly one `Action.located` follows, after `Settings.wait` at the latest. With `here` the call is entered for all its users until
    /// `ended`. May be asked again for further users of a call that lives.
    case locate(LocateQuestion)
    /// Exactly one `Action.claimed` follows, after `Settings.wait` at the latest. Granted, the call is entered until `ended`.
    case claim(ClaimQuestion)
    /// A further trunk of a call that lives (the next one of its route, a diversion): exactly one `Action.admitted` follows. It counts until
    /// `released` or the call's end.
    case admit(CallID, trunk: String, most: Int)
    case released(CallID, trunk: String)
    /// The call's start line with its legs, each time it changes; whose devices may show it.
    case started(StartLine, users: [String])
    /// The call is over. `over`: what devices hear that come late to other nodes; nil for one that none was woken for.
    case ended(CallID, over: CallOver?)
    /// Exactly one `Action.tombstone` follows, after `Settings.wait` at the latest.
    case tombstone(CallID)
    /// Ask the node of this device to pass a `call.wake` on. Best effort: nothing follows. `content` is the message's `d`.
    case wake(CallID, DeviceKey, node: String, content: [UInt8])

    // MARK: this node

    /// For the lease. `refuses`: new calls are refused for overload.
    case load(calls: Int, sessions: Int, refuses: Bool)
    case draining
    /// What is wrong with the trunks that this node leads, all of them; others hear it with our lease.
    case troubles([String: String])
    /// Where others reach our SIP from now on; they hear it with the next renewal of the lease.
    case moved(sip: String)
    /// The process ends in order: no calls are left. Lease and tasks are given up.
    case stopping
    /// Trunks whose REGISTER or OPTIONS one node does for all; and those with a limit, whose counts a dead node's are taken off.
    case trunks(single: [String], limited: [String])
    /// Calls that the process before this one left in its journal. Each becomes one `Action.orphan`, or one `Action.reapedBefore` if another
    /// node has closed it; after 3 s at the latest.
    case inherited([CallEntry], of: Incarnation)

    // MARK: other nodes

    /// The answer to `Action.probe`.
    case probed(Incarnation, ProbeResult)
    /// An operator says that a node is dead (`nodes forget`). `Action.forgotten` follows.
    case forget(node: String)

    // MARK: grants of login tokens

    /// Whether tokens may grant something here; again when what they may grant has changed.
    case sharesGrants(Bool)
    /// What a token grants here, or that a user was erased, for the shared store.
    case grants([SharedGrant])
    /// `now` has reached `nextDeadline` (early or late calls do no harm).
    case timer
  }
}
