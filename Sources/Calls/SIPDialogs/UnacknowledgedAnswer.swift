import TrunklineBytes
import TrunklineSIP

/// A 2xx of ours to an INVITE or re-INVITE until its ACK: sent again by the leg, not by the transaction, also on TCP (RFC 3261
/// §13.3.1.4). A BYE that is requested meanwhile waits for the ACK (§15).
///
/// | state | T1, doubled up to T2 | ACK with its CSeq | 64·T1 | `deferBye` | connection lost |
/// |---|---|---|---|---|---|
/// | none | – | not recognised | – | remembered | – |
/// | waiting | sent again | none; the BYE goes | none; BYE | remembered | the next on the leg's new flow |
struct UnacknowledgedAnswer {
  struct Answer {
    var bytes: [UInt8]
    var flow: Flow
    var sequence: UInt32
    /// Our SDP was the offer, the ACK holds the answer.
    var wantsAnswer: Bool
    var isReinvite: Bool
  }
  /// A BYE that waits for the ACK.
  struct DeferredBye { var reason: ReasonValue? }

  private var answer: Answer?
  private var interval = Interval.t1
  private(set) var deferredBye: DeferredBye?

  var isWaiting: Bool { answer != nil }

  /// The answer that an ACK belongs to.
  func answer(_ sequence: UInt32) -> Answer? { answer?.sequence == sequence ? answer : nil }

  mutating func start(_ answer: Answer, of leg: LegID, _ step: inout Step) {
    self.answer = answer
    interval = Interval.t1
    step.timers.schedule(.leg(leg, .answer), at: step.now + interval)
    step.timers.schedule(.leg(leg, .acknowledgement), at: step.now + Interval.transaction)
  }

  mutating func fired(of leg: LegID, _ step: inout Step) {
    guard let answer else { return }
    step.sendAgain(answer.bytes, answer.flow)
    interval = min(interval * 2, Interval.t2)
    step.timers.schedule(.leg(leg, .answer), at: step.now + interval)
  }

  mutating func move(to flow: Flow) { answer?.flow = flow }

  /// The ACK was received, or is no longer waited for.
  mutating func stop(of leg: LegID, _ step: inout Step) {
    answer = nil
    step.timers.cancel(.leg(leg, .answer))
    step.timers.cancel(.leg(leg, .acknowledgement))
  }

  mutating func deferBye(_ reason: ReasonValue?) { deferredBye = DeferredBye(reason: reason) }

  /// The BYE was sent.
  mutating func end(of leg: LegID, _ step: inout Step) {
    deferredBye = nil
    stop(of: leg, &step)
  }
}
