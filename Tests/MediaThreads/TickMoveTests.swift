import Testing
import TrunklineBytes

@testable import MediaThreads

@Suite struct TickMoveTests {
  private static let toApp = SessionTick(session: 4, direction: .trunkToApp)
  private static let toTrunk = SessionTick(session: 4, direction: .appToTrunk)

  /// The times in milliseconds of the next ticks of a lone session's direction; after the first it is moved by `step`.
  private func ticks(movedBy step: Int, count: Int) -> [Int64] {
    var wheel = TickWheel()
    var slot = wheel.add(4, at: .zero).toApp
    var times: [Int64] = []
    while times.count < count, let due = wheel.nextDue {
      guard wheel.popDue().contains(Self.toApp) else { continue }
      times.append(due.nanoseconds / 1_000_000)
      if times.count == 1 { slot = wheel.move(Self.toApp, from: slot, toPhase: (wheel.phase(of: slot) + step + 20) % 20) }
    }
    return times
  }

  @Test func `one direction moves, the other stays`() {
    var wheel = TickWheel()
    var slots = wheel.add(4, at: .zero)
    #expect(wheel.popDue() == [Self.toApp, Self.toTrunk])
    slots.toApp = wheel.move(Self.toApp, from: slots.toApp, toPhase: 7)
    // Where the moved one waits nothing ticks yet.
    #expect(wheel.popDue().isEmpty)
    #expect(wheel.nextDue == .zero + .milliseconds(20) && wheel.popDue() == [Self.toTrunk])
    #expect(wheel.nextDue == .zero + .milliseconds(27) && wheel.popDue() == [Self.toApp])
    wheel.remove(4, from: slots)
    #expect(wheel.nextDue == nil)
  }

  @Test func `a session ticks every 20 ms`() { #expect(ticks(movedBy: 0, count: 4) == [0, 20, 40, 60]) }

  @Test func `moved a millisecond later, the next tick comes after 21 ms, not after one`() {
    #expect(ticks(movedBy: 1, count: 4) == [0, 21, 41, 61])
  }

  @Test func `moved a millisecond earlier, the next tick comes after 19 ms`() {
    #expect(ticks(movedBy: -1, count: 4) == [0, 19, 39, 59])
  }

  @Test func `one that waits for its new slot can be removed`() {
    var wheel = TickWheel()
    var slots = wheel.add(4, at: .zero)
    _ = wheel.popDue()
    slots.toTrunk = wheel.move(Self.toTrunk, from: slots.toTrunk, toPhase: 3)
    wheel.remove(4, from: slots)
    #expect(wheel.nextDue == nil)
    #expect(wheel.popDue().isEmpty)
  }

  @Test func `skipped time lets moved ones in`() {
    var wheel = TickWheel()
    let slots = wheel.add(4, at: .zero)
    _ = wheel.popDue()
    _ = wheel.move(Self.toApp, from: slots.toApp, toPhase: 3)
    _ = wheel.move(Self.toTrunk, from: slots.toTrunk, toPhase: 3)
    #expect(wheel.skip(to: .zero + .milliseconds(30)) == 2)
    #expect(wheel.nextDue == .zero + .milliseconds(43))
  }
}
