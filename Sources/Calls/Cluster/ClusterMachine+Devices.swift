import AppSessions
import CallModel
import Devices
import TrunklineAppProtocol
import TrunklineBytes

// Devices with a socket here, the registry's changes, and the memory of users.

extension ClusterMachine {
  mutating func deviceCame(_ key: DeviceKey, on session: SessionID, _ info: DeviceInfo, _ step: inout Step) {
    guard info.onlyCall == nil, !info.isFurther else { return welcomeFromMemory(key, session, &step) }
    let location = whereabouts(key, on: session, info)
    devices.connect(location, at: step.now)
    var question = questions.new(.welcome(key, session))
    if step.requests.isConnected, writes.consume(at: step.now),
      ask(.enter(location, since: devices[key]?.since), .enter(key, session), call: nil, of: &question, &step)
    {
      return pose(question, &step)
    }
    writes.hold(.device(key), &step)
    step.statistics.blindWelcomes += 1
    welcomeFromMemory(key, session, &step)
  }

  mutating func deviceChanged(_ key: DeviceKey, on session: SessionID, _ info: DeviceInfo, _ step: inout Step) {
    guard info.onlyCall == nil, !info.isFurther else { return }
    let before = devices[key]
    let location = whereabouts(key, on: session, info)
    devices.connect(location, at: step.now)
    guard let before, before.whereabouts.session == session, before.isEntered else {
      return write(.device(key), paced: true, &step)
    }
    if before.whereabouts == location { return }
    devices.entered(key, since: before.since)
    guard writes.consume(at: step.now), step.send(.update(location), .write(.device(key))) else {
      devices.unenter(key)
      return writes.hold(.device(key), &step)
    }
  }

  mutating func deviceLeft(_ key: DeviceKey, _ session: SessionID, _ step: inout Step) {
    guard devices.disconnect(key, session) else { return }
    // A device that is sent away by draining connects to another node soon, and calls wait for it meanwhile: its hint stays until
    // it connects there, or until our lease ends.
    guard !lease.published.isDraining else { return }
    write(.left(key, session), paced: true, &step)
  }

  private func whereabouts(_ key: DeviceKey, on session: SessionID, _ info: DeviceInfo) -> Whereabouts {
    Whereabouts(key, at: incarnation, session: session, state: info.state, caps: info.caps, accounts: info.accounts)
  }

  private func welcomeFromMemory(_ key: DeviceKey, _ session: SessionID, _ step: inout Step) {
    let known = memory.device(key)
    step.actions.append(.welcome(key, session, registration: known, isRevoked: memory.isRevoked(key, known)))
  }

  /// Asks the shared store only about users that this node does not remember: an operator's revocation reaches every node.
  mutating func sessionState(_ request: HTTPRequestID, _ key: DeviceKey, _ step: inout Step) {
    var question = questions.new(.sessionState(request, key))
    if !memory.has(key.user), step.requests.isConnected {
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
    if let device, device.key == key { memory.remember(device, at: step.now) }
    guard let own = devices[key], own.whereabouts.session == session else { return }
    if isOlder {
      guard let before, isDead(before.incarnation, step.now) else { return step.actions.append(.replaced(key, session)) }
      // the node of the newer session has died
      devices.forgetTime(of: key)
      return writes.hold(.device(key), &step)
    }
    devices.entered(key, since: since)
    if let revokedAt = device?.revokedAt {
      if isAnswered { step.actions += [.revoked(key), .revokedBefore(key, revokedAt)] }
      // the device is refused here, and must not replace a session that a call holds open elsewhere
      return
    }
    // Both sessions were written again after a flush, and the shared store never had ours: no node knows which is newer, so
    // neither is ended. Pings find the dead socket.
    let isAmbiguous = own.since == nil && writes.wasFlushed(after: own.came)
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
        step.statistics.hintsDropped += 1
        continue
      }
      guard notified.insert(location.incarnation.node).inserted else { continue }
      send(location.incarnation.node, .came(own), &step)
    }
  }

  /// Never delayed; counts as a write.
  private mutating func send(_ node: String, _ message: ClusterMessage, _ step: inout Step) {
    writes.spend(at: step.now)
    step.send(.publish(message, to: node), .none)
  }

  // MARK: registry

  mutating func register(_ changes: [DeviceChange], _ step: inout Step) {
    for change in changes {
      switch change {
      case .stored(let device): memory.remember(device, at: step.now)
      case .removed(let key): memory.forget(key)
      }
      if !writes.register(change, at: step.now) { step.statistics.forgotten += 1 }
      write(.registration(change.key), paced: true, &step)
    }
  }

  mutating func revoke(_ key: DeviceKey, _ step: inout Step) {
    memory.revoke(key, at: step.now)
    step.send(.broadcast(.revoked(key)), .none)
  }

  // MARK: wakes

  mutating func wake(_ content: CallWake, _ key: DeviceKey, at node: String, _ step: inout Step) {
    guard state == .up, peers.has(name: node), step.send(.publish(.wake(key, content), to: node), .none) else {
      return step.statistics.wakesDropped += 1
    }
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
