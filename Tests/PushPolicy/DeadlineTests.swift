import HTTP
import Testing
import TrunklineBytes

@testable import PushPolicy

/// `Rig` holds after every timer that the next deadline is later; this takes the machine through its states in any order.
@Suite struct DeadlineTests {
  @Test(arguments: 1...40 as ClosedRange<UInt64>)
  func `a deadline is later than the timer that was handled, whatever came before`(
    seed: UInt64
  ) throws {
    var random = SplitMix64(seed: seed)
    func pick(_ count: Int) -> Int { Int(random.next() % UInt64(count)) }
    var rig = try Rig(apns: pick(4) > 0, fcm: pick(2) == 0)
    let android = PushTarget(.fcm, token: "registration")
    for _ in 0..<300 {
      switch pick(10) {
      case 0, 1, 2:
        // also windows that are over, and that leave no time for a retry
        let window = [Duration.seconds(-1), .zero, .seconds(1), .seconds(10), .seconds(45)][pick(5)]
        rig.wake("d\(pick(8))", call: UInt64(pick(6)), pick(2) == 0 ? Rig.iPhone : android, window: window)
      case 3, 4:
        guard let one = rig.sent.suffix(6).randomElement(using: &random) else { continue }
        let status = [200, 200, 400, 401, 403, 404, 410, 429, 500, 503][pick(10)]
        let token = #"{"access_token":"t","expires_in":\#([0, 60, 3_600][pick(3)])}"#
        rig.feed(
          .answered(
            one.attempt,
            HTTPClientResponse(status: status, retryAfter: [nil, 0, 1, 5, -1, .max][pick(6)], body: Array(token.utf8))))
      case 5: if let one = rig.sent.suffix(6).randomElement(using: &random) { rig.feed(.broke(one.attempt, reason: "reset")) }
      case 6: if pick(4) == 0 { rig.feed(.callOver(Rig.push(UInt64(pick(6))).call)) }
      case 7: rig.now = rig.now + .milliseconds(pick(3_000))
      default:
        if let due = rig.machine.nextDeadline { rig.now = max(rig.now, due) }
        rig.feed(.timer)
      }
    }
    // each push has an end, at its window's at the latest
    rig.now = rig.now + .seconds(45)
    rig.feed(.timer)
    #expect(rig.machine.pending == 0 && rig.machine.nextDeadline == nil)
    #expect(rig.reports.contains { $0.outcome == .failed })
  }

  @Test(arguments: 1...40 as ClosedRange<UInt64>) func `what a webhook is told next is due later than what it is told now`(
    seed: UInt64
  ) {
    var random = SplitMix64(seed: seed)
    func pick(_ count: Int) -> Int { Int(random.next() % UInt64(count)) }
    var sink = EventSink(.init(), random: .seeded(seed))
    var now = Instant(nanoseconds: 1_000_000_000)
    var (position, underWay): (UInt64, [UInt64]) = (0, [])
    for _ in 0..<500 {
      switch pick(4) {
      case 0 where sink.hasRoom:
        position += 1
        sink.append(.init(position: position, subject: "call \(pick(5))", at: 0))
      case 1, 2:
        guard let index = underWay.indices.randomElement(using: &random) else { continue }
        let outcome = [
          EventSink.Outcome.accepted, .failed(isServer: true, retryAfter: nil), .failed(isServer: false, retryAfter: nil),
          .failed(isServer: true, retryAfter: .seconds(pick(90))),
        ][pick(4)]
        sink.ended(underWay.remove(at: index), outcome, at: now, wallNow: Int64(pick(2)) * (Limits.eventAge.milliseconds + 1))
      default: now = sink.nextDue(after: now).map { max($0, now) } ?? now + .milliseconds(pick(5_000))
      }
      // a turn of its thread
      while let next = sink.next(at: now) { underWay.append(next) }
      #expect(sink.nextDue(after: now).map { $0 > now } ?? true)
    }
    #expect(position > 20)
  }
}
