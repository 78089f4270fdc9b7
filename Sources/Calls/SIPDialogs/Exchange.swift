import TrunklineBytes
import TrunklineSIP

/// The content of a request inside a dialog besides the dialog's headers; kept with its transaction, so that it can be sent
/// again with credentials.
struct RequestContent {
  var fields: [(HeaderName, String)] = []
  var body: String?
  var contentType = "application/sdp"
  /// Contact, Allow and Supported: of requests that refresh the target.
  var refreshesTarget = false
  /// The tag of the early dialog that it belongs to; nil: the leg's own dialog.
  var fork: String?
}

/// A dialog made by a provisional response to our INVITE (RFC 3261 §12.1.2); one for each To tag.
struct EarlyDialog {
  var dialog: Dialog
  /// RSeq of the last reliable response; the next must be one more (RFC 3262 §4).
  var lastResponse: UInt32?
  /// The last session description of the peer, for a 2xx that repeats none.
  var sdp: String?
}

/// A reliable provisional response of ours that waits for its PRACK (RFC 3262 §3).
struct ReliableResponse {
  var bytes: [UInt8]
  var flow: Flow
  var number: UInt32
  var interval = Interval.t1
  var hasSDP: Bool
  /// Its SDP was our offer: the PRACK holds the answer.
  var wantsAnswer: Bool
  /// The final response was sent: no more retransmissions, but a PRACK on its way is still recognised.
  var isOver = false
}

/// A provisional response of ours: the last one sent, or one that waits for the PRACK of an earlier one.
struct Provisional {
  var code: Int
  var reason: String?
  var sdp: String?
}

/// An offer of the peer that waits for `answerReinvite`: a re-INVITE, an UPDATE, or a PRACK with one.
struct PeerOffer {
  var transaction: UInt64
  var method: Method
  var sequence: UInt32
  var isLateOffer: Bool
  var target: String?
  var session: SessionAgreement?
}

/// An offer or refresh of ours inside the dialog that has no final response yet.
struct OurOffer {
  enum Kind { case reinvite, update }
  var kind: Kind
}

/// The session timer that both sides agreed on (RFC 4028).
struct SessionTimer: Hashable {
  var seconds: Int
  /// Whether we send the refreshes.
  var isRefresher: Bool
}

/// The result of a request's Session-Expires: the timer, and the fields of the 2xx.
struct SessionAgreement {
  var timer: SessionTimer?
  var fields: [(HeaderName, String)] = []
}
