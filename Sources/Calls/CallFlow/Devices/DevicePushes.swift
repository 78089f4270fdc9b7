import AppSessions
import CallModel
import Devices
import PushPolicy
import TrunklineAppProtocol
import TrunklineBytes

/// The devices of a call that can be woken, whether they were or not (docs/reference/protocol.md, Parking and push). Until
/// `close`, a device that is not connected or does not respond is pushed to. At most one push to a device is accepted: nothing
/// leads from `underWay` or `accepted` back to a push.
///
/// | phase of a device | input | → |
/// |---|---|---|
/// | – | `watch`: connected | due in 1.5 s |
/// | – | `watch`: not connected; iOS in the background | underWay: pushed at once |
/// | –, idle, due | its socket is at another node: `call.wake` | due in 1.5 s; in 2 s if it cannot be pushed to |
/// | due | woken, did not connect, cannot be pushed to | woken again, five times; failed |
/// | due | `offerAcked`; `connected`; 1.5 s; 3 s | due 3 s after the offer; the same; underWay; underWay |
/// | due | `settled`: it rings, or has left | idle |
/// | idle, due | `disconnected` | due at once, or in 1.5 s if it rang |
/// | idle, due | `forbidden` | failed |
/// | underWay | accepted | accepted; 180 after a time, if the trunk has none |
/// | underWay | refused for certain, another registration exists | underWay again |
/// | underWay | any other end | failed |
/// | any | any input after `close`, but `connected` and a push's end | same: nothing is due or sent |
struct DevicePushes {
  /// What the call does for it, in order.
  enum Effect: Equatable {
    /// `call.wake` through the device's socket at another node.
    case wake(DeviceKey, node: String)
    case push(DeviceKey, PushTarget)
    case accepted
    case failed(String)
    /// A device has connected for the first time after its push.
    case connected(after: Duration)
    /// A device will not connect.
    case lost
  }

  private enum Phase: Equatable {
    /// Connected and ringing, or never woken.
    case idle
    /// Pushed to if the device has not responded by then.
    case due(Instant)
    case underWay
    case accepted
    case failed
  }

  private struct Push {
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

    var dueAt: Instant? { if case .due(let at) = phase { at } else { nil } }
    /// The device was never pushed to.
    var isFresh: Bool { phase == .idle || dueAt != nil }
    /// The device may still connect because of it.
    var isOpen: Bool { dueAt != nil || phase == .underWay || phase == .accepted }
  }

  private var pushes: [Push] = []
  /// The call rings, and devices may be woken.
  private var isOpen = false
  private var early180: Instant?
  /// Devices may have wake tokens for the call.
  private(set) var hasWoken = false
  /// Why the last device that cannot connect was lost.
  private(set) var failure: String?

  // MARK: what is known of devices

  var count: Int { pushes.count }
  /// Devices that may show the call because of a push or a wake.
  var shown: [DeviceKey] { pushes.filter(\.mayShow).map(\.key) }
  func mayShow(_ key: DeviceKey) -> Bool { pushes.contains { $0.key == key && $0.mayShow } }
  /// Whether one of the devices that match may still connect.
  func awaits(where matches: (DeviceKey) -> Bool) -> Bool { pushes.contains { $0.isOpen && matches($0.key) } }
  /// Devices that were pushed to.
  var sent: [(key: DeviceKey, hasFailed: Bool)] {
    pushes.filter { $0.sentAt != nil }.map { ($0.key, $0.phase == .failed) }
  }
  var isUnderWay: Bool { pushes.contains { $0.phase == .underWay } }

  private func index(_ key: DeviceKey) -> Int? { pushes.firstIndex { $0.key == key } }
  private func dueIndex(_ key: DeviceKey) -> Int? { index(key).flatMap { pushes[$0].dueAt == nil ? nil : $0 } }

  // MARK: ringing

  /// Devices ring from now on.
  mutating func open() { isOpen = true }

  /// A device has the call, no device will have it, or a rule diverts it.
  mutating func close() { (isOpen, early180) = (false, nil) }

  /// Other devices will ring.
  mutating func removeAll() {
    close()
    pushes = []
  }

  /// Adds a device. `target`: its push registration; `presence`: its session, if it has one; `remote`: its socket at another
  /// node.
  mutating func watch(
    _ key: DeviceKey, _ target: PushTarget?, presence: DevicePresence? = nil, remote: RemoteDevice? = nil, _ step: inout Step
  ) -> [Effect] {
    guard index(key) == nil else { return [] }
    pushes.append(Push(key: key, target: target, remote: remote, offeredAt: step.now))
    if remote != nil { return wake(pushes.count - 1, &step) }
    guard let presence, presence.isConnected, !presence.needsPush else { return push(pushes.count - 1, &step) }
    pushes[pushes.count - 1].phase = .due(step.now + step.configuration.timers.offerAck)
    return []
  }

  /// The device connected to another node. Nil: it is none of these devices.
  mutating func connected(elsewhere remote: RemoteDevice, _ step: inout Step) -> [Effect]? {
    guard let index = index(remote.key) else { return nil }
    pushes[index].remote = remote
    return pushes[index].isFresh || pushes[index].mayShow ? wake(index, &step) : []
  }

  /// If the device does not connect, it is pushed to or woken again.
  private mutating func wake(_ index: Int, _ step: inout Step) -> [Effect] {
    let push = pushes[index]
    guard isOpen, step.configuration.push != nil, let remote = push.remote else { return [] }
    pushes[index].wakes = push.wakes + 1
    pushes[index].mayShow = true
    hasWoken = true
    let effect = Effect.wake(push.key, node: remote.node)
    guard push.isFresh else { return [effect] }
    pushes[index].phase = .due(step.now + (push.target == nil ? Limits.wakeInterval : step.configuration.timers.offerAck))
    // iOS may have stopped the app, so its socket may be dead
    return push.target != nil && remote.needsPush ? [effect] + self.push(index, &step) : [effect]
  }

  private mutating func push(_ index: Int, _ step: inout Step) -> [Effect] {
    guard isOpen, step.configuration.push != nil, let target = pushes[index].target else { return [] }
    if pushes[index].wakes > 0, pushes[index].remote != nil { step.statistics.wakesFallenBack += 1 }
    pushes[index].phase = .underWay
    pushes[index].sentAt = step.now
    pushes[index].mayShow = true
    hasWoken = true
    return [.push(pushes[index].key, target)]
  }

  /// One or more devices did not respond in time. A device without a push target is woken again, and after `Limits.wakes` it has
  /// failed.
  mutating func expired(isConnected: (DeviceKey) -> Bool, _ step: inout Step) -> [Effect] {
    var effects: [Effect] = []
    var isLost = false
    for index in pushes.indices {
      guard let due = pushes[index].dueAt, due <= step.now else { continue }
      if step.configuration.push == nil {
        isLost = true
        failure = "pushes were switched off"
        pushes[index].phase = .failed
      } else if pushes[index].target != nil {
        effects += push(index, &step)
      } else if isConnected(pushes[index].key) {
        pushes[index].phase = .idle
      } else if pushes[index].remote != nil, pushes[index].wakes < Limits.wakes {
        effects += wake(index, &step)
      } else {
        isLost = true
        failure = "did not come from its node"
        pushes[index].phase = .failed
      }
    }
    return isLost ? effects + [.lost] : effects
  }

  /// A push ended. `other`: another push target of this device, if it may be tried.
  /// - Parameter rings: the trunk was sent 180, or will be.
  mutating func ended(_ report: PushReport, other: PushTarget?, rings: Bool, _ step: inout Step) -> [Effect] {
    guard let index = index(DeviceKey(user: report.key.user, device: report.key.device)), pushes[index].phase == .underWay else {
      return []
    }
    switch report.outcome {
    case .accepted:
      pushes[index].phase = .accepted
      if isOpen, !rings, early180 == nil { early180 = step.configuration.timers.early180.map { step.now + $0 } }
      return [.accepted]
    case .unregistered, .tokenMismatch: pushes[index].mayShow = false
    // without an answer, the push may have arrived
    case .failed: pushes[index].mayShow = report.attempts > 0
    }
    failure = report.reason
    let isCertain = report.outcome != .failed || report.attempts == 0
    if isCertain, isOpen, let other, other != pushes[index].target {
      pushes[index].target = other
      let again = push(index, &step)
      if !again.isEmpty { return [.failed(report.reason)] + again }
    }
    pushes[index].phase = .failed
    return [.failed(report.reason), .lost]
  }

  // MARK: what devices do

  /// The offer is sent only now, after the caller was verified: the time for its ack begins.
  mutating func offered(_ key: DeviceKey, _ step: Step) {
    guard let index = dueIndex(key) else { return }
    pushes[index].offeredAt = step.now
    pushes[index].phase = .due(step.now + step.configuration.timers.offerAck)
  }

  /// Now the device has to ring.
  mutating func offerAcked(_ key: DeviceKey) {
    if let index = dueIndex(key) { pushes[index].phase = .due(pushes[index].offeredAt + Limits.ringingAfterOffer) }
  }

  /// The device rings or has left the call: no push.
  mutating func settled(_ key: DeviceKey) {
    if let index = dueIndex(key) { pushes[index].phase = .idle }
  }

  /// The device's socket was lost. A device that rang gets the time of a reconnect.
  mutating func disconnected(_ key: DeviceKey, rang: Bool, _ step: Step) {
    guard isOpen, let index = index(key), pushes[index].isFresh else { return }
    // not before the next step: a socket that takes the session over arrives in this one
    pushes[index].phase = .due(rang ? step.now + step.configuration.timers.offerAck : step.now)
  }

  /// The device logged out or was revoked: no push from now on.
  mutating func forbidden(_ key: DeviceKey) -> [Effect] {
    guard isOpen, let index = index(key), pushes[index].isFresh else { return [] }
    pushes[index].phase = .failed
    failure = "no longer registered"
    return [.lost]
  }

  /// The device is connected (again) and has the call, by snapshot or by a replay of its offer.
  mutating func connected(_ device: DevicePresence, isNew: Bool, rings: Bool, _ step: inout Step) -> [Effect] {
    guard let index = index(device.key) else { return [] }
    var effects: [Effect] = []
    if isNew, !pushes[index].isBack, let sentAt = pushes[index].sentAt {
      pushes[index].isBack = true
      effects.append(.connected(after: step.now - sentAt))
    }
    if pushes[index].remote != nil, pushes[index].wakes > 0 {
      step.statistics.wakesCome += 1
      pushes[index].remote = nil
    }
    guard pushes[index].isFresh, isOpen else { return effects }
    pushes[index].offeredAt = step.now
    pushes[index].phase = rings ? .idle : .due(step.now + Limits.ringingAfterOffer)
    return effects + inBackground(device, &step)
  }

  /// iOS may stop an app in the background at any moment.
  mutating func inBackground(_ device: DevicePresence, _ step: inout Step) -> [Effect] {
    guard device.needsPush, let index = dueIndex(device.key) else { return [] }
    return push(index, &step)
  }

  // MARK: deadlines

  var next: DueTimer? {
    guard isOpen else { return nil }
    return .earliest(DueTimer(.push, pushes.lazy.compactMap(\.dueAt).min()), DueTimer(.early180, early180))
  }

  /// 180 is due, once.
  mutating func early180Expired() { early180 = nil }
}

extension DevicePresence {
  /// iOS in the background: a push is sent beside the offer.
  var needsPush: Bool { info.state == .bg && ["ios", "ipados"].contains(info.platform?.lowercased() ?? "") }
}

extension RemoteDevice {
  /// In the background. The platform is not known here, and an unneeded push does not ring twice.
  var needsPush: Bool { state == .bg }
}
