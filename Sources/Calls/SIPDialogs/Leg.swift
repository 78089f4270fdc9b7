import Bytes
import SIP

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
  /// How the INVITE came or went.
  var flow: Flow
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
  var lastProvisional: (code: Int, reason: String?, sdp: String?)?

  /// A re-INVITE that waits for `answerReinvite`.
  var reinvite: Reinvite?
  struct Reinvite {
    var transaction: UInt64
    var sequence: UInt32
    var isLateOffer: Bool
    var target: String?
  }

  // Outbound only.
  var cancel = Cancel.none
  var invite: OutboundInvite?
  var digest: DigestClient?
  /// The server that is tried now, and those that are left.
  var target: TrunkTarget?
  var further: ArraySlice<TrunkTarget> = []
  /// This try goes by `target.large`; `isSmallOnly`: that one was refused.
  var isLarge = false
  var isSmallOnly = false
}
