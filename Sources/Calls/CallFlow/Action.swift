public import AppSessions
public import CallModel
public import Devices
public import PushPolicy
public import Trunking
public import TrunklineBytes
public import TrunklineMediaSession
public import TrunklineSIPDialogs

extension CallMachine {
  /// The actions that a `handle` call caused, in order. The caller owns and reuses it: read the actions, then call `removeAll()`.
  public struct Output: Sendable {
    public var actions: [Action] = []
    public init() {}
    /// Empties the list and keeps its storage.
    public mutating func removeAll() { actions.removeAll(keepingCapacity: true) }
  }
}

/// A request for a call's sockets and media thread.
public struct MediaRequest: Sendable {
  public var call: CallID
  public var session: MediaSessionID
  /// All sessions of one user are on one thread.
  public var user: String
  /// Further users whose devices ring: one of them may answer the call.
  public var others: [String]
  /// The trunk's media or signalling address; it determines the local address of the trunk leg.
  public var toward: IPAddress?
  /// The flow of the trunk's INVITE; its local address is the one that the trunk sent it to.
  public var asked: Flow?
  /// The session exists already: if the machine no longer has its trunk leg's address, the leg continues at another. The answer
  /// is `mediaMoved`.
  public var moves = false
  public init(
    _ call: CallID, session: MediaSessionID, user: String, others: [String] = [], toward: IPAddress?, asked: Flow? = nil
  ) {
    (self.call, self.session, self.user, self.others, self.toward, self.asked) = (call, session, user, others, toward, asked)
  }
}

extension CallMachine {
  /// A request of the call machine to its surroundings. Only `reserveMedia` is answered at once.
  public enum Action: Sendable {
    case sip(UserAgent.Command)
    case app(SessionCommand)
    case media(MediaCommand)
    /// `mediaReserved` or `mediaRefused` is the next input, or `mediaMoved` after a request that `moves`. `MediaCommand.close`
    /// frees a reserved session.
    case reserveMedia(MediaRequest)
    /// Requests the locations of a call's users from the cluster; answer with `located`, once, within 100 ms.
    case locate(LocateQuestion)
    /// Enters a `call.start` in the cluster; answer with `claimed`, once, within 100 ms.
    case claim(ClaimQuestion)
    /// Requests a slot of a further trunk for a live call; answer with `admitted`, once, within 100 ms. The slot is held until
    /// `released` or the call's record.
    case admit(CallID, trunk: String, most: Int)
    case released(CallID, trunk: String)
    /// A located or claimed call was refused and never existed. All other calls end with their record.
    case unclaimed(CallID)
    /// Requests how a call ended that this node does not know; answer with `tombstone`, once, within 100 ms.
    case askTombstone(CallID)
    /// Sends a push's content to a device at another node, through its socket there.
    case wake(DeviceKey, node: String, CallPush)
    /// Identity header fields to be verified; answer with `verified`. An answer counts only within `Timers.verification`.
    case verify(CallID, IdentityQuestion)
    /// A DNS query; answer with `trunking(.resolved)`.
    case lookUp(DNSQuestion)
    /// Sends a double CRLF on this flow (RFC 5626 §3.5.1).
    case keepAlive(Flow)
    /// Wakes a device for a call; answer with `pushed`, once. Never for a (call, device) whose push was accepted.
    case push(PushKey, PushTarget, CallPush, deadline: Instant)
    /// Queries a webhook for a call's route; answer with `routed` within 10 s, or not at all.
    case askRoute(RouteQuestion, Webhook)
    /// Queries the operator's server for a user or a number; answer with `userKnown`, once, within 2 s.
    case askUser(UserQuestion, Webhook)
    /// A device has the call, or none will have it: its pushes are not retried.
    case pushCallOver(CallID)
    /// To the store, in order: changes of the registry.
    case devices([DeviceChange])
    /// To the store, in order: changes of what login tokens grant.
    case grants([UserGrants.Change])
    /// To the shared store: what a login token grants here, or that a user was erased.
    case shareGrants([SharedGrant])
    /// To the shared store: a batch of grants that it has lost. Answer with `grantsRestored`, once, when it has them and no rows
    /// of it wait to be applied.
    case restoreGrants([SharedGrant])
    /// The comparison of this node's copy with the shared store (`SharedGrants.comparison`) is complete.
    case grantsCompared
    /// `UserGrants.staleDigest`, each time it changes: other nodes learn whether this one serves grants that they do not have.
    case staleGrants(UInt64)
    /// For log, metrics and the transport's allow-list.
    case trunkNews(TrunkNews)
    /// To the store before the first 180 or INVITE, and again with the time of the 200; answer with `journalled`.
    case journal(JournalEntry)
    /// Exactly one per call, at most `Timers.finalStatistics` after its end.
    indirect case record(CallRecord)
    /// Another node has this call's record: this one keeps nothing of it.
    case disowned(CallID)
    /// A step of a call's timeline; `detail` is a short text such as a SIP code, a codec or a reason, without numbers of
    /// subscribers.
    case trace(CallID, CallStage, at: Instant, detail: String?)
    /// For the readers of events, in order. A call's end is not among them: its record states it.
    indirect case event(GatewayEvent)
    /// Begins or ends a file with the call's audio; `recorded` follows each end, once.
    case recording(RecordingCommand)
    /// Opens or closes a stream, or sends it a digit; its events come as `stream`.
    case stream(StreamCommand)
    /// The answer to an operation, once: `Input.command`, `.originate` and those of `DeviceCommand`.
    case answered(QuestionID, OperationAnswer)
    /// A request of ours inside a dialog had no response. The call is nil if it is no longer known; its record may be written
    /// already.
    indirect case requestUnanswered(CallID?, UnansweredRequest)
    /// A sample for a histogram.
    case measured(Measurement)
    /// A trunk's INVITE or an app's `call.start` was refused before it became a call.
    case refused(Refusal)
  }
}

/// The input of a verifier of caller identities (RFC 8224 §6.2).
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
  /// A duration that an app reported in `call.ringing`, once per call and device.
  case app(AppStep, Duration)
  /// From INVITE to our 180.
  case inviteToRinging(Duration)
  /// From `call.answer` (incoming) or `call.start` (outgoing) to the open gate.
  case gate(CallDirection, Duration)
  /// From `call.answer` to the first frame that is not silent, less the longer of the trunk's time (200 → ACK) and the client's
  /// (connected → `media.active`).
  case answerToAudio(AudioDirection, Duration)
  /// The times of trunk and client, the longer of which `answerToAudio` excludes.
  case answerToACK(Duration)
  case connectedToActive(Duration)
  /// From start to end, and from 200 to end (zero if never connected).
  case callLength(CallDirection, connected: Duration)
}

/// The parts of an app's time from a push to `call.ringing`, as the app measures them.
public enum AppStep: Sendable, CaseIterable {
  /// Process start to push delegate; delegate to accepted report; delegate to `welcome`.
  case push, report, open
}
