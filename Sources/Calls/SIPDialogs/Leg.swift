import TrunklineBytes
import TrunklineSIP

/// One INVITE usage.
///
/// Inbound: ringing → answered (2xx without ACK) → confirmed → ending (our BYE is out).
/// Outbound: calling → confirmed → ending.
struct Leg {
  enum Phase { case ringing, calling, answered, confirmed, ending }

  /// A 2xx of ours that waits for its ACK.
  struct Answer {
    var bytes: [UInt8]
    var flow: Flow
    var interval = Interval.t1
    var sequence: UInt32
    /// Our SDP was the offer, the ACK holds the answer.
    var wantsAnswer: Bool
    var isReinvite: Bool
  }

  enum Cancel: Equatable {
    case none
    case waiting(ReasonValue?)
    case sent
  }

  let id: LegID
  let trunk: String
  var phase: Phase
  /// The flow on which the INVITE was received or sent.
  var flow: Flow
  /// The first flow, if the peer has changed to another connection since.
  var home: Flow?
  /// It uses another address of ours than it began at, and follows the route to the peer from then on.
  var hasMoved = false
  var dialog: Dialog
  /// The server or client transaction of the INVITE.
  var inviteTransaction: UInt64?
  /// CSeq of the INVITE.
  var inviteSequence: UInt32
  var answer: Answer?
  /// The INVITE had no offer.
  var isLateOffer = false
  /// A BYE that waits for the ACK of our 2xx.
  struct PendingBye { var reason: ReasonValue? }
  var pendingBye: PendingBye?
  var lastProvisional: Provisional?

  // Reliable provisional responses of ours.
  /// Settled by the INVITE and the trunk's rules.
  var reliability = TrunkRules.Reliability.off
  /// RSeq of the last one; 0 before the first.
  var lastReliable: UInt32 = 0
  var reliable: ReliableResponse?
  var waitingProvisionals: [Provisional] = []
  /// The peer has answered our offer in a provisional response: the 200 contains no description.
  var isProvisionallyAnswered = false
  /// A reliable provisional response with a description of ours was sent and acknowledged: the peer may offer again.
  var isExchangeComplete = false
  /// The 200 waits for a PRACK (RFC 3262 §3).
  struct PendingAnswer { var sdp: String? }
  var pendingAnswer: PendingAnswer?

  // Offers inside the dialog.
  /// An offer of the peer that waits for `answerReinvite`.
  var peerOffer: PeerOffer?
  var ourOffer: OurOffer?
  var wantsOffer = false
  var wantsRefresh = false
  var isWaitingOutGlare = false
  var offerTries = 0

  // The session timer.
  /// The agreement that the 2xx to the peer's INVITE will state.
  var agreement = SessionAgreement()
  var session: SessionTimer?
  /// The Min-SE of our requests.
  var minimumSession = Limits.sessionSeconds
  /// The peer's Allow contains UPDATE.
  var peerAllowsUpdate = false

  /// The subscription of a REFER that we received, and of one that we sent (RFC 3515).
  var referIn: ReferIn?
  var referOut: ReferOut?

  // Outbound only.
  var cancel = Cancel.none
  var invite: OutboundInvite?
  var digest: DigestClient?
  /// The server that is tried now, and the servers that are left.
  var target: TrunkTarget?
  var further: ArraySlice<TrunkTarget> = []
  /// This try uses `target.large`; `isSmallOnly`: `target.large` was refused.
  var isLarge = false
  var isSmallOnly = false
  var credentials: Credentials?
  /// By To tag.
  var early: [String: EarlyDialog] = [:]
  var redirects = 0
  /// The 2xx to an INVITE without offer: its ACK waits for our answer.
  var awaitsAcknowledgement = false
}
