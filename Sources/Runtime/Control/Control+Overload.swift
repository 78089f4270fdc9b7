import Logging
import TrunklineBytes
import TrunklineSIPDialogs

/// Overload: decides which requests are refused before any work is done for them.
extension Control {
  /// Before each SIP message, so that refusals start and end with their cause.
  func checkOverload() {
    let verdict = detector.verdict(outputs.media.shortage, isFull: metrics.liveCalls >= most, backlog: outputs.sip.backlog)
    guard verdict != overload else { return }
    overload = verdict
    run(.sip(.overloaded(verdict)))
  }

  /// Ten times a second: signals that take time to measure, and reports to operators and load balancers.
  func checkPressure() {
    detector.add(delay: loop.now - pressureDue, memory: outputs.state.memory())
    checkOverload()
    if let overload {
      report(overload, at: loop.now)
    } else if let reported, loop.now >= reported.until {
      report(nil, at: loop.now)
    }
    pressureDue = loop.now + Limits.pressureCheck
    if let pressure { loop.setTimer(pressure, at: pressureDue) }
  }

  private func report(_ reason: RefusalReason?, at now: Instant) {
    let before = reported?.reason
    reported = reason.map { ($0, now + Limits.overloadHold) }
    guard reason != before else { return }
    outputs.state.overloaded(reason)
    if let reason {
      logger.warning("overloaded: new calls get 503", metadata: ["reason": "\(reason.rawValue)"])
    } else {
      logger.notice("no longer overloaded: new calls are accepted")
    }
  }
}
