public import SIP

/// What the user agent tells the call machine.
///
/// Order on an inbound leg: `inviteReceived`, then at most one of `cancelled` / (after `answer`) `acknowledged` or `ackTimedOut`,
/// any number of `reinviteReceived` and `pingAnswered`, at most one `byeReceived`, and as the last of all, always, `legClosed`.
/// On an outbound leg: any number of `progress`, one of `answered` / `failed`, … , `legClosed`.
public enum Event: Sendable {
  /// A new call; 100 is already sent.
  case inviteReceived(LegID, InboundInvite)
  /// CANCEL before a final response; 200 and 487 are already sent.
  case cancelled(LegID, ReasonValue?)
  /// The ACK of our 200 arrived; `sdp` is the answer when the INVITE had no offer, nil otherwise. Comes again for a re-INVITE
  /// only if that had no offer.
  case acknowledged(LegID, sdp: String?)
  /// No ACK within 64·T1 of our 200: the BYE that RFC 3261 §13.3.1.4 asks for is already sent.
  case ackTimedOut(LegID)
  /// 100…199 on an outbound leg.
  case progress(LegID, code: Int, sdp: String?)
  /// 2xx on an outbound leg; ACK is already sent. A second fork's 2xx gets ACK and BYE inside and is not reported.
  case answered(LegID, sdp: String?)
  /// Final non-2xx, time-out (408) or transport failure (503, `byTransport`) of an outbound INVITE.
  case failed(LegID, code: Int, cause: ReasonValue?, byTransport: Bool)
  /// A re-INVITE; reply with `answerReinvite` or `refuseReinvite`. `sdp` is nil if it holds no offer.
  case reinviteReceived(LegID, sdp: String?)
  /// The peer ended the leg; 200 is already sent.
  case byeReceived(LegID, ReasonValue?)
  /// `alive` unless 408, 481, a time-out or a transport failure answered the `ping`.
  case pingAnswered(LegID, alive: Bool)
  /// A server of an outbound leg has answered 503 (with its Retry-After), could not be reached or is silent, and the leg goes on
  /// with the next one.
  case targetFailed(LegID, Flow, code: Int, retryAfter: Int?)
  /// The outcome of `Command.request`.
  case requestAnswered(RequestID, RequestOutcome)
  /// Nothing of the leg is left that could cause an event; its LegID is dead. Retransmissions are still absorbed for a while
  /// inside.
  case legClosed(LegID)
  /// A request was refused before a call existed. INVITEs received = `inviteReceived` + `refused` with `isInvite`
  /// (retransmissions apart).
  case refused(RefusalReason, isInvite: Bool, trunk: String)
}

/// Why a request outside any leg was refused; the raw value is the metric label.
public enum RefusalReason: String, Sendable, CaseIterable {
  case malformed, version, uriScheme, method, extensionRequired, loop, merged, tooManyHops, notAcceptable, mediaType, noDialog,
    draining, overload
}

/// An INVITE that opens a call.
public struct InboundInvite: Sendable {
  /// A party named by a SIP or tel URI.
  public struct Party: Hashable, Sendable {
    /// The user part, unescaped, without parameters; separators are removed from telephone numbers (`+1-555` becomes `+1555`).
    public var number: String
    public var displayName: String?
    /// Empty for tel URIs.
    public var host: String
    public init(number: String, displayName: String? = nil, host: String = "") {
      (self.number, self.displayName, self.host) = (number, displayName, host)
    }
  }

  public var trunk: String
  public var source: Flow
  public var callID: String
  /// The From header. What to show is `assertedIdentity ?? from` unless `isPrivate`.
  public var from: Party
  /// The called number, from the Request-URI.
  public var to: Party
  /// First P-Asserted-Identity (RFC 3325); nil if absent.
  public var assertedIdentity: Party?
  /// Privacy `id`, `user` or `header` (RFC 3323), or an anonymous From.
  public var isPrivate: Bool
  /// The offer; nil for a late offer: then `answer` carries our offer and `acknowledged` the peer's answer.
  public var sdp: String?
  /// Number of Diversion (RFC 5806) values.
  public var diversions: Int
  /// As received (70 if absent); a leg made for this call sends one less.
  public var maxForwards: Int
  /// Alert-Info as received; nil if absent.
  public var alertInfo: String?

  public init(
    trunk: String, source: Flow, callID: String, from: Party, to: Party, assertedIdentity: Party? = nil, isPrivate: Bool = false,
    sdp: String?, diversions: Int = 0, maxForwards: Int = 70, alertInfo: String? = nil
  ) {
    (self.trunk, self.source, self.callID, self.from, self.to) = (trunk, source, callID, from, to)
    (self.assertedIdentity, self.isPrivate, self.sdp, self.diversions) = (assertedIdentity, isPrivate, sdp, diversions)
    (self.maxForwards, self.alertInfo) = (maxForwards, alertInfo)
  }
}
