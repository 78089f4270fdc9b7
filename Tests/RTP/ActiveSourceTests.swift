import Testing
import TrunklineBytes
import TrunklineRTP

@Suite struct ActiveSourceTests {
  private func at(_ milliseconds: Int) -> Instant { Instant(nanoseconds: 1_000_000_000 + Int64(milliseconds) * 1_000_000) }
  private let first = SSRC(raw: 1)
  private let second = SSRC(raw: 2)

  private func running(until end: Int, _ step: Int = 20) -> ActiveSource {
    var active = ActiveSource()
    for time in stride(from: 0, through: end, by: step) { _ = active.admit(first, at: at(time)) }
    return active
  }

  @Test(arguments: [10, 20, 30, 60], [0, 15, 40])
  func `of two sources at once one is heard from beginning to end`(_ step: Int, _ jitter: Int) {
    var active = ActiveSource()
    var random = SplitMix64(seed: 5)
    var arrivals: [(at: Int, source: SSRC)] = []
    for time in stride(from: 0, to: 20_000, by: step) {
      func wander() -> Int { jitter == 0 ? 0 : Int(random.next() % UInt64(jitter)) }
      arrivals += [(time + wander(), first), (time + step / 2 + wander(), second)]
    }
    arrivals.sort { $0.at < $1.at }
    var begun = 0
    for arrival in arrivals where active.admit(arrival.source, at: at(arrival.at)) == .began { begun += 1 }
    #expect(begun <= (jitter > step ? 2 : 1))
  }

  @Test func `a source that has been silent for 100 ms is left at once`() {
    var active = running(until: 1_000)
    let verdict = active.admit(second, at: at(1_100))
    #expect(verdict == .began && active.current == second)
  }

  @Test func `a source that another takes over from without a pause is left with its third packet`() {
    var active = running(until: 1_000)
    let verdicts = [1_020, 1_040, 1_060, 1_080].map { active.admit(second, at: at($0)) }
    #expect(verdicts == [.inactive, .inactive, .began, .active])
  }

  @Test func `packets of the present source end the other's run`() {
    var active = running(until: 1_000)
    var verdicts: [ActiveSource.Verdict] = []
    for time in stride(from: 1_010, to: 3_000, by: 20) {
      verdicts.append(active.admit(second, at: at(time)))
      verdicts.append(active.admit(first, at: at(time + 10)))
    }
    #expect(Set(verdicts.enumerated().filter { $0.offset % 2 == 0 }.map(\.element)) == [.inactive])
    #expect(active.current == first)
  }

  @Test func `signalling releases the present source for a second`() {
    var active = running(until: 1_000)
    active.release(at: at(1_000))
    let verdict = active.admit(second, at: at(1_010))
    #expect(verdict == .began)
    var other = running(until: 1_000)
    other.release(at: at(1_000))
    for time in stride(from: 1_020, through: 3_000, by: 20) { _ = other.admit(first, at: at(time)) }
    let late = other.admit(second, at: at(3_010))
    #expect(late == .inactive)
  }
}
