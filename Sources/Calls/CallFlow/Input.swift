public import AppSessions
public import CallModel
public import Devices
public import PushPolicy
public import Trunking
public import TrunklineAppProtocol
public import TrunklineBytes
public import TrunklineMediaSession
public import TrunklineSIPDialogs

extension CallMachine {
  /// The inputs of a `CallMachine`.
  public enum Input: Sendable {
    /// An event of the SIP user agent.
    case sip(UserAgent.Event)
    /// An event of an app session. Every `request` gets exactly one `SessionCommand.answer`, every new session one `welcome`.
    case app(SessionEvent)
    case media(MediaEvent)
    /// The answer to `Action.reserveMedia`: the next input.
    case mediaReserved(CallID, MediaReservation)
    /// The other answer: no port, no session or no thread is free, or, with `isOverload`, the threads are busy enough. The text
    /// is for the log.
    case mediaRefused(CallID, reason: String, isOverload: Bool = false)
    /// The answer to a request that `moves`: the new local address of the trunk's RTP; nil: it stays.
    case mediaMoved(CallID, MediaSessionID, SocketAddress?)
    /// The candidates for apps of these calls from now on, by media thread: the machine's addresses may have changed. A thread
    /// without any keeps what it had.
    case appCandidates([[SocketAddress]], of: [CallID])
    /// Moves trunk legs of these calls to another address if the machine no longer has theirs.
    case moveTrunkLegs([CallID])
    /// The journal entry of `Action.journal` is on disk. Without it the machine continues after `Timers.journal`.
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
    /// The number of nodes that accept calls, this one included; they share `calls_per_second` of trunks.
    case nodes(Int)
    /// The answer to `Action.askTombstone`; nil: no node knows.
    case tombstone(CallID, RemoteTombstone?)
    /// As the cluster machine reports it.
    case remote(RemoteEvent)
    /// A call of a dead node: writes its record, and sends `call.gone` to devices that connect.
    case orphaned(JournalEntry, users: [String])
    /// Another node considered this one dead, closed this call and wrote its record: it ends here without one.
    case reaped(CallID)
    /// The store's devices, at the start; or an operator's command for a device.
    case devices(DeviceCommand)
    /// The store's grants of login tokens, at the start; `at` is the wall clock in milliseconds since 1970.
    case grants([UserGrants.Entry], at: Int64)
    /// What the shared store has of login tokens' grants.
    case sharedGrants(SharedGrants)
    /// Whether the shared store or another node may have grants that this node does not have; each time it changes.
    case grantsUncertain(Bool)
    /// An operator has the grants that the shared store has lost written from this node's copy; `Action.answered` returns the
    /// number of users.
    case restoreGrants(QuestionID)
    /// The answer to `Action.restoreGrants`: the shared store has the grants of so many users of it; nothing more is written if
    /// the rest has failed.
    case grantsRestored(users: Int, hasFailed: Bool)
    /// More is known of the caller than the INVITE stated: what devices show changes by `call.update`, never by another push.
    case callerKnown(CallID, Handle)
    /// The answer to `Action.verify`: A, B or C, or nil if the verifier does not vouch for the caller, or did not answer.
    case verified(CallID, attestation: String?)
    /// Callers of this scope (`DirectoryScope`) whose calls do not ring from now on, ascending; they replace the earlier ones.
    case blocked(scope: String, [Int64])
    /// Which events are published outside the gateway from now on.
    case events(GatewayEvent.Rules)
    /// An event of a stream of `Action.stream`.
    case stream(StreamNews)
    /// A recording is closed.
    case recorded(RecordingReport)
    /// Trunks, users and routes as of now; running calls keep what they began with.
    case routing(Routing)
    /// The machine's own addresses from now on, for future calls: `Routing.Trunk.ownAddresses`.
    case ownAddresses(Set<IPAddress>)
    /// How devices are woken from now on; nil: they are not. Those woken before connect with the token that they have.
    case push(PushSettings?)
    /// A request of ours had no answer; comes before the leg's event.
    indirect case unanswered(UnansweredRequest)
    /// Answers to `Action.lookUp`, and lost connections.
    case trunking(TrunkMachine.Input)
    /// An operator disables a trunk, or enables it again: no new calls over a disabled one, running calls continue.
    case setTrunk(String, isDisabled: Bool)
    /// Wall clock in milliseconds since 1970 = monotonic milliseconds + offset.
    case wallClock(offsetMilliseconds: Int64)
    /// From now on new calls are refused; live ones continue.
    case draining
    /// A program's command for a live call; `Action.answered` returns the result, once.
    case command(CallID, CallCommand, QuestionID)
    /// A program makes a call for a user; `Action.answered` returns the call, or why there is none, once.
    case originate(OriginateRequest, QuestionID)
    /// An operator ends a call.
    case hangUp(CallID)
    /// `now` has reached `nextDeadline` (early or late calls do no harm).
    case timer
  }
}

/// Commands for the device registry from outside of calls.
public enum DeviceCommand: Sendable {
  /// All stored devices; those that registered meanwhile stay.
  case loaded([Device])
  /// The defaults, from now on, of registrations that name no topic or env.
  case defaults(DeviceRegistry.Defaults)
  /// Revokes a device: no push from now on, and no session after its calls; nil: every device of the user. `Action.answered`
  /// follows.
  case revoke(user: String, device: String?, QuestionID)
  /// The shared store's data of a device that connected here.
  case registered(Device)
  /// An operator at another node revoked the device.
  case revokedRemotely(DeviceKey)
  /// The device was revoked at this time already, in milliseconds since 1970: calls that the device began later end.
  case revokedBefore(DeviceKey, Int64)
  /// Deletes a user's devices and token grants; sessions end after their calls. `Action.answered` returns how many there were of
  /// each.
  case forget(user: String, QuestionID)
  /// Withdraws a revocation; `Action.answered` follows.
  case allow(DeviceKey, QuestionID)
}
