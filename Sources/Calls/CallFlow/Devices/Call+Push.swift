import AppSessions
import CallModel
import Devices
import PushPolicy
import TrunklineAppProtocol
import TrunklineBytes

/// Parking (docs/reference/protocol.md): devices that are not connected or do not respond are woken, with at most one accepted
/// push each.
extension Call {
  /// Adds a device that can be woken. `presence`: its session, if it has one; `remote`: its socket at another node.
  mutating func watch(
    _ destination: PushDestination, _ presence: DevicePresence?, _ remote: RemoteDevice? = nil, _ step: inout Step
  ) {
    guard !pushes.contains(where: { $0.key == destination.key }) else { return }
    pushes.append(DevicePush(key: destination.key, target: destination.target, remote: remote, at: step.now))
    if remote != nil { return wake(pushes.count - 1, &step) }
    if let presence, presence.isConnected, !presence.needsPush {
      pushes[pushes.count - 1].phase = .due(step.now + step.configuration.timers.offerAck)
      schedulePushes()
    } else {
      push(pushes.count - 1, &step)
    }
  }

  /// Adds a device that only its socket at another node can wake.
  mutating func watch(_ remote: RemoteDevice, _ step: inout Step) {
    guard !pushes.contains(where: { $0.key == remote.key }) else { return }
    pushes.append(DevicePush(key: remote.key, target: nil, remote: remote, at: step.now))
    wake(pushes.count - 1, &step)
  }

  func pushIndex(_ key: DeviceKey) -> Int? { pushes.firstIndex { $0.key == key } }

  private mutating func schedulePushes() { timers[.push] = pushes.compactMap(\.dueAt).min() }

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

  /// Sends `call.wake` through the device's socket at another node. If the device does not connect, it is pushed to or woken
  /// again.
  mutating func wake(_ index: Int, _ step: inout Step) {
    let push = pushes[index]
    guard isUndecided, let ring = timers[.ring], let remote = push.remote,
      let content = pushContent(for: push.key, until: ring, step)
    else { return }
    step.output.actions.append(.wake(push.key, node: remote.node, content))
    step.statistics.wakesSent += 1
    bookkeeping.wasPushed = true
    mark(.wakeSent, detail: remote.node, &step)
    (pushes[index].wakes, pushes[index].mayShow) = (push.wakes + 1, true)
    guard push.isFresh else { return }
    pushes[index].phase = .due(step.now + (push.target == nil ? Limits.wakeInterval : step.configuration.timers.offerAck))
    schedulePushes()
    // iOS may have stopped the app, so its socket may be dead
    if push.target != nil, remote.needsPush { self.push(index, &step) }
  }

  private mutating func push(_ index: Int, _ step: inout Step) {
    let device = pushes[index].key
    guard isUndecided, let ring = timers[.ring], let target = pushes[index].target,
      var content = pushContent(for: device, until: ring, step)
    else { return }
    content.sealCaller(for: target, step.random)
    let key = PushKey(call: id, user: device.user, device: device.device)
    step.output.actions.append(.push(key, target, content, deadline: ring))
    if pushes[index].wakes > 0, pushes[index].remote != nil { step.statistics.wakesFallenBack += 1 }
    if times[.pushed] == nil, let start = times[.start] { step.measure(.inviteToPush(step.now - start)) }
    bookkeeping.wasPushed = true
    mark(.pushed, detail: target.service.rawValue, &step)
    (pushes[index].phase, pushes[index].sentAt, pushes[index].mayShow) = (.underWay, step.now, true)
    schedulePushes()
  }

  /// One or more devices did not respond to their offer in time.
  mutating func pushesDue(_ step: inout Step) {
    for index in pushes.indices {
      if let due = pushes[index].dueAt, due <= step.now { offerTimedOut(index, &step) }
    }
    schedulePushes()
    if pushes.contains(where: { $0.target == nil && $0.phase == .failed }) { endIfNoDeviceRings(&step) }
  }

  /// A device did not respond to an offer or a wake: pushes to it, or wakes it again if it has no push target. After
  /// `Limits.wakes` it has failed.
  private mutating func offerTimedOut(_ index: Int, _ step: inout Step) {
    if pushes[index].target != nil { return push(index, &step) }
    let isHere = self.index(of: pushes[index].key).map { devices[$0].isConnected } ?? false
    if isHere {
      pushes[index].phase = .idle
    } else if pushes[index].remote != nil, pushes[index].wakes < Limits.wakes {
      wake(index, &step)
    } else {
      pushes[index].phase = .failed
      bookkeeping.pushFailure = "did not come from its node"
    }
  }

  /// A push ended. `other`: another push target of this device, if its registration was refused for certain.
  mutating func pushed(_ report: PushReport, other: PushTarget?, _ step: inout Step) {
    let key = DeviceKey(user: report.key.user, device: report.key.device)
    guard isLive, let index = pushIndex(key), pushes[index].phase == .underWay else { return }
    switch report.outcome {
    case .accepted:
      pushes[index].phase = .accepted
      markOnce(.pushAccepted, &step)
      if isUndecided, !trunkLeg.wantsRinging, timers[.early180] == nil, let early = step.configuration.timers.early180 {
        timers[.early180] = step.now + early
      }
    case .unregistered, .tokenMismatch:
      pushes[index].mayShow = false
      failed(index, report, other: other, &step)
    case .failed:
      // without an answer, the push may have arrived
      pushes[index].mayShow = report.attempts > 0
      failed(index, report, other: report.attempts == 0 ? other : nil, &step)
    }
  }

  private mutating func failed(_ index: Int, _ report: PushReport, other: PushTarget?, _ step: inout Step) {
    mark(.pushFailed, detail: report.reason, &step)
    bookkeeping.pushFailure = report.reason
    if let other, other != pushes[index].target, isUndecided, terminals[pushes[index].key] == nil {
      pushes[index].target = other
      return push(index, &step)
    }
    pushes[index].phase = .failed
    endIfNoDeviceRings(&step)
  }

  /// Sends 180 to the trunk though no device has reported that it rings: one was woken.
  mutating func ringEarly(_ step: inout Step) {
    guard isUndecided else { return }
    trunkLeg.wantsRinging = true
    ringTrunk(&step)
  }

  // MARK: what devices do

  /// The offer is sent only now, after the caller was verified: the time for its ack begins.
  mutating func pushOffered(_ key: DeviceKey, _ step: Step) {
    guard let index = pushIndex(key), pushes[index].dueAt != nil else { return }
    pushes[index].offeredAt = step.now
    pushes[index].phase = .due(step.now + step.configuration.timers.offerAck)
    schedulePushes()
  }

  /// The offer is acked: now the device has to ring.
  mutating func pushOfferAcked(_ key: DeviceKey) {
    guard let index = pushIndex(key), pushes[index].dueAt != nil else { return }
    pushes[index].phase = .due(pushes[index].offeredAt + Limits.ringingAfterOffer)
    schedulePushes()
  }

  /// The device rings or has left the call: no push.
  mutating func pushNotNeeded(_ key: DeviceKey) {
    guard let index = pushIndex(key), pushes[index].dueAt != nil else { return }
    pushes[index].phase = .idle
    schedulePushes()
  }

  /// The device's socket was lost. A device that rang gets the time of a reconnect.
  mutating func pushDisconnected(_ key: DeviceKey, _ step: inout Step) {
    guard isUndecided, terminals[key] == nil, let index = pushIndex(key), pushes[index].isFresh else { return }
    let rang = self.index(of: key).map { devices[$0].phase == .ringing } ?? false
    // not before the next step: a socket that takes the session over arrives in this one
    pushes[index].phase = .due(rang ? step.now + step.configuration.timers.offerAck : step.now)
    schedulePushes()
  }

  /// The device logged out or was revoked: no push from now on.
  mutating func pushForbidden(_ key: DeviceKey, _ step: inout Step) {
    guard isUndecided, let index = pushIndex(key), pushes[index].isFresh else { return }
    pushes[index].phase = .failed
    bookkeeping.pushFailure = "no longer registered"
    schedulePushes()
    endIfNoDeviceRings(&step)
  }

  /// The device is connected (again) and has the call, by snapshot or by a replay of its offer.
  mutating func pushConnected(_ device: DevicePresence, isNew: Bool, _ step: inout Step) {
    guard let index = pushIndex(device.key) else { return }
    if isNew, !pushes[index].isBack, let sentAt = pushes[index].sentAt {
      pushes[index].isBack = true
      markOnce(.woken, &step)
      step.measure(.pushToConnected(step.now - sentAt))
    }
    if pushes[index].remote != nil, pushes[index].wakes > 0 {
      step.statistics.wakesCome += 1
      pushes[index].remote = nil
    }
    guard pushes[index].isFresh, isUndecided else { return }
    pushes[index].offeredAt = step.now
    let rang = self.index(of: device.key).map { devices[$0].phase == .ringing } ?? false
    pushes[index].phase = rang ? .idle : .due(step.now + Limits.ringingAfterOffer)
    schedulePushes()
    if !rang { pushIfInBackground(device, &step) }
  }

  /// iOS may stop an app in the background at any moment.
  mutating func pushIfInBackground(_ device: DevicePresence, _ step: inout Step) {
    guard device.needsPush, let index = pushIndex(device.key), pushes[index].dueAt != nil else { return }
    push(index, &step)
  }

  /// A device has the call, or none will have it: a device that was only pushed to is notified when it connects.
  mutating func closePushes(_ over: CallOver, _ step: inout Step) {
    if pushes.contains(where: { $0.phase == .underWay }) { step.output.actions.append(.pushCallOver(id)) }
    for push in pushes where push.mayShow && push.key != winner && terminals[push.key] == nil && index(of: push.key) == nil {
      terminals[push.key] = Terminal(over: over, isByDevice: false, isUnseen: true, isOfPushOnly: true)
    }
    (timers[.push], timers[.early180]) = (nil, nil)
  }
}

extension DevicePresence {
  /// iOS in the background: a push is sent beside the offer.
  var needsPush: Bool { info.state == .bg && ["ios", "ipados"].contains(info.platform?.lowercased() ?? "") }
}

extension RemoteDevice {
  /// In the background. The platform is not known here, and an unneeded push does not ring twice.
  var needsPush: Bool { state == .bg }
}
