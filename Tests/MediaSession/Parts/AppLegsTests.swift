import Testing

@testable import TrunklineMediaSession

/// The table of legs alone. Noncopyable parts are evaluated into values before `#expect`.
@Suite struct AppLegsTests {
  private func leg(_ number: UInt32) -> AppLeg {
    let local = AppLegLocal(ufrag: "u\(number)", password: "p", ssrc: number)
    return AppLeg(AppLegID(raw: number), local, sequence: 0, timestamp: 0)
  }

  @Test func `an empty table has no leg and no winner; removing and choosing have no effect`() {
    var legs = AppLegs()
    let chosen = [-1, 0, 15, 16, .max].map { legs.choose($0) }
    let removed = [-1, 0, 15, 16, .min].map { legs.remove($0) }
    let state = (legs.has(0), legs.hasWinner, legs.winner, legs.index(of: AppLegID(raw: 1)))
    #expect(!chosen.contains(true) && !removed.contains(true))
    #expect(!state.0 && !state.1 && state.2 == -1 && state.3 == nil)
  }

  @Test func `legs keep their slots while the memory grows, and the seventeenth is refused`() {
    var legs = AppLegs()
    for number in 1...17 { legs.insert(leg(UInt32(number))) }
    let slots = (1...17).map { legs.index(of: AppLegID(raw: UInt32($0))) }
    #expect(slots == (0..<16).map { $0 } + [nil])
    let ssrcs = (0..<16).map { legs.slots[$0].stream.ssrc }
    #expect(ssrcs == Array(1...16))
  }

  @Test func `a free slot is used again, the lowest first`() {
    var legs = AppLegs()
    for number in 1...4 { legs.insert(leg(UInt32(number))) }
    legs.remove(2)
    legs.remove(0)
    legs.insert(leg(9))
    let slots = [1, 2, 3, 4, 9].map { legs.index(of: AppLegID(raw: $0)) }
    #expect(slots == [nil, 1, nil, 3, 0])
  }

  @Test func `the winner is chosen once, replaced by another leg, and lost with its own slot alone`() {
    var legs = AppLegs()
    for number in 1...3 { legs.insert(leg(UInt32(number))) }
    var given = [legs.choose(1), legs.choose(1), legs.choose(2), legs.choose(7)]
    #expect(given == [true, false, true, false])
    given = [legs.remove(1), legs.hasWinner, legs.remove(2), legs.hasWinner, legs.remove(2)]
    #expect(given == [false, true, true, false, false])
    legs.insert(leg(8))
    given = [legs.hasWinner, legs.choose(1), legs.hasWinner]
    #expect(given == [false, true, true])
  }
}
