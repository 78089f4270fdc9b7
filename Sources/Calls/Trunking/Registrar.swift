import TrunklineBytes
import TrunklineSIPDialogs

/// One registration of ours at a trunk (RFC 3261 §10.2).
///
/// | phase | 200 | 423 | other, time-out | time | connection lost | own address changed |
/// |---|---|---|---|---|---|---|
/// | waiting | – | – | – | asking | asking | asking |
/// | asking | waiting until before its end | asking, Min-Expires | waiting, pause doubled | – | – | asking again |
struct Registrar: Equatable {
  let settings: TrunkSettings.Registration
  let callID: String
  /// CSeq of the last REGISTER.
  var sequence: UInt32
  /// When the next REGISTER goes out; nil while one is under way.
  private(set) var due: Instant?
  private(set) var isRegistered = false
  private var expires: Int
  private var pause = Limits.registrationPause.lowerBound
  private var wasBrief = false
  private var endsAt = Instant.zero
  /// The last finished REGISTER was refused, or lost.
  private var isFailing = false

  init(_ settings: TrunkSettings.Registration, callID: String, sequence: UInt32, at now: Instant) {
    (self.settings, self.callID, self.sequence, due) = (settings, callID, sequence, now)
    expires = settings.expires
  }

  /// Seconds that the next REGISTER requests.
  var wanted: Int { expires }

  /// When the last grant ends; nil if there was none.
  var expiry: Instant? { endsAt == .zero ? nil : endsAt }
  /// The last grant is valid, even if a refresh has failed since.
  func isBound(at now: Instant) -> Bool { now < endsAt }
  /// The last grant is valid, and no refresh has failed since.
  func isGranted(at now: Instant) -> Bool { isBound(at: now) && !isFailing }

  mutating func sent() { due = nil }
  /// No server can be reached now.
  mutating func postpone(until later: Instant) { due = later }
  /// Registers at once: the connection that the registrar knows was closed, or another server is to be tried.
  mutating func registerNow(at now: Instant) { if due != nil { due = now } }

  /// The REGISTER under way was sent from an address that was removed: its answer will not arrive. The next number is above all
  /// that it may use.
  mutating func abandon(at now: Instant) {
    sequence &+= 16
    due = now
  }

  /// Handles the outcome of a REGISTER and returns the news to report.
  mutating func answered(_ outcome: RequestOutcome, _ trunk: String, random: RandomSource, at now: Instant) -> TrunkNews? {
    sequence = outcome.sequence
    switch outcome.code {
    case 200..<300:
      let granted = min(
        max(outcome.expires ?? expires, Limits.registrationSeconds.lowerBound), Limits.registrationSeconds.upperBound)
      pause = Limits.registrationPause.lowerBound
      isRegistered = true
      isFailing = false
      wasBrief = false
      endsAt = now + .seconds(granted)
      // between 75 and 85 % of the time: trunks that register together do not refresh together
      due = now + .milliseconds(granted * 750 + Int(random.next() % 101) * granted)
      return .registered(trunk: trunk, seconds: granted)
    case 423 where !wasBrief:
      if let least = outcome.minimumExpires, Limits.registrationSeconds.contains(least), least > expires {
        expires = least
        wasBrief = true
        due = now
        return nil
      }
    default: break
    }
    if now >= endsAt { isRegistered = false }
    wasBrief = false
    isFailing = true
    var wait = pause
    // a password that is wrong now is wrong in five seconds too
    if outcome.code == 401 || outcome.code == 403 || outcome.code == 407 { wait = max(wait, .seconds(60)) }
    if let retry = outcome.retryAfter { wait = max(wait, min(.seconds(retry), Limits.longestRetryAfter)) }
    wait += .milliseconds(Int(random.next() % UInt64(max(1, wait.milliseconds / 4))))
    pause = min(pause * 2, Limits.registrationPause.upperBound)
    due = now + wait
    return .registrationFailed(trunk: trunk, code: outcome.code, retry: wait)
  }
}
