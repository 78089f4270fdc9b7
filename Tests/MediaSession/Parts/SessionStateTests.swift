import Testing
import TrunklineBytes

@testable import TrunklineMediaSession

@Suite struct SessionStateTests {
  private func seconds(_ count: Int64) -> Instant { .zero + .seconds(count) }

  @Test func `before any command both directions are closed`() {
    var state = SessionState()
    #expect(!state.acceptsApp && !state.reachesApp && !state.isConnected && state.mayLock && !state.isClosed)
    let assumed = state.playoutIsAssumed(at: seconds(1_000_000))
    #expect(!assumed)
  }

  @Test func `a lock accepts the app alone, an early opening reaches it alone`() {
    var (locked, early) = (SessionState(), SessionState())
    locked.lock()
    locked.lock()
    early.openEarly()
    #expect(locked.acceptsApp && !locked.reachesApp && !locked.mayLock)
    #expect(!early.acceptsApp && early.reachesApp && early.mayLock)
  }

  @Test func `the first connect counts; a lock or an early opening after it has no effect`() {
    var state = SessionState()
    let connects = [state.connect(at: seconds(3)), state.connect(at: seconds(9))]
    state.lock()
    state.openEarly()
    #expect(connects == [true, false] && state.connectedAt == seconds(3))
    #expect(!state.mayLock && !state.isLocked && !state.isEarly && state.acceptsApp && state.reachesApp)
  }

  @Test func `without the winner nothing is locked or early, and another may be; a connected call stays connected`() {
    var state = SessionState()
    state.winnerRemoved()
    state.lock()
    state.openEarly()
    state.winnerRemoved()
    #expect(!state.acceptsApp && !state.reachesApp && state.mayLock)
    state.connect(at: seconds(1))
    state.winnerRemoved()
    #expect(state.isConnected)
  }

  @Test func `a repeated hold is no change; mute and hold are independent`() {
    var state = SessionState()
    let changes = [state.hold(false), state.hold(true), state.hold(true)]
    state.mute(true)
    state.mute(true)
    #expect(changes == [false, true, false] && state.isHeld && state.isMuted)
    let ends = [state.hold(false), state.hold(false)]
    #expect(ends == [true, false] && state.isMuted && !state.isHeld)
  }

  @Test func `play-out is assumed once, after its deadline`() {
    var state = SessionState()
    let waits = state.awaitPlayout(at: seconds(5))
    let deadline = seconds(5) + Limits.playoutAssumed
    let assumed = [seconds(6), deadline, deadline, seconds(1_000)].map { state.playoutIsAssumed(at: $0) }
    #expect(waits && assumed == [false, true, false, false])
  }

  @Test func `a device that plays is not waited for, whether it reports so before the wait or in it`() {
    var (before, within) = (SessionState(), SessionState())
    before.playoutActive()
    let waits = [before.awaitPlayout(at: .zero), within.awaitPlayout(at: .zero)]
    within.playoutActive()
    within.playoutActive()
    let assumed = [before.playoutIsAssumed(at: seconds(60)), within.playoutIsAssumed(at: seconds(60))]
    #expect(waits == [false, true] && assumed == [false, false])
  }

  @Test func `a closed session stays closed`() {
    var state = SessionState()
    state.close()
    state.close()
    state.connect(at: .zero)
    state.winnerRemoved()
    #expect(state.isClosed)
  }
}
