public import TrunklineSIP

extension UserAgent {
  /// An input of a `UserAgent`.
  public enum Input: Sendable {
    /// A datagram, or one message framed by `StreamFramer`, with the trunk its source belongs to. The transport drops messages
    /// from unknown sources unparsed.
    case received([UInt8], Flow, trunk: String)
    /// ICMP error, connection refused or lost, or a failed send; with the peer's part in it, if any. `wasOpen`: an established
    /// connection was lost: the last data on it may not have arrived, and a new connection may well succeed.
    case transportFailed(Flow, PeerFailure? = nil, wasOpen: Bool = false)
    /// `now` has reached `nextDeadline` (early or late calls are harmless).
    case timer
    case command(Command)
    /// While true, OPTIONS and new INVITEs get 503 with Retry-After; existing legs continue.
    case draining(Bool)
    /// While set, new INVITEs get a 503 that keeps no state; OPTIONS and all requests of calls are served.
    case overloaded(RefusalReason?)
    /// Legs of a dead process, with their trunks' credentials: the peer of each is notified that it has ended.
    case orphaned([(leg: OrphanedLeg, credentials: Credentials?)])
    /// How each trunk's calls behave, by trunk name. Trunks that are left out keep their rules, or the defaults.
    case rules([String: TrunkRules])
    /// Our own addresses, and those where peers reach us, from now on: the machine's addresses have changed. Dialogs keep what
    /// they have sent.
    case moved(OwnAddresses, AdvertisedAddresses)
    /// These dialogs continue from other addresses of ours, over these flows; `addressMoved` follows for each, and for an INVITE
    /// of ours without a final response `addressLost` and `failed`.
    case moveLegs([LegID: Flow])
    /// The clock that all nodes of a cluster use: milliseconds from `Instant` to 1970. Ignored without
    /// `Configuration.nonceSecret`.
    case sharedClock(offsetMilliseconds: Int64)
  }

  /// The peer's or the network's part in a failure. Our own faults do not count against the peer.
  public enum PeerFailure: Sendable, Equatable {
    /// Its system reports that no process listens there: a reset instead of a connection, or ICMP port unreachable.
    case refused
    /// It accepted the connection and closed it: a process is there that does not talk to us.
    case closed
    /// Host or network unreachable, as a router or our own system reports.
    case noRoute
    /// The TLS handshake failed.
    case noTLS
  }
}

extension UserAgent {
  /// A command of the call machine. A command for a leg that has ended, or that does not fit the leg's phase, has no effect: it
  /// crossed an event.
  public enum Command: Sendable {
    /// 101…199 on an inbound leg, such as 180 or 183; `sdp` as body.
    case respondProvisional(LegID, code: Int, reason: String?, sdp: String?)
    /// 200 to the INVITE, sent again until its ACK; `ackTimedOut` after 64·T1 without one.
    /// `sdp` is nil after `provisionallyAnswered`. Waits for the PRACK of a reliable provisional response with SDP.
    case answer(LegID, sdp: String?)
    /// A final response of 300…699 to the INVITE, with `Reason` and `Retry-After` (seconds) if given.
    case refuse(LegID, code: Int, reason: String?, cause: ReasonValue?, retryAfter: Int?)
    /// 302 to an INVITE (RFC 3261 §21.3.3): the same user at the `sip:` URI of another node, marked so that it is redirected only
    /// once.
    case redirect(LegID, to: String)
    /// A new outbound leg; the `LegID` is the caller's (`LegID.outbound`).
    indirect case invite(LegID, OutboundInvite)
    /// Gives an outbound INVITE up. CANCEL waits for the first provisional response (RFC 3261 §9.1); a 2xx that crosses it gets
    /// ACK and BYE. Ends in `failed` (487 as a rule) and `legClosed`.
    case cancel(LegID, ReasonValue?)
    /// Ends an answered leg. On an inbound leg whose 200 has no ACK yet the BYE waits for the ACK or its time-out (RFC 3261 §15).
    case bye(LegID, ReasonValue?)
    case answerReinvite(LegID, sdp: String)
    case refuseReinvite(LegID, code: Int)
    /// The session must change: `offerWanted` follows as soon as an offer may be sent.
    case modify(LegID)
    /// The offer that `offerWanted` requested, in a re-INVITE.
    case offer(LegID, sdp: String)
    /// Our answer to the offer in the 2xx of an INVITE without one, in its ACK.
    case acknowledge(LegID, sdp: String)
    /// A digit by INFO with `application/dtmf-relay`; gives `digitSent`.
    case sendDigit(LegID, Character, milliseconds: Int)
    /// A REFER (RFC 3515); `to` is a URI, `replaces` makes it an attended transfer. Gives `referAnswered`.
    case refer(LegID, to: String, replaces: Replaces?)
    /// The same toward the far end of another leg of the trunk, whose dialog the new call replaces.
    case referToLeg(LegID, other: LegID)
    /// 202, and a NOTIFY with 100.
    case acceptRefer(LegID)
    case refuseRefer(LegID, code: Int)
    /// The state of the referred call, in a NOTIFY; a final code ends the subscription.
    case notifyRefer(LegID, code: Int)
    /// An OPTIONS inside the dialog; gives `pingAnswered`.
    case ping(LegID)
    /// A request outside any dialog; gives one `requestAnswered`.
    indirect case request(RequestID, OutboundRequest)
  }
}

extension UserAgent.Command {
  /// The leg of the command; nil for a request outside any dialog.
  public var leg: LegID? {
    switch self {
    case .respondProvisional(let leg, _, _, _), .answer(let leg, _), .refuse(let leg, _, _, _, _), .redirect(let leg, _),
      .invite(let leg, _), .cancel(let leg, _), .bye(let leg, _), .answerReinvite(let leg, _), .refuseReinvite(let leg, _),
      .modify(let leg), .offer(let leg, _), .acknowledge(let leg, _), .sendDigit(let leg, _, _), .refer(let leg, _, _),
      .referToLeg(let leg, _), .acceptRefer(let leg), .refuseRefer(let leg, _), .notifyRefer(let leg, _), .ping(let leg):
      leg
    case .request: nil
    }
  }
}

/// An INVITE that we send.
public struct OutboundInvite: Sendable {
  public var trunk: TrunkPeer
  /// User part of Request-URI and To.
  public var to: String
  /// Request-URI and To as in a peer's Refer-To, checked; nil: they are made from `to`.
  public var uri: String?
  /// User part of From; with `isPrivate` From becomes `anonymous@anonymous.invalid` (RFC 3323) and the user appears in
  /// P-Asserted-Identity or P-Preferred-Identity only.
  public var from: String
  public var displayName: String?
  public var isPrivate: Bool
  /// User part of P-Asserted-Identity, or of P-Preferred-Identity where the trunk is not trusted (RFC 3325); nil leaves both out.
  public var assertedIdentity: String?
  /// Our offer; nil: the 2xx contains the peer's (`answered`), and `acknowledge` our answer.
  public var sdp: String?
  /// Call-ID, so that the caller's records can name it before the INVITE is sent; nil: one is made.
  public var callID: String?
  public var maxForwards: Int
  /// There is another trunk to try: the last server is given up, too, when it is silent for `Interval.silence`.
  public var failsOverOnSilence = false
  /// Further headers, name and value, written as they are (line breaks are removed).
  public var extraHeaders: [(name: String, value: String)]
  /// The parameters that the trunk's rules list are sent as header fields.
  public var parameters: [String: String] = [:]
  /// The caller's location, a PIDF-LO document beside the offer (RFC 6442); nil: the app sends none.
  public var location: String?

  public init(
    trunk: TrunkPeer, to: String, from: String, displayName: String? = nil, isPrivate: Bool = false,
    assertedIdentity: String? = nil, sdp: String?, callID: String? = nil, maxForwards: Int = 70,
    extraHeaders: [(name: String, value: String)] = []
  ) {
    (self.trunk, self.to, self.from, self.displayName, self.isPrivate) = (trunk, to, from, displayName, isPrivate)
    (self.assertedIdentity, self.sdp, self.callID) = (assertedIdentity, sdp, callID)
    (self.maxForwards, self.extraHeaders) = (maxForwards, extraHeaders)
  }
}
