public import AppProtocol
public import AppSessions
public import Bytes
public import Devices
public import MediaSession
public import PushPolicy
public import SIPDialogs
public import Trunking

/// A call's UUID: the same value in `call.offer`, CallKit, journal and record.
public typealias CallID = Identifier

extension CallMachine {
  /// What can happen to a `CallMachine`.
  public enum Input: Sendable {
    /// An event of the SIP user agent.
    case sip(UserAgent.Event)
    /// An event of an app session. Every `request` gets exactly one `SessionCommand.answer`, every new session one `welcome`.
    case app(SessionEvent)
    case media(MediaEvent)
    /// The answer to `Action.reserveMedia`: the next input.
    case mediaReserved(CallID, MediaReservation)
    /// The other answer: no port, no session, no thread is free; or, with `isOverload`, those that are there are busy enough. The
    /// text is for the log.
    case mediaRefused(CallID, reason: String, isOverload: Bool = false)
    /// The answer to a request that `moves`: where the trunk's RTP is to come from now on; nil: where it came before.
    case mediaMoved(CallID, MediaSessionID, SocketAddress?)
    /// What the apps of these calls are offered from now on, by media thread: the machine's addresses may have changed. A thread without any keeps
    /// what it had.
    case appCandidates([[SocketAddress]], of: [CallID])
    /// Trunk legs of these calls whose address the machine no longer has continue at another.
    case moveTrunkLegs([CallID])
    /// The start line of `Action.journal` is on disk. Without it the machine continues after `Timers.journal`.
    case journalled(CallID)
    /// How an `Action.push` ended.
    case pushed(PushReport)
    /// A webhook's answer to `Action.askRoute`; nil: it has none.
    case routed(CallID, RouteAnswer?)
    /// The answer to `Action.askUser`; nil: there is none.
    case userKnown(UserQuestion, UserAnswer?)
    /// The answers to `Action.locate`, `Action.claim` and `Action.admit`.
    case located(CallID, Located)
    case claimed(CallID, ClaimAnswer)
    case admitted(CallID, trunk: String, Bool)
    /// So many nodes take calls, this one included: `calls_per_second` of trunks is shared by them.
    case nodes(Int)
    /// The answer to `Action.askTombstone`; nil: unknown.
    case tombstone(CallID, RemoteTombstone?)
    /// A device has a socket at another node now.
    case remoteDeviceConnected(RemoteDevice)
    /// A call of a node that died: its record, and `call.gone` for devices that come.
    case orphaned(StartLine, users: [String])
    /// A call of another node is over without that node's word: devices here that may show it are told.
    case remoteCallLost(CallID, user: String)
    /// Another node took this one for dead and closed this call, with its record: it ends here without one.
    case reaped(CallID)
    /// What the store held, at the start; or what an operator does to a device.
    case devices(DeviceCommand)
    /// What the store held of login tokens' grants; at the start, when the wall clock says `at`, in milliseconds since 1970.
    case grants([UserGrants.Entry], at: Int64)
    /// What login tokens grant at other nodes.
    case sharedGrants(SharedGrants)
    /// More is known of who calls than the INVITE said: what devices show changes by `call.update`, never by another push.
    case callerKnown(CallID, Handle)
    /// The answer to `Action.verify`: A, B or C, or nil if the verifier does not stand for the caller, or did not answer.
    case verified(CallID, attestation: String?)
    /// Callers of this scope (`DirectoryScope`) whose calls ring no device from now on, ascending; they replace the previous ones.
    case blocked(scope: String, [Int64])
    /// What is told beyond the gateway from now on.
    case events(GatewayEvent.Rules)
    /// What becomes of `Action.stream`.
    case stream(StreamNews)
    /// A recording is closed.
    case recorded(RecordingReport)
    /// Trunks, users and routes as of now; calls that run keep what they began with.
    case routing(Routing)
    /// The machine's own addresses from now on, for calls to come: `Routing.Trunk.ownAddresses`.
    case ownAddresses(Set<IPAddress>)
    /// How devices are woken from now on; nil: they are not. Those woken before come back with the token that they have.
    case push(PushSettings?)
    /// A request of ours that had no answer; before the leg's event.
    indirect case unanswered(UnansweredRequest)
    /// Answers to `Action.lookUp`, and lost connections.
    case trunking(TrunkMachine.Input)
    /// An operator takes a trunk out of use, or back: no new calls over it, those that run continue.
    case setTrunk(String, isDisabled: Bool)
    /// Wall clock in milliseconds since 1970 = monotonic milliseconds + offset.
    case wallClock(offsetMilliseconds: Int64)
    /// From now on new calls are refused; those that live continue.
    case draining
    /// A program wants something of a live call; `Action.answered` says once whether it is done.
    case command(CallID, CallCommand, QuestionID)
    /// A program makes a call for a user; `Action.answered` says once which, or why there is none.
    case originate(OriginateRequest, QuestionID)
    /// An operator ends a call.
    case hangUp(CallID)
    /// `now` has reached `nextDeadline` (early or late calls do no harm).
    case timer
  }
}

/// What comes to the device registry from outside of calls.
public enum DeviceCommand: Sendable {
  /// Everything that was stored; what registered meanwhile stays.
  case loaded([Device])
  /// What registrations from now on mean that name no topic or env.
  case defaults(DeviceRegistry.Defaults)
  /// No push from now on, and no session after its calls; nil: every device of the user. `Action.answered` follows.
  case revoke(user: String, device: String?, QuestionID)
  /// What the cluster's store has of a device that has come here.
  case registered(Device)
  /// An operator of another node has turned it away.
  case revokedRemotely(DeviceKey)
  /// That was so already at this time, milliseconds since 1970: calls that the device began later end.
  case revokedBefore(DeviceKey, Int64)
  /// Nothing is kept of a user's devices and of what tokens granted; sessions end after their calls. `Action.answered` says how many there were
  /// of each.
  case forget(user: String, QuestionID)
  /// Takes a revocation back; `Action.answered` follows.
  case allow(DeviceKey, QuestionID)
}
