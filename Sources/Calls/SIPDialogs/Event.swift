public import TrunklineBytes
public import TrunklineSIP

extension UserAgent {
  /// An event of the user agent for the call machine.
  ///
  /// Order on an inbound leg: `inviteReceived`, then at most one of `cancelled` / (after `answer`) `acknowledged` or
  /// `ackTimedOut`, any number of `reinviteReceived` and `pingAnswered`, at most one `byeReceived`, and always `legClosed` as the
  /// last. On an outbound leg: any number of `progress`, one of `answered` / `failed`, … , `legClosed`.
  public enum Event: Sendable {
    /// A new call; 100 is already sent.
    indirect case inviteReceived(LegID, InboundInvite)
    /// CANCEL before a final response; 200 and 487 are already sent.
    case cancelled(LegID, ReasonValue?)
    /// The ACK of our 200 arrived; `sdp` is the answer when the INVITE had no offer, nil otherwise. Sent again for a re-INVITE
    /// only if that had no offer.
    case acknowledged(LegID, sdp: String?)
    /// No ACK within 64·T1 of our 200: the BYE that RFC 3261 §13.3.1.4 requires is already sent.
    case ackTimedOut(LegID)
    /// 100…199 on an outbound leg.
    case progress(LegID, code: Int, sdp: String?)
    /// 2xx on an outbound leg; ACK is already sent. A second fork's 2xx gets ACK and BYE inside and is not reported.
    case answered(LegID, sdp: String?)
    /// Final non-2xx, time-out (408) or transport failure (503, `byTransport`) of an outbound INVITE.
    case failed(LegID, code: Int, cause: ReasonValue?, byTransport: Bool)
    /// The answer to the offer in a reliable provisional response (RFC 3262 §5): the 200 contains no description.
    case provisionallyAnswered(LegID, sdp: String?)
    /// No PRACK within 64·T1 of a reliable provisional response; 504 is already sent.
    case provisionalTimedOut(LegID)
    /// A re-INVITE, or an UPDATE or PRACK with an offer; reply with `answerReinvite` or `refuseReinvite`. `sdp` is nil if there
    /// is no offer. Also sent before the final response, once the first offer has been answered.
    case reinviteReceived(LegID, sdp: String?)
    /// An offer may be sent now: because of `modify`, because a glare is over, or because a session refresh is due. Reply with
    /// `offer`, or not at all.
    case offerWanted(LegID)
    /// Our address in the dialog was replaced by another: the peer must be notified by an offer, which `modify` requests.
    case addressMoved(LegID)
    /// Our address was removed before the final response to our INVITE, which would be sent there; CANCEL is sent, and `failed`
    /// follows.
    case addressLost(LegID)
    /// 2xx to our `offer`; `sdp` is the answer.
    case offerAnswered(LegID, sdp: String?)
    /// Our `offer` was refused; the session stays as it was (RFC 3261 §14.1).
    case offerRefused(LegID, code: Int)
    /// The dialog has ended; BYE is already sent.
    case sessionLost(LegID, SessionLoss)
    /// A digit by INFO.
    case digit(LegID, Character, milliseconds: Int)
    /// The final response to `sendDigit`; 408 if there was none.
    case digitSent(LegID, code: Int)
    /// A REFER (RFC 3515); reply with `acceptRefer` or `refuseRefer`.
    case referReceived(LegID, Referral)
    /// The final response to our `refer`; after a 2xx, `referProgress` follows.
    case referAnswered(LegID, code: Int)
    /// A NOTIFY of our `refer`: the status in its sipfrag, nil without one. `isFinal`: no other follows, because the NOTIFY
    /// states it or because none came in time. Only a 2xx means success (RFC 3515 §2.4.5).
    case referProgress(LegID, code: Int?, isFinal: Bool)
    /// The peer ended the leg; 200 is already sent.
    case byeReceived(LegID, ReasonValue?)
    /// `alive` unless 408, 481, a time-out or a transport failure answered the `ping`.
    case pingAnswered(LegID, alive: Bool)
    /// A server of an outbound leg answered 503 (with its Retry-After), could not be reached or is silent, and the leg continues
    /// with the next one.
    case targetFailed(LegID, Flow, code: Int, retryAfter: Int?)
    /// The outcome of `Command.request`.
    case requestAnswered(RequestID, RequestOutcome)
    /// A challenge was left unanswered: none of its realms is the trunk's.
    case challengeRefused(trunk: String, realm: String)
    /// Nothing of the leg can cause another event; its LegID is no longer valid. Retransmissions are still absorbed inside for a
    /// while.
    case legClosed(LegID)
    /// A request was refused before a call existed. INVITEs received = `inviteReceived` + `refused` with `invite`
    /// (retransmissions apart).
    case refused(RefusalReason, invite: RefusedInvite?, trunk: String)
  }
}

/// Why a dialog ended without a BYE of the peer.
public enum SessionLoss: Sendable, Equatable {
  /// No session refresh in time (RFC 4028 §10).
  case expired
  /// Our re-INVITE or UPDATE got 408, 481 or no answer (RFC 3261 §12.2.1.2).
  case refreshFailed(Int)
}

/// A request of a leg that had no response.
public struct UnansweredRequest: Sendable, Equatable {
  public var leg: LegID
  public var method: Method
  /// The INVITE that would open the dialog, at the last server that was tried; else a request inside it.
  public var opensDialog = false
  public var trunk: String
  public var callID: String
  /// The flow it was sent on.
  public var flow: Flow
  /// The address in the peer's Contact; nil if that has a host name.
  public var contact: SocketAddress?
  public var failure: LocalFailure

  public init(
    leg: LegID, method: Method, opensDialog: Bool = false, trunk: String, callID: String, flow: Flow, contact: SocketAddress?,
    failure: LocalFailure
  ) {
    (self.leg, self.method, self.opensDialog, self.trunk) = (leg, method, opensDialog, trunk)
    (self.callID, self.flow, self.contact, self.failure) = (callID, flow, contact, failure)
  }
}

/// The target of a REFER.
public struct Referral: Sendable {
  public var target: InboundInvite.Party
  /// The Refer-To URI as written, without its headers.
  public var uri: String
  /// The dialog that the new call replaces: an attended transfer.
  public var replaces: Replaces?
  /// Referred-By as received (RFC 3892); nil if absent.
  public var referredBy: String?
  /// The URI contains more than a number: it has no user, or parameters `x-…` that only its author understands. No other party
  /// can write it.
  public var isOpaque = false

  public init(target: InboundInvite.Party, uri: String, replaces: Replaces? = nil, referredBy: String? = nil) {
    (self.target, self.uri, self.replaces, self.referredBy) = (target, uri, replaces, referredBy)
  }
}

/// Why a request outside any leg was refused; the raw value is the metric label.
public enum RefusalReason: String, Sendable, CaseIterable {
  case unauthorized, malformed, version, uriScheme, method, extensionRequired, sessionInterval, replaces, loop, merged,
    tooManyHops, notAcceptable, mediaType, noDialog,
    draining
  /// An edge has named no trunk, an unknown one, or two.
  case trunkMissing, trunkUnknown, trunkTwice
  /// It waited on its way from an edge, which has since sent it to another node (`EdgeRhythm`).
  case stale
  /// Our tables of transactions and legs are full.
  case overload
  /// `Input.overloaded`: the media threads are at their load limit; the control thread runs late; memory or media ports are
  /// short; the limit of calls is reached.
  case cpu, delay, memory, ports, calls

  /// Faults of an edge.
  public var isEdgeFault: Bool { [.trunkMissing, .trunkUnknown, .trunkTwice].contains(self) }
  /// 503 with Retry-After, without state.
  public var isOverload: Bool { [.overload, .cpu, .delay, .memory, .ports, .calls].contains(self) }
}

/// An INVITE that was refused without a leg.
public struct RefusedInvite: Sendable, Equatable {
  public var callID: String
  /// User part of From; nil if it is withheld or unreadable, and under overload, when it is not read.
  public var number: String?
  /// A challenge to an INVITE without credentials: normal for a call whose caller logs in.
  public var isFirstChallenge: Bool
}

extension UserAgent.Event {
  /// The leg of the event; nil for an event without one.
  public var leg: LegID? {
    switch self {
    case .inviteReceived(let leg, _), .cancelled(let leg, _), .acknowledged(let leg, _), .ackTimedOut(let leg),
      .progress(let leg, _, _), .answered(let leg, _), .failed(let leg, _, _, _), .reinviteReceived(let leg, _),
      .byeReceived(let leg, _), .pingAnswered(let leg, _), .legClosed(let leg), .provisionallyAnswered(let leg, _),
      .provisionalTimedOut(let leg), .offerWanted(let leg), .addressMoved(let leg), .addressLost(let leg),
      .offerAnswered(let leg, _),
      .offerRefused(let leg, _),
      .sessionLost(let leg, _), .digit(let leg, _, _), .digitSent(let leg, _), .referReceived(let leg, _),
      .referAnswered(let leg, _), .referProgress(let leg, _, _), .targetFailed(let leg, _, _, _):
      leg
    case .refused, .requestAnswered, .challengeRefused: nil
    }
  }
}
