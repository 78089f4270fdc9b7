import TrunklineBytes
import TrunklineSIP

/// A provisional response of ours.
struct Provisional: Equatable {
  var code: Int
  var reason: String?
  var sdp: String?
}

/// A reliable provisional response of ours that waits for its PRACK (RFC 3262 §3).
struct ReliableResponse {
  var bytes: [UInt8]
  var flow: Flow
  var number: UInt32
  var hasSDP: Bool
  /// Its SDP was our offer: the PRACK holds the answer.
  var wantsAnswer: Bool
}

/// Our provisional responses to an INVITE (RFC 3261 §13.3.1.1, RFC 3262 §3).
///
/// | state | `begin` | `deferAnswer` | PRACK of the last RSeq | final response |
/// |---|---|---|---|---|
/// | none waits | sent, reliably as the rule says | false: the 200 goes now | 481 | over |
/// | one waits for its PRACK | queued, up to `Limits.waitingProvisionals` | true if it has SDP: the 200 waits | `resume`: the 200, or the next response | over; the PRACK is still recognised |
/// | the 200 waits | dropped | true: the last SDP counts | `resume`: the 200 | – |
/// | over | – | – | 200 once, then 481 | – |
///
/// A PRACK with another RSeq, and a repeated one, are not recognised. An unreliable response is sent again each
/// `Interval.provisional`, a reliable one from T1 on, doubled each time.
struct ProvisionalResponses {
  /// How a response is sent.
  struct Plan: Equatable {
    let isReliable: Bool
    let sdp: String?
  }
  /// What waited for a PRACK.
  enum Resumed: Equatable {
    case answer(sdp: String?)
    case provisional(Provisional)
  }
  private struct DeferredAnswer { var sdp: String? }

  /// Settled by the INVITE and the trunk's rules.
  private let rule: TrunkRules.Reliability
  /// RSeq of the last one; nil before the first.
  private var lastNumber: UInt32?
  private var unacknowledged: ReliableResponse?
  private var interval = Interval.t1
  private var isOver = false
  private var queued: [Provisional] = []
  private var deferredAnswer: DeferredAnswer?
  /// The unreliable response that is sent again.
  private(set) var repeated: Provisional?
  /// The peer has answered our offer in a PRACK: later responses and the 200 contain no description.
  private(set) var isAnswered = false
  /// A reliable response with a description of ours was sent and acknowledged: the peer may offer again.
  private(set) var isExchangeComplete = false

  init(_ rule: TrunkRules.Reliability = .off) { self.rule = rule }

  /// The 200 waits for a PRACK.
  var hasDeferredAnswer: Bool { deferredAnswer != nil }
  /// The RSeq of the next reliable response; nil: it is the first, and its number is random.
  var nextNumber: UInt32? { lastNumber.map { $0 &+ 1 } }

  /// One reliable response at a time waits for its PRACK.
  /// - Returns: nil: the response is queued or dropped.
  mutating func begin(_ response: Provisional) -> Plan? {
    guard deferredAnswer == nil else { return nil }
    guard unacknowledged == nil else {
      if queued.count < Limits.waitingProvisionals { queued.append(response) }
      return nil
    }
    let isReliable =
      switch rule {
      case .off: false
      case .supported: response.sdp != nil
      case .required: true
      }
    // The first reliable response to an INVITE without offer must contain ours; once it is answered there is no other.
    return Plan(isReliable: isReliable, sdp: isReliable && isAnswered ? nil : response.sdp)
  }

  mutating func sent(_ response: Provisional, of leg: LegID, _ step: inout Step) {
    repeated = response
    step.timers.schedule(.leg(leg, .provisional), at: step.now + Interval.provisional)
  }

  mutating func sent(reliably response: ReliableResponse, of leg: LegID, _ step: inout Step) {
    repeated = nil
    lastNumber = response.number
    unacknowledged = response
    interval = Interval.t1
    step.timers.cancel(.leg(leg, .provisional))
    step.timers.schedule(.leg(leg, .reliable), at: step.now + interval)
    step.timers.schedule(.leg(leg, .unacknowledged), at: step.now + Interval.transaction)
  }

  /// Sends the response again, with the interval doubled each time; the 64·T1 of the whole are the only bound.
  mutating func fired(of leg: LegID, _ step: inout Step) {
    guard let response = unacknowledged, !isOver else { return }
    step.sendAgain(response.bytes, response.flow)
    interval = interval * 2
    step.timers.schedule(.leg(leg, .reliable), at: step.now + interval)
  }

  /// True: a response with SDP waits for its PRACK, and the 200 with it (RFC 3262 §3).
  mutating func deferAnswer(_ sdp: String?) -> Bool {
    guard unacknowledged?.hasSDP == true, !isOver else { return false }
    deferredAnswer = DeferredAnswer(sdp: sdp)
    return true
  }

  /// The response that a PRACK acknowledges.
  func response(_ number: UInt32) -> ReliableResponse? { unacknowledged?.number == number ? unacknowledged : nil }

  /// The PRACK was received.
  mutating func acknowledged(of leg: LegID, _ step: inout Step) {
    guard let response = unacknowledged else { return }
    unacknowledged = nil
    if response.hasSDP { isExchangeComplete = true }
    if response.wantsAnswer { isAnswered = true }
    for timer in [LegTimer.reliable, .unacknowledged] { step.timers.cancel(.leg(leg, timer)) }
  }

  /// What waited for the PRACK: the 200, or the next provisional response.
  mutating func resume() -> Resumed? {
    guard unacknowledged == nil, !isOver else { return nil }
    if let answer = deferredAnswer {
      deferredAnswer = nil
      return .answer(sdp: answer.sdp)
    }
    return queued.isEmpty ? nil : .provisional(queued.removeFirst())
  }

  /// The 200 was sent: no more retransmissions, but a PRACK on its way is still recognised.
  mutating func finish(of leg: LegID, _ step: inout Step) {
    repeated = nil
    queued = []
    isOver = true
    for timer in [LegTimer.provisional, .reliable, .unacknowledged] { step.timers.cancel(.leg(leg, timer)) }
  }
}
