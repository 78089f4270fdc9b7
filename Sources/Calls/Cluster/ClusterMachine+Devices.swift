import AppSessions
import CallFlow
import Devices
import TrunklineAppProtocol
import TrunklineBytes

// Devices with a socket here, the registry's changes, and the memory of users.

extension ClusterMachine {
  mutating func deviceCame(_ key: DeviceKey, _ session: SessionID, _ info: DeviceInfo, _ step: inout Step) {
    guard info.onlyCall == nil, !info.isFurther else { return welcomeFromMemory(key, session, &step) }
    let location = own(key, session, info, step.now)
    var question = newQuestion(.welcome(key, session))
    if isConnected, writes.consume(at: step.now),
      ask(.enter(location, since: devices[key]?.since), .enter(key, session), call: nil, of: &question, &step)
    {
      return pose(question, &step)
    }
    markUnwritten(.device(key), &step)
    statistics.blindWelcomes += 1
    welcomeFromMemory(key, session, &step)
  }

  mutating func deviceChanged(_ key: DeviceKey, _ session: SessionID, _ info: DeviceInfo, _ step: inout Step) {
    guard info.onlyCall == nil, !info.isFurther else { return }
    let before = devices[key]
    let location = own(key, session, info, step.now)
    guard before?.whereabouts.session == session, before?.isEntered == true else {
      return write(.device(key), paced: true, &step)
    }
    if before?.whereabouts == location { return }
    devices[key]?.isEntered = true
    guard writes.consume(at: step.now), send(.update(location), .write(.device(key)), &step) else {
      devices[key]?.isEntered = false
      return markUnwritten(.device(key), &step)
    }
  }

  mutating func deviceLeft(_ key: DeviceKey, _ session: SessionID, _ step: inout Step) {
    guard devices[key]?.whereabouts.session == session else { return }
    devices[key] = nil
    devicesOfUser[key.user]?.remove(key.device)
    if devicesOfUser[key.user]?.isEmpty ?? false { devicesOfUser[key.user] = nil }
    // A device that is sent away by draining connects to another node soon, and calls wait for it meanwhile: its hint stays until
    // it connects there, or until our lease ends.
    guard !lease.isDraining else { return }
    write(.left(key, session), paced: true, &step)
  }

  private mutating func own(_ key: DeviceKey, _ session: SessionID, _ info: DeviceInfo, _ now: Instant) -> Whereabouts {
    let location = Whereabouts(
      key, at: incarnation, session: session, state: info.state, caps: info.caps, accounts: info.accounts)
    lastDevice += 1
    let before = devices[key].flatMap { $0.whereabouts.session == session ? $0 : nil }
    devices[key] = OwnDevice(whereabouts: location, number: devices[key]?.number ?? lastDevice, came: before?.came ?? now)
    devices[key]?.since = before?.since
    devicesOfUser[key.user, default: []].insert(key.device)
    return location
  }

  private mutating func welcomeFromMemory(_ key: DeviceKey, _ session: SessionID, _ step: inout Step) {
    let known = memory[key.user]?.devices.first { $0.key == key }
    step.actions.append(.welcome(key, session, registration: known, isRevoked: isRevoked(key, known)))
  }

  func isRevoked(_ key: DeviceKey, _ registration: Device?) -> Bool {
    registration?.revokedAt != nil || revocations[key] != nil
  }

  /// Asks the shared store only about users that this node does not remember: an operator's revocation reaches every node.
  mutating func sessionState(_ request: HTTPRequestID, _ key: DeviceKey, _ step: inout Step) {
    var question = newQuestion(.sessionState(request, key))
    if memory[key.user] == nil, isConnected {
      ask(.locate(user: key.user, entering: nil), .user(key.user), call: nil, of: &question, &step)
    }
    pose(question, &step)
  }

  // MARK: the reply to an entered device

  /// - Parameter isAnswered: its hello was completed before this reply arrived.
  mutating func entered(
    _ key: DeviceKey, _ session: SessionID, before: Whereabouts?, calls locations: [CallLocation], device: Device?, since: Int64,
    isOlder: Bool, isAnswered: Bool, _ step: inout Step
  ) {
    if let device, device.key == key { remember(device, &step) }
    guard let own = devices[key], own.whereabouts.session == session else { return }
    if isOlder {
      guard let before, isDead(before.incarnation, step.now) else { return step.actions.append(.replaced(key, session)) }
      // the node of the newer session has died
      devices[key]?.since = nil
      return markUnwritten(.device(key), &step)
    }
    devices[key]?.isEntered = true
    devices[key]?.since = since
    if let revokedAt = device?.revokedAt {
      if isAnswered { step.actions += [.revoked(key), .revokedBefore(key, revokedAt)] }
      // the device is refused here, and must not replace a session that a call holds open elsewhere
      return
    }
    // Both sessions were written again after a flush, and the shared store never had ours: no node knows which is newer, so
    // neither is ended. Pings find the dead socket.
    let isAmbiguous = own.since == nil && flushedAt.map { own.came < $0 } ?? false
    if let before, !isAmbiguous, before.device == key, before.session != session, before.incarnation != incarnation,
      !isDead(before.incarnation, step.now)
    {
      send(before.incarnation.node, .replaced(key, before.session), &step)
    }
    notifyNodes(with: locations, that: own.whereabouts, &step)
  }

  /// Notifies the nodes that have calls of this device's user: they may wake the device.
  mutating func notifyNodes(with locations: [CallLocation], that own: Whereabouts, _ step: inout Step) {
    var notified: Set<String> = [incarnation.node]
    for location in locations.prefix(Limits.callsPerUser) {
      guard !isDead(location.incarnation, step.now) else {
        statistics.hintsDropped += 1
        continue
      }
      guard notified.insert(location.incarnation.node).inserted else { continue }
      send(location.incarnation.node, .came(own), &step)
    }
  }

  /// Never delayed; counts as a write.
  private mutating func send(_ node: String, _ message: ClusterMessage, _ step: inout Step) {
    writes.spend(at: step.now)
    send(.publish(message, to: node), .none, &step)
  }

  func isDead(_ other: Incarnation, _ now: Instant) -> Bool {
    if case .dead = liveness(other, now) { return true }
    return false
  }

  // MARK: registry

  mutating func register(_ changes: [DeviceChange], _ step: inout Step) {
    for change in changes {
      let key = change.key
      if case .stored(let device) = change {
        remember(device, &step)
      } else {
        forget(key)
      }
      let isKept = registrations.set(key, Registration(change: change), until: .distantFuture, at: step.now)
      if !isKept { statistics.forgotten += 1 }
      write(.registration(key), paced: true, &step)
    }
  }

  mutating func revoke(_ key: DeviceKey, _ step: inout Step) {
    remember(revoked: key, &step)
    send(.broadcast(.revoked(key)), .none, &step)
  }

  // MARK: memory

  mutating func remember(_ user: LocatedUser, _ step: inout Step) {
    guard !user.devices.isEmpty || memory[user.user] != nil else { return }
    let devices = user.devices.filter { $0.key.user == user.user }.prefix(Limits.devicesPerUser)
    memory.set(user.user, Remembered(devices: Array(devices)), until: step.now + Limits.remembered, at: step.now)
    for device in devices { noteRevocation(of: device, &step) }
  }

  mutating func remember(_ device: Device, _ step: inout Step) {
    var known = memory[device.key.user]?.devices ?? []
    known.removeAll { $0.key == device.key }
    if known.count < Limits.devicesPerUser { known.append(device) }
    memory.set(device.key.user, Remembered(devices: known), until: step.now + Limits.remembered, at: step.now)
    noteRevocation(of: device, &step)
  }

  private mutating func noteRevocation(of device: Device, _ step: inout Step) {
    if device.revokedAt != nil {
      revocations.set(device.key, (), until: step.now + Limits.remembered, at: step.now)
    } else if revocations[device.key] != nil {
      revocations.remove(device.key)
    }
  }

  mutating func remember(revoked key: DeviceKey, _ step: inout Step) {
    revocations.set(key, (), until: step.now + Limits.remembered, at: step.now)
    memory.change(key.user) { known in
      for index in known.devices.indices where known.devices[index].key == key { known.devices[index].bindings = [] }
    }
  }

  private mutating func forget(_ key: DeviceKey) {
    memory.change(key.user) { $0.devices.removeAll { $0.key == key } }
  }

  /// The remembered devices of a user; revoked devices have no bindings.
  func remembered(_ user: String) -> [Device]? {
    memory[user]?.devices.map { device in
      var device = device
      if revocations[device.key] != nil { device.bindings = [] }
      return device
    }
  }

  // MARK: wakes

  mutating func wake(_ call: CallID, _ key: DeviceKey, _ node: String, _ content: [UInt8], _ step: inout Step) {
    guard state == .up, peerOfName[node] != nil, content.count <= Limits.wakeBytes,
      send(.publish(.wake(key, call: call, content: content), to: node), .none, &step)
    else { return statistics.wakesDropped += 1 }
  }
}

extension DeviceChange {
  var key: DeviceKey {
    switch self {
    case .stored(let device): device.key
    case .removed(let key): key
    }
  }
}
