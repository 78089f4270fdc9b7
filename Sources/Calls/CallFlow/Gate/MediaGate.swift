import TrunklineAppProtocol
import TrunklineBytes

/// Proof that the device which has the call also has media. Only the gate makes one; a trunk is answered or called for a device
/// only with one.
struct GateProof {
  let winner: Int
  fileprivate init(winner: Int) { self.winner = winner }
}

/// The media gate of a call: how long it waits for the winner's media, and for the first words' listener after it.
///
/// | state | input | → |
/// |---|---|---|
/// | closed | `tapped`, `wait` | waits until the deadline |
/// | waits | `handshakeFailed` | waits 3 s at most for a restart |
/// | waits | `restarted` | waits until the deadline |
/// | waits | `opened` | open |
/// | any | `keepFirstWords`, `playing` | same: waits for `media.active`; does not |
/// | any | `close`: diverted, or over | closed: waits for nothing |
struct MediaGate {
  private var deadline: Instant?
  private var restart: Instant?
  private var mediaActive: Instant?

  /// Nil: this device has no media.
  static func proof(_ leg: DeviceLeg, at index: Int) -> GateProof? { leg.hasMedia ? GateProof(winner: index) : nil }

  /// The deadline counts from the tap and never exceeds the timeout of the device's own action. Returns when the user tapped.
  mutating func tapped(_ answer: CallAnswer, isWarm: Bool, _ step: Step) -> Instant {
    let settings = step.configuration.timers
    let age = min(max(answer.ageMs ?? 0, Limits.answerAgeMilliseconds.lowerBound), Limits.answerAgeMilliseconds.upperBound)
    let tap = step.now - .milliseconds(age)
    var due = tap + (isWarm ? settings.mediaGateWarm : settings.mediaGateCold)
    if let timeout = answer.timeoutMs, Limits.answerTimeoutMilliseconds.contains(timeout) {
      due = min(due, step.now + .milliseconds(timeout) - settings.answerMargin)
    }
    deadline = max(due, step.now)
    return tap
  }

  mutating func wait(until deadline: Instant) { self.deadline = deadline }
  mutating func opened() { (deadline, restart) = (nil, nil) }

  /// After a failed handshake the device has this long to send `media.restart` instead of `media.fail`.
  mutating func handshakeFailed(at now: Instant) { restart = now + Self.restartTimeout }
  mutating func restarted() { restart = nil }

  /// The first words are kept until the device plays, or `media.active` is treated as sent.
  mutating func keepFirstWords(until deadline: Instant) { mediaActive = deadline }
  mutating func playing() { mediaActive = nil }

  mutating func close() { self = MediaGate() }

  mutating func stop(_ timer: CallTimer) {
    switch timer {
    case .gate: deadline = nil
    case .restart: restart = nil
    default: mediaActive = nil
    }
  }
  var next: DueTimer? {
    .earliest(DueTimer(.gate, deadline), DueTimer(.restart, restart), DueTimer(.mediaActive, mediaActive))
  }

  private static let restartTimeout = Duration.seconds(3)
}
