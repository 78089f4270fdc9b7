import AppSessions
import CallModel
import PushPolicy
import TrunklineBytes

/// One device's push in a call (docs/reference/protocol.md, Parking and push). At most one is accepted: nothing leads from `underWay` or
/// `accepted` back to a push.
///
/// | phase | event | → |
/// |---|---|---|
/// | idle, due | not connected; iOS in the background | underWay: pushed at once |
/// | idle | its socket is at another node: `call.wake` | due in 1.5 s; in 2 s if it cannot be pushed to |
/// | due | woken, did not connect, cannot be pushed to | woken again, five times; failed |
/// | due | acked; 1.5 s; 3 s | due 3 s after the offer; underWay |
/// | due | `call.ringing` | idle |
/// | idle, due | socket lost | due at once, or in 1.5 s if it rang |
/// | underWay | accepted | accepted |
/// | underWay | refused for certain, another registration exists | underWay again |
/// | underWay | any other end | failed |
struct DevicePush {
  enum Phase: Equatable {
    /// Connected and ringing.
    case idle
    /// Pushed to if the device has not responded by then.
    case due(Instant)
    case underWay
    case accepted
    case failed
  }
  let key: DeviceKey
  /// Nil: only its socket at another node wakes it.
  var target: PushTarget?
  /// The device's socket at another node.
  var remote: RemoteDevice?
  /// Number of `call.wake` sent.
  var wakes = 0
  var phase = Phase.idle
  var offeredAt: Instant
  var sentAt: Instant?
  /// A push went out and may have arrived: the device may show the call.
  var mayShow = false
  /// The device connected after its push; measured once.
  var isBack = false

  init(key: DeviceKey, target: PushTarget?, remote: RemoteDevice? = nil, at now: Instant) {
    (self.key, self.target, self.remote, offeredAt) = (key, target, remote, now)
  }

  var dueAt: Instant? { if case .due(let at) = phase { at } else { nil } }
  /// The device was never pushed to.
  var isFresh: Bool { phase == .idle || dueAt != nil }
  /// The device may still connect because of it.
  var isOpen: Bool { dueAt != nil || phase == .underWay || phase == .accepted }
}
