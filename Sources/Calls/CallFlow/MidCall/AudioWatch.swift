import CallModel
import TrunklineAppProtocol
import TrunklineBytes

/// How well a connected call is heard: poor or good, which side is silent, and how long a silent app is waited for.
///
/// | state | input | → | returns |
/// |---|---|---|---|
/// | good | `becomes(poor: true)` | poor | true: it is reported |
/// | poor | `becomes(poor: false)` | good | true |
/// | either | the same again | same | false |
/// | any | `appSilent` | the app is waited for | – |
/// | waited for | `appBack` | not waited for | true |
/// | not waited for | `appBack` | same | false |
struct AudioWatch {
  /// The side that sent nothing between the last two statistics.
  private(set) var silentSide: CallSide?
  private var isPoor = false
  private var appGrace: Instant?

  mutating func becomes(poor: Bool) -> Bool {
    defer { isPoor = poor }
    return isPoor != poor
  }

  mutating func measured(silentSide: CallSide?) { self.silentSide = silentSide }

  var isAppSilent: Bool { appGrace != nil }
  mutating func appSilent(until deadline: Instant) { appGrace = deadline }
  mutating func appBack() -> Bool {
    defer { appGrace = nil }
    return isAppSilent
  }

  /// The call has ended, or the app was waited for long enough.
  mutating func stop() { appGrace = nil }

  var next: DueTimer? { DueTimer(.appGrace, appGrace) }
}
