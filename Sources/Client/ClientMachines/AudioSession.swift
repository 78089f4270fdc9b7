import TrunklineAppProtocol
import TrunklineBytes

/// The audio device as the phone requests it: configured for the first call, active when the system says so, started for the calls
/// that have microphone and loudspeaker, released with the last call.
///
/// | state | `listen` to a call | `listen` to none | `activated` | `deactivated` | `startsAt` is due |
/// |---|---|---|---|---|---|
/// | stopped, inactive | waiting, for `Limits.activationTime` | – | active | – | – |
/// | stopped, active | running: start | – | – | inactive | – |
/// | waiting | same | stopped | running: start | same | running, forced: start |
/// | running | same | stopped: stop | same | stopped: stop | – |
///
/// | event | effect |
/// |---|---|
/// | `configure` | configured: configure; nothing if another call has configured the active session (R20) |
/// | `changed` | restart if it runs; after a reset configure first |
/// | `runs` | the parts that run, for `parts(of:)` |
/// | `failed` to start or restart | stopped; the calls end, unless the start was forced: an activation may still start it |
/// | `release` | not configured, inactive: the next call waits for its own activation |
/// | `reset` | inactive |
struct AudioSession: Sendable {
  /// The call that microphone and loudspeaker belong to, and the others of its group.
  private(set) var listening: Identifier?
  private var mixing: [Identifier] = []
  /// When audio starts without an activation.
  private(set) var startsAt: Instant?
  /// The system has activated audio.
  private var isActivated = false
  private var isRunning = false
  /// Audio was started without an activation.
  private var isForced = false
  private var isConfigured = false
  /// The parts of the device that run.
  private var running = MediaActive.idle

  /// The calls that hear and are heard.
  var calls: [Identifier] { [listening].compactMap(\.self) + mixing }
  func parts(of id: Identifier) -> MediaActive { id == listening || mixing.contains(id) ? running : .idle }

  // MARK: calls

  mutating func configure(_ out: inout [PhoneMachine.Action]) {
    // R20: while the session is active its category does not change; another call has configured the device
    if isActivated, isConfigured { return }
    isConfigured = true
    out.append(.audio(.configure))
  }

  /// - Returns: the calls whose audio has changed by this.
  mutating func listen(
    to next: Identifier?, mixing others: [Identifier], at now: Instant, _ out: inout [PhoneMachine.Action]
  ) -> [Identifier] {
    guard next != listening || others != mixing else { return [] }
    let before = calls
    if next != listening { out.append(.listen(next)) }
    if others != mixing { out.append(.mix(others)) }
    listening = next
    mixing = others
    run(at: now, &out)
    let after = calls
    return before.filter { !after.contains($0) } + after.filter { !before.contains($0) }
  }

  /// No call is left.
  mutating func release(_ out: inout [PhoneMachine.Action]) {
    if isConfigured { out.append(.audio(.release)) }
    // the activation was the last call's
    isConfigured = false
    isActivated = false
  }

  // MARK: the system

  mutating func activated(at now: Instant, _ out: inout [PhoneMachine.Action]) {
    isActivated = true
    run(at: now, &out)
  }

  mutating func deactivated(_ out: inout [PhoneMachine.Action]) {
    isActivated = false
    stop(&out)
  }

  /// The system has dropped its calls.
  mutating func reset() { isActivated = false }

  mutating func startDue(at now: Instant, _ out: inout [PhoneMachine.Action]) { run(isForced: true, at: now, &out) }

  /// Audio runs while the system has activated it and a call is audible. R9: the system may not report the activation, especially
  /// after an unhold; audio then starts after `activationTime`.
  private mutating func run(isForced mayForce: Bool = false, at now: Instant, _ out: inout [PhoneMachine.Action]) {
    guard listening != nil else {
      startsAt = nil
      return stop(&out)
    }
    guard !isRunning else { return startsAt = nil }
    guard isActivated || mayForce else { return startsAt = startsAt ?? now + Limits.activationTime }
    startsAt = nil
    isRunning = true
    isForced = !isActivated
    out.append(.audio(.start))
  }

  private mutating func stop(_ out: inout [PhoneMachine.Action]) {
    guard isRunning else { return }
    isRunning = false
    out.append(.audio(.stop))
  }

  // MARK: the device

  /// A unit is silent or distorted at a rate that its hardware no longer has (R28); a reset of the media services removes the
  /// unit and the session's category.
  func changed(isReset: Bool, _ out: inout [PhoneMachine.Action]) {
    if isReset, isConfigured { out.append(.audio(.configure)) }
    if isRunning { out.append(.audio(.restart)) }
  }

  mutating func runs(_ parts: MediaActive) { running = parts }

  /// True if the calls have no audio.
  mutating func failed(_ request: AudioRequest) -> Bool {
    switch request {
    case .stop, .release: return false
    // a second call's configuration may fail while the first one's audio runs
    case .configure: return true
    case .restart:
      isRunning = false
      return true
    case .start:
      isRunning = false
      // the system did not activate it: the next activation may still start it
      return !isForced
    }
  }
}
