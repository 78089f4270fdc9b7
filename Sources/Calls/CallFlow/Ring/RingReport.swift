import AppSessions
import CallModel
import TrunklineAppProtocol

/// What the devices answered to the offer, from which the end of a call without a winner follows, and what its record holds of
/// them.
///
/// | input | effect on `ending` |
/// |---|---|
/// | `rejected`, `unavailable`, `unusable` | counts; the first row of the table in `ending` that applies decides |
/// | `removeRefusals`: another user's devices ring | none counts |
/// | `offered`, `rang` | none: they count for the record |
struct RingReport {
  private(set) var offeredDevices = 0
  /// The durations of the first device whose `call.ringing` had any.
  private(set) var firstRing: CallRecord.Ring?
  private var (declined, busy, blocked, filtered, unusable, incapable) = (0, 0, 0, 0, 0, 0)

  mutating func offered(_ count: Int) { offeredDevices += count }
  mutating func rang(_ ring: CallRecord.Ring) { if firstRing == nil { firstRing = ring } }

  mutating func rejected(_ reason: CallReject.Reason) {
    switch reason {
    case .busy: busy += 1
    case .declined: declined += 1
    case .mediaFailed: incapable += 1
    }
  }
  mutating func unavailable(isBlocked: Bool) { if isBlocked { blocked += 1 } else { filtered += 1 } }
  /// The device's description cannot be used.
  mutating func describedUnusably() { unusable += 1 }
  mutating func removeRefusals() { (declined, busy, blocked, filtered, unusable, incapable) = (0, 0, 0, 0, 0, 0) }

  /// The end that follows when no device is left, and the rule that may divert the call instead; nil: none has refused.
  var ending: (trigger: DiversionTrigger?, ending: Call.Ending)? {
    if busy > 0, declined == 0 { return (.busy, .init(.busy, by: .app, others: .busyElsewhere)) }
    if declined > 0 { return (.declined, .init(.declined, by: .app, others: .declinedElsewhere)) }
    if incapable > 0 { return (.mediaFailed, .init(.mediaFailed, by: .app, q850: 41, detail: "no device could answer")) }
    if unusable > 0 { return (nil, .init(.codec, by: .app, detail: "no device's SDP was usable")) }
    if blocked > 0, filtered == 0 { return (nil, .init(.blocked, by: .app)) }
    return filtered > 0 ? (.unreached, .init(.dnd, by: .app)) : nil
  }
}
