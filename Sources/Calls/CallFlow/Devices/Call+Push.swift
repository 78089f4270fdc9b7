import AppSessions
import CallModel
import Devices
import PushPolicy
import TrunklineAppProtocol
import TrunklineBytes

/// Pushes and wakes: what `DevicePushes` decides, the call sends.
extension Call {
  /// Watches devices that can be pushed to, and those that only their socket at another node can wake.
  mutating func wake(
    _ destinations: [PushDestination], _ remoteDevices: [RemoteDevice], present: [DevicePresence], _ step: inout Step
  ) {
    for destination in destinations.prefix(Limits.devicesPerCall) {
      let key = destination.key
      let (presence, remote) = (present.first { $0.key == key }, remoteDevices.first { $0.key == key })
      perform(pushes.watch(key, destination.target, presence: presence, remote: remote, &step), &step)
    }
    for remote in remoteDevices.prefix(Limits.devicesPerCall) {
      perform(pushes.watch(remote.key, nil, remote: remote, &step), &step)
    }
  }

  mutating func perform(_ effects: [DevicePushes.Effect], _ step: inout Step) {
    for effect in effects {
      switch effect {
      case .wake(let key, let node):
        guard let ring = ringClock.until, let content = pushContent(for: key, until: ring, step) else { continue }
        step.output.actions.append(.wake(key, node: node, content))
        step.statistics.wakesSent += 1
        mark(.wakeSent, detail: node, &step)
      case .push(let key, let target):
        guard let ring = ringClock.until, var content = pushContent(for: key, until: ring, step) else { continue }
        content.sealCaller(for: target, step.random)
        step.output.actions.append(.push(PushKey(call: id, user: key.user, device: key.device), target, content, deadline: ring))
        if times[.pushed] == nil, let start = times[.start] { step.measure(.inviteToPush(step.now - start)) }
        mark(.pushed, detail: target.service.rawValue, &step)
      case .accepted: markOnce(.pushAccepted, &step)
      case .failed(let reason): mark(.pushFailed, detail: reason, &step)
      case .connected(let delay):
        markOnce(.woken, &step)
        step.measure(.pushToConnected(delay))
      case .lost: endIfNoDeviceRings(&step)
      }
    }
  }

  /// The content of a push to a device; nil: pushes are off.
  func pushContent(for device: DeviceKey, until ring: Instant, _ step: Step) -> CallPush? {
    guard let settings = step.configuration.push else { return nil }
    let last = ring + Limits.wakeAfterRing
    let wake = Wake(call: id, device: device, firstUseBefore: last, expiresAt: step.wall(last))
    var push = CallPush(
      call: id, deadline: step.wall(ring) / 1_000, account: users.account(of: device.user),
      handleKind: .init(rawValue: parties.from.k.rawValue) ?? .generic, handle: parties.from.h, name: parties.from.n,
      gateway: settings.gateway,
      wake: settings.wakes.token(wake))
    push.called = .init(kind: .init(rawValue: parties.to.k.rawValue) ?? .generic, handle: parties.to.h, name: parties.to.n)
    push.parameters = parties.parameters?.values ?? [:]
    return push
  }

  mutating func pushesDue(_ step: inout Step) {
    let devices = devices
    let effects = pushes.expired(isConnected: { key in devices.contains { $0.key == key && $0.isConnected } }, &step)
    perform(effects, &step)
  }

  /// A push ended. `other`: another push target of this device, if its registration was refused for certain.
  mutating func pushed(_ report: PushReport, other: PushTarget?, _ step: inout Step) {
    guard isLive else { return }
    let isOver = terminals[DeviceKey(user: report.key.user, device: report.key.device)] != nil
    perform(pushes.ended(report, other: isOver ? nil : other, rings: trunkLeg.wantsRinging, &step), &step)
  }

  /// Sends 180 to the trunk though no device has reported that it rings: one was woken.
  mutating func ringEarly(_ step: inout Step) {
    pushes.early180Expired()
    guard isUndecided else { return }
    trunkLeg.requestRinging()
    ringTrunk(&step)
  }

  /// The device's socket was lost.
  mutating func pushDisconnected(_ key: DeviceKey, _ step: inout Step) {
    guard terminals[key] == nil else { return }
    pushes.disconnected(key, rang: rings(key), step)
  }

  mutating func pushForbidden(_ key: DeviceKey, _ step: inout Step) { perform(pushes.forbidden(key), &step) }

  mutating func pushConnected(_ device: DevicePresence, isNew: Bool, _ step: inout Step) {
    perform(pushes.connected(device, isNew: isNew, rings: rings(device.key), &step), &step)
  }

  mutating func pushIfInBackground(_ device: DevicePresence, _ step: inout Step) {
    perform(pushes.inBackground(device, &step), &step)
  }

  private func rings(_ key: DeviceKey) -> Bool { index(of: key).map { devices[$0].phase == .ringing } ?? false }

  /// A device has the call, or none will have it: a device that was only pushed to is notified when it connects.
  mutating func closePushes(_ over: CallOver, _ step: inout Step) {
    pushes.close()
    if pushes.isUnderWay { step.output.actions.append(.pushCallOver(id)) }
    for key in pushes.shown where key != winner && terminals[key] == nil && index(of: key) == nil {
      terminals.end(key, Terminal(over: over, isByDevice: false, isUnseen: true, isOfPushOnly: true))
    }
  }
}
