import Bytes
import Logging
import SIPDialogs

/// Overload: who is refused before anything is done for it.
extension Control {
  /// Before each SIP message: a refusal must not outlast its cause, nor come after it.
  func checkOverload() {
    let verdict = detector.verdict(outputs.mediaShortage(), isFull: metrics.liveCalls >= most, backlog: outputs.backlog())
    guard verdict != overload else { return }
    overload = verdict
    run(.sip(.overloaded(verdict)))
  }

  /// Ten times a second: what takes time to see, and what operators and load balancers are told.
  func checkPressure() {
    detector.add(delay: loop.now - pressureDue, memory: outputs.memory())
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
    outputs.overloaded(reason)
    if let reason {
      logger.warning("overloaded: new calls get 503", metadata: ["reason": "\(reason.rawValue)"])
    } else {
      logger.notice("no longer overloaded: new calls are accepted")
    }
  }
}
