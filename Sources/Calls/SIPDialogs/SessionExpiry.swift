import TrunklineBytes
import TrunklineSIP

/// The session timer that both sides agreed on (RFC 4028).
struct SessionTimer: Hashable {
  var seconds: Int
  /// Whether we send the refreshes.
  var isRefresher: Bool
}

/// The result of a request's Session-Expires: the timer, and the fields of the 2xx.
struct SessionAgreement {
  var timer: SessionTimer?
  var fields: [(HeaderName, String)] = []
}

/// When a session is refreshed and when it expires (RFC 4028).
///
/// | input | deadline of the refresh | deadline of the end |
/// |---|---|---|
/// | `start`, we refresh | half of the interval | a third, at most 32 s, before its end |
/// | `start`, the peer refreshes | none | the same |
/// | `start` without a timer, or while the leg ends; `stop` | none | none |
/// | `refreshLater`, we refresh | after `Interval.refreshRetry` | as before |
/// | `refreshLater`, else | as before | as before |
/// | `raise` to more seconds | as before; the next request asks for them | as before |
/// | `raise` to no more, or above the limit | false | false |
struct SessionExpiry {
  /// What the 2xx to the peer's INVITE states.
  let agreement: SessionAgreement
  private(set) var timer: SessionTimer?
  /// The Min-SE of our requests.
  private(set) var minimum: Int
  /// The peer's Allow contains UPDATE, and it has not refused one.
  private(set) var peerAllowsUpdate = false

  init(minimum: Int = Limits.sessionSeconds, agreement: SessionAgreement = SessionAgreement()) {
    (self.minimum, self.agreement) = (minimum, agreement)
  }

  var isRefresher: Bool { timer?.isRefresher == true }

  /// Each message of the peer with Allow states what it accepts (RFC 3261 §20.5).
  mutating func received(_ message: Message) {
    if message.field(.allow) != nil { peerAllowsUpdate = message.lists("UPDATE", in: .allow) }
  }

  mutating func updateRefused() { peerAllowsUpdate = false }

  mutating func start(_ timer: SessionTimer?, isEnding: Bool, of leg: LegID, _ step: inout Step) {
    self.timer = timer
    guard let timer, !isEnding else { return stop(of: leg, &step) }
    if timer.isRefresher {
      step.timers.schedule(.leg(leg, .refresh), at: step.now + .seconds(timer.seconds / 2))
    } else {
      step.timers.cancel(.leg(leg, .refresh))
    }
    step.timers.schedule(.leg(leg, .sessionEnd), at: step.now + .seconds(timer.seconds - min(32, timer.seconds / 3)))
  }

  /// A refresh could not be sent, or failed.
  func refreshLater(of leg: LegID, _ step: inout Step) {
    if isRefresher { step.timers.schedule(.leg(leg, .refresh), at: step.now + Interval.refreshRetry) }
  }

  /// A 422: the interval grows to the peer's minimum (§7.3). False if that is not larger.
  mutating func raise(to minimum: Int) -> Bool {
    guard minimum > self.minimum, minimum <= Limits.sessionSecondsMaximum else { return false }
    self.minimum = minimum
    if let timer { self.timer?.seconds = max(timer.seconds, minimum) }
    return true
  }

  func stop(of leg: LegID, _ step: inout Step) {
    step.timers.cancel(.leg(leg, .refresh))
    step.timers.cancel(.leg(leg, .sessionEnd))
  }
}
