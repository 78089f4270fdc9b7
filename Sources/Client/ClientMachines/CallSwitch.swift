import TrunklineBytes

/// A switch that the app sets and the system performs. A change by the app while a request is open is requested afterwards; an
/// action of the system is performed and causes no request.
///
/// | state | `want` another | `want` the same | `begin` | `finish` | `refused` |
/// |---|---|---|---|---|---|
/// | idle | a request → asked | – | the system's action | on or off, if done; a request, if the app requires another | – |
/// | asked | requested afterwards | nothing is requested afterwards | the requested action: → idle; another one does not change that | as above, once the request is begun | → idle |
struct CallSwitch: Sendable {
  private(set) var isOn = false
  private var wanted = false
  private var asked: Bool?
  /// A request is open: the system has yet to perform it.
  var isAsked: Bool { asked != nil }

  /// The request to send to the system, if any.
  mutating func want(_ on: Bool) -> Bool? {
    wanted = on
    return ask()
  }
  private mutating func ask() -> Bool? {
    guard asked == nil, wanted != isOn else { return nil }
    asked = wanted
    return wanted
  }
  /// The system's action begins.
  mutating func begin(_ on: Bool) { if asked == on { asked = nil } else { wanted = on } }
  /// The action is done, or has failed; returns the next request to send, if any.
  mutating func finish(_ on: Bool, isDone: Bool) -> Bool? {
    if isDone { isOn = on } else if wanted == on { wanted = isOn }
    return ask()
  }
  mutating func refused() { (asked, wanted) = (nil, isOn) }
}

/// A call's mute: at once on the device, while the gateway receives the last of a burst, `Limits.muteBurst` after its first.
struct MuteSwitch: Sendable {
  private var toggle = CallSwitch()
  /// When the gateway is notified.
  private(set) var dueAt: Instant?

  var isOn: Bool { toggle.isOn }
  /// This device's mute is not sent yet: it is newer than the gateway's.
  var isUnsent: Bool { dueAt != nil || toggle.isAsked }

  /// The request to send to the system, if any.
  mutating func want(_ on: Bool) -> Bool? { toggle.want(on) }
  /// The system's action; returns the next request to send, if any.
  mutating func perform(_ on: Bool, at now: Instant) -> Bool? {
    toggle.begin(on)
    dueAt = dueAt ?? now + Limits.muteBurst
    return toggle.finish(on, isDone: true)
  }
  mutating func refused() { toggle.refused() }
  mutating func sent() { dueAt = nil }
}
