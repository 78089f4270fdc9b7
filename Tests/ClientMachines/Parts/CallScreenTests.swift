import Testing
import TrunklineAppProtocol
import TrunklineBytes

@testable import TrunklineClientMachines

@Suite struct CallScreenTests {
  private let first = SystemActionID(1)
  private let second = SystemActionID(2)
  private func shown() -> CallScreen {
    var screen = CallScreen(.reporting)
    holds(screen.confirmed(at: seconds(1)) == nil && screen.state == .shown)
    return screen
  }

  @Test func `a call is reported once, and shown when the system confirms that`() {
    var screen = CallScreen(.unreported)
    holds(!screen.isReported && screen.confirmed(at: seconds(1)) == nil && screen.state == .unreported, "none was reported")
    holds(screen.report() && !screen.report() && screen.isReported && screen.state == .reporting)
    holds(screen.confirmed(at: seconds(2)) == nil && screen.state == .shown && screen.reportedAt == seconds(2))
    holds(screen.confirmed(at: seconds(3)) == nil && screen.reportedAt == seconds(2), "repeated")
    screen.refused()
    #expect(screen.state == .shown)
  }

  @Test func `the end is reported once, by a call that is shown`() {
    var screen = shown()
    holds(screen.end(.remoteEnded) && screen.state == .gone && !screen.end(.failed))
    for state in [CallScreen.State.unreported, .refused, .gone] {
      var other = CallScreen(state)
      holds(!other.end(.failed) && other.state == state)
    }
  }

  @Test func `a call that ends before its report is answered is ended with its own reason after the answer, once`() {
    var screen = CallScreen(.reporting)
    holds(!screen.end(.answeredElsewhere) && screen.state == .reporting)
    screen.forget()
    holds(screen.confirmed(at: seconds(1)) == .answeredElsewhere && screen.state == .gone)
    holds(screen.confirmed(at: seconds(1)) == nil)
    var refused = CallScreen(.reporting)
    _ = refused.end(.failed)
    refused.refused()
    holds(refused.confirmed(at: seconds(1)) == nil && refused.state == .refused)
  }

  @Test func `a call that the user ended, or that is forgotten, is not reported as ended`() {
    var (removed, forgotten) = (shown(), shown())
    removed.remove()
    forgotten.forget()
    holds(!removed.end(.remoteEnded) && !forgotten.end(.remoteEnded) && forgotten.state == .gone)
  }

  @Test func `an action is completed once, and the newest one counts`() {
    var screen = shown()
    holds(screen.complete() == nil)
    screen.begin(first)
    screen.begin(second)
    holds(screen.complete() == second && screen.complete() == nil)
    screen.begin(first)
    screen.dropped()
    holds(screen.complete() == nil)
  }

  @Test func `an action that the system gave up removes the call without completion; another action does not`() {
    var screen = shown()
    holds(!screen.timedOut(first))
    screen.begin(first)
    holds(!screen.timedOut(second) && screen.state == .shown)
    holds(screen.timedOut(first) && screen.state == .gone && screen.complete() == nil && !screen.timedOut(first))
  }

  @Test func `an outgoing call is started once, and connects once`() {
    var screen = CallScreen(.reporting)
    holds(screen.dialled(first) && screen.state == .shown && !screen.dialled(second) && screen.complete() == first)
    holds(screen.connects() && !screen.connects())
  }
}
