public import AppSessions
public import Bytes
public import Devices
public import MediaSession
public import PushPolicy
public import SIPDialogs
public import Trunking

extension CallMachine {
  /// What a `handle` call caused, in order. Owned by the caller and reused: take what is there, then `removeAll()`.
  public struct Output: Sendable {
    public var actions: [Action] = []
    public init() {}
    /// Empties the list and keeps its storage.
    public mutating func removeAll() { actions.removeAll(keepingCapacity: true) }
  }
}

/// Sockets and a thread for a call.
public struct MediaRequest: Sendable {
  public var call: CallID
  public var session: MediaSessionID
  /// All sessions of one user are on one thread.
  public var user: String
  /// Other users for whom the call rings: one of them may get it.
  public var others: [String]
  /// The trunk's media or signalling address: it chooses the local address of the trunk leg.
  public var toward: IPAddress?
  /// The flow of the trunk's INVITE: which of our addresses it has asked.
  public var asked: Flow?
  /// The session is there: if the machine no longer has its trunk leg's address, it continues at another. The answer is `mediaMoved`.
  public var moves = false
  public init(
    _ call: CallID, session: MediaSessionID, user: String, others: [String] = [], toward: IPAddress?, asked: Flow? = nil
  ) {
    (self.call, self.session, self.user, self.others, self.toward, self.asked) = (call, session, user, others, toward, asked)
  }
}

extension CallMachine {
  /// What the call machine asks of its surroundings. Only `reserveMedia` is answered at once.
  public enum Action: Sendable {
    case sip(UserAgent.Command)
    case app(SessionCommand)
    case media(MediaCommand)
    /// `mediaReserved` or `mediaRefused` is the next input, `mediaMoved` after a request that `moves`. A reserved session is freed by `MediaCommand.close`.
    case reserveMedia(MediaRequest)
    /// Asks the cluster where a call's users are; answer with `located`, once, within 100 ms.
    case locate(LocateQuestion)
    /// Enters a `call.start` in the cluster; answer with `claimed`, once, within 100 ms.
    case claim(ClaimQuestion)
    /// A further trunk of a call that lives; answer with `admitted`, once, within 100 ms. It counts until `released` or the call's record.
    case admit(CallID, trunk: String, most: Int)
    case released(CallID, trunk: String)
    /// A call that was located or claimed became none; the others end with their record.
    case unclaimed(CallID)
    /// How a call ended that this node does not know; answer with `tombstone`, once, within 100 ms.
    case askTombstone(CallID)
    /// To a device at another node, through its socket there: a push's content.
    case wake(DeviceKey, node: String, CallPush)
    /// Identity header fields to be checked; answer with `verified`, within `Timers.verification` if it is to count.
    case verify(CallID, IdentityQuestion)
    /// A question to the domain name system; answer with `trunking(.resolved)`.
    case lookUp(DNSQuestion)
    /// Two empty lines on this flow.
    case keepAlive(Flow)
    /// Wakes a device for a call; answer with `pushed`, once. Never for a (call, device) whose push was accepted.
    case push(PushKey, PushTarget, CallPush, deadline: Instant)
    /// Asks a webhook for the users of a call; answer with `routed`, within 10 s or not at all.
    case askRoute(RouteQuestion, Webhook)
    /// Asks the operator's server about a user or a number; answer with `userKnown`, once, within 2 s.
    case askUser(UserQuestion, Webhook)
    /// A device has the call, or none will: no retries of its pushes.
    case pushCallOver(CallID)
    /// To the store: the registry has changed. In order.
    case devices([DeviceChange])
    /// To the store: what login tokens grant has changed. In order.
    case grants([UserGrants.Change])
    /// To the other nodes: what login tokens grant here, or do not any longer.
    case shareGrants([SharedGrant])
    /// For log, metrics and the transport's allow-list.
    case trunkNews(TrunkNews)
    /// To the store before the first 180 or INVITE, and again with the time of the 200; answer with `journalled`.
    case journal(StartLine)
    /// Exactly one per call, at most `Timers.finalStatistics` after its end.
    indirect case record(CallRecord)
    /// A call that has its record at another node: nothing is to be kept of it here.
    case disowned(CallID)
    /// A step of a call's timeline; `detail` is a short text such as a SIP code, a codec or a reason, without numbers of
    /// subscribers.
    case trace(CallID, CallStage, at: Instant, detail: String?)
    /// For readers of events; a call's end is not among them, as its record has it. In order.
    indirect case event(GatewayEvent)
    /// Begins or ends a file with the call's audio; `recorded` follows each end, once.
    case recording(RecordingCommand)
    /// Opens or closes a stream, or tells it a digit; what becomes of it comes as `stream`.
    case stream(StreamCommand)
    /// The answer to an operation, once: `Input.command`, `.originate` and those of `DeviceCommand`.
    case answered(QuestionID, OperationAnswer)
    /// A request of ours inside a dialog had no response; the call, if it is known still. Its record may be written.
    indirect case requestUnanswered(CallID?, UnansweredRequest)
    /// A sample for a histogram.
    case measured(Measurement)
    /// A trunk's INVITE or an app's `call.start` that became no call.
    case refused(Refusal)
  }
}

/// What a verifier of caller identities needs (RFC 8224 §6.2).
public struct IdentityQuestion: Sendable, Equatable {
  /// Well-formed Identity header fields, at most 4.
  public var identities: [String]
  /// Caller and called number as the rest of the gateway writes them.
  public var from: String
  public var to: String
  /// The INVITE's Date.
  public var date: String?
  public init(identities: [String], from: String, to: String, date: String?) {
    (self.identities, self.from, self.to, self.date) = (identities, from, to, date)
  }
}

/// Durations that the machine measures.
public enum Measurement: Sendable, Equatable {
  /// From INVITE to the first `call.offer`, and to the first push.
  case inviteToOffer(Duration)
  case inviteToPush(Duration)
  /// From a push to the `hello` of its device.
  case pushToConnected(Duration)
  /// What an app said in `call.ringing`, once per call and device.
  case app(AppStep, Duration)
  /// From INVITE to our 180.
  case inviteToRinging(Duration)
  /// From `call.answer` (incoming) or `call.start` (outgoing) to the open gate.
  case gate(CallDirection, Duration)
  /// From `call.answer` to the first frame that is not silent, less what trunk (200 → ACK) and client (connected →
  /// `media.active`) took.
  case answerToAudio(AudioDirection, Duration)
  /// What was taken off `answerToAudio`.
  case answerToACK(Duration)
  case connectedToActive(Duration)
  /// From start to end, and from 200 to end (zero if never connected).
  case callLength(CallDirection, connected: Duration)
}

/// What an app measures of its own way from a push to `call.ringing`.
public enum AppStep: Sendable, CaseIterable {
  /// Process start to push delegate; delegate to accepted report; delegate to `welcome`.
  case push, report, open
}

/// Why an INVITE or `call.start` became no call. INVITEs received = incoming calls + refusals of direction `incoming`; accepted
/// `call.start` = outgoing calls.
public struct Refusal: Sendable, Hashable {
  public enum Reason: String, Sendable, CaseIterable {
    /// Outgoing: every trunk of the route is down; or has had its calls of this second.
    case trunkDown, trunkRate
    /// Incoming: sent to the node that has the user, by 302. Outgoing: that node has this call.
    case steered
    /// Incoming, by an edge: the shared store does not say where the user's devices are, and none is known here. The edge asks the next node.
    case unlocated
    /// An operator took the trunk out of use.
    case trunkDisabled
    /// A number that the user may not dial; too many calls of the user in this hour; the user's own number; a number to call from that is not the
    /// user's.
    case userPrefix, userRate, ownNumber, callerNumber
    case draining, overload, trunkLimit, userLimit, mediaPorts, mediaOverload, diversions, unknownTrunk
    case notFound, forbidden, emergency, codec
    /// Refused by the SIP user agent before the call machine saw it; `detail` has its reason.
    case signalling
  }
  public var reason: Reason
  public var direction: CallDirection
  /// Empty if not known.
  public var trunk: String
  public var detail: String?
  /// It is no fault: the first challenge of a caller that logs in.
  public var isRoutine = false
  /// Who wanted it, as far as known.
  public var caller = Caller()
  public struct Caller: Sendable, Hashable {
    /// Of an outgoing call.
    public var device: DeviceKey?
    /// The other party: who calls, or who is dialled.
    public var number: String?
    /// The Call-ID of an INVITE, or the id of a `call.start`.
    public var call: String?
    public init(device: DeviceKey? = nil, number: String? = nil, call: String? = nil) {
      (self.device, self.number, self.call) = (device, number, call)
    }
  }
  public init(
    _ reason: Reason, _ direction: CallDirection, trunk: String = "", detail: String? = nil, caller: Caller = Caller()
  ) {
    (self.reason, self.direction, self.trunk, self.detail) = (reason, direction, trunk, detail)
    self.caller = caller
  }
}
