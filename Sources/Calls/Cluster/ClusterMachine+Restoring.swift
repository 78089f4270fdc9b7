import AppSessions
import CallFlow
import Devices
import TrunklineBytes

// Writes that are made at once, and writes that are deferred because the shared store was away, refused them or has lost them. A
// write always sends the state at the time of sending, so a repeated write does no harm.

extension ClusterMachine {
  /// Sends the write now if possible; defers it otherwise.
  mutating func write(_ key: WriteKey, paced: Bool = false, _ step: inout Step) {
    if paced, !writes.consume(at: step.now) { return markUnwritten(key, &step) }
    if !perform(key, &step) { markUnwritten(key, &step) }
  }

  mutating func markUnwritten(_ key: WriteKey, _ step: inout Step) {
    let isKept = key.isOfCalls ? writesOfCalls.append(key) : writesOfDevices.append(key)
    if !isKept { statistics.forgotten += 1 }
    if isConnected, restoreFrom == nil || restoreFrom! <= step.now {
      timers.schedule(.restore, notLaterThan: step.now + Limits.restoreAgain + jitter(Limits.restoreAgain))
    }
  }

  /// Sends the current state. False: it could not be sent.
  private mutating func perform(_ key: WriteKey, _ step: inout Step) -> Bool {
    let isSent: Bool
    switch key {
    case .entry(let call):
      // an entry that is missing when our entries are read must have been removed by another node; `release` removes it
      if unconfirmedEnds[call] != nil { return true }
      if let entry = calls[call]?.entry { return send(.put(entry, at: incarnation), .write(key), &step) }
      isSent = send(.remove(call, at: incarnation), .write(key), &step)
    case .location(let user, let call):
      if let own = calls[call], own.users.contains(user) {
        let location = CallLocation(call, at: incarnation, own.direction)
        return send(.locate(user: user, entering: location), .write(key), &step)
      }
      isSent = send(.leaveCall(user: user, call), .write(key), &step)
    case .share(let trunk):
      sharesSent[trunk, default: 0] += 1
      return send(.share(trunk: trunk, count: callsOfTrunk[trunk] ?? 0, of: incarnation), .write(key), &step)
    case .shareGone(let trunk, let other):
      isSent = send(.share(trunk: trunk, count: 0, of: other), .write(key), &step)
    case .entryGone(let call, let other):
      isSent = send(.reaped(call, of: other, by: incarnation), .write(key), &step)
    case .device(let device):
      guard let own = devices[device] else { return true }
      // This belongs to no question: the hello was completed long ago.
      return send(.enter(own.whereabouts, since: own.since), .part(0, nil, .enter(device, own.whereabouts.session)), &step)
    case .left(let device, let session):
      guard devices[device]?.whereabouts.session != session else { return true }
      isSent = send(.leave(device, session), .write(key), &step)
    case .registration(let device):
      guard let registration = registrations[device] else { return true }
      return send(.register(user: device.user, [registration.change]), .write(key), &step)
    case .review(let user):
      guard devicesOfUser[user] != nil else { return true }
      return send(.locate(user: user, entering: nil), .review(user), &step)
    }
    if isSent { noteRecent(key, step.now) }
    return isSent
  }

  mutating func written(
    _ key: WriteKey, _ result: Result<SharedStoreReply, SharedStoreFailure>, sent: Instant, _ step: inout Step
  ) {
    guard case .success(let reply) = result else { return markUnwritten(key, &step) }
    switch (key, reply) {
    case (.entry(let call), _): calls[call]?.isStored(since: sent)
    case (.location, .located(let located)): remember(located, &step)
    case (.registration(let device), _):
      // Kept for `Limits.recent` more: a failover may lose it.
      if let registration = registrations[device], !registration.isStored {
        let kept = Registration(change: registration.change, isStored: true)
        registrations.set(device, kept, until: step.now + Limits.recent, at: step.now)
        noteRecent(key, step.now)
      }
    default: break
    }
  }

  private mutating func noteRecent(_ key: WriteKey, _ now: Instant) {
    recent.append((key, now))
    while recentHead < recent.count,
      now - recent[recentHead].at > Limits.recent || recent.count - recentHead > Limits.recentWrites
    {
      recentHead += 1
    }
    if recentHead > 1_024, recentHead * 2 > recent.count {
      recent.removeFirst(recentHead)
      recentHead = 0
    }
  }

  // MARK: after a reconnection

  /// Called with a lease: starts the deferred writes, after a new connection at a random time.
  mutating func startRestoring(_ step: inout Step) {
    guard mustReview || !writesOfCalls.isEmpty || !writesOfDevices.isEmpty else { return }
    timers.schedule(.restore, notLaterThan: max(restoreFrom ?? step.now, step.now))
  }

  mutating func restore(_ step: inout Step) {
    guard state == .up else { return }  // `regained` continues
    if mustReview {
      mustReview = false
      restoreFrom = nil
      markAll(&step)
      wasFlushed = false
    }
    // A step sends as much as the token bucket allows; calls first.
    let most = Int(Double(Limits.restoresPerSecond) * Limits.restoreStep.inSeconds)
    for _ in 0..<most {
      guard !writesOfCalls.isEmpty || !writesOfDevices.isEmpty else { return }
      // Calls do not wait for devices that connect meanwhile; devices wait for calls.
      guard restores.has(at: step.now), !writesOfCalls.isEmpty || writes.has(at: step.now) else { break }
      guard let key = writesOfCalls.popFirst() ?? writesOfDevices.popFirst() else { return }
      restores.spend(at: step.now)
      writes.spend(at: step.now)
      guard perform(key, &step) else { return markUnwritten(key, &step) }
      statistics.restored += 1
    }
    timers.schedule(.restore, notLaterThan: step.now + Limits.restoreStep)
  }

  /// Marks everything that the shared store may lack.
  private mutating func markAll(_ step: inout Step) {
    for (id, call) in calls.sorted(by: { "\($0.key)" < "\($1.key)" }) {
      guard wasFlushed || call.putSent == nil else { continue }
      if call.entry != nil { markUnwritten(.entry(id), &step) }
      for user in call.users { markUnwritten(.location(user, id), &step) }
    }
    for trunk in Set(callsOfTrunk.keys).union(sharesSent.keys).sorted() { markUnwritten(.share(trunk), &step) }
    for write in recent[recentHead...] where step.now - write.at <= Limits.recent { markUnwritten(write.key, &step) }
    var reviewed: Set<String> = []
    for (key, device) in devices.sorted(by: { $0.value.number < $1.value.number }) {
      if wasFlushed || !device.isEntered {
        markUnwritten(.device(key), &step)
      } else if reviewed.insert(key.user).inserted {
        markUnwritten(.review(key.user), &step)
      }
    }
    guard wasFlushed else { return }
    for user in memory.keys.sorted() {
      for device in memory[user]?.devices ?? [] where registrations[device.key] == nil {
        registrations.set(device.key, Registration(change: .stored(device)), until: .distantFuture, at: step.now)
        markUnwritten(.registration(device.key), &step)
      }
    }
  }

  /// Compares a user's devices here with the shared store after messages were missed: revoked devices, calls that began
  /// elsewhere, devices that have moved.
  mutating func reviewed(_ user: String, _ result: Result<SharedStoreReply, SharedStoreFailure>, _ step: inout Step) {
    guard case .success(.located(let located)) = result else { return markUnwritten(.review(user), &step) }
    remember(located, &step)
    for device in (devicesOfUser[user] ?? []).sorted() {
      let key = DeviceKey(user: user, device: device)
      guard let own = devices[key] else { continue }
      if located.devices.contains(where: { $0.key == key && $0.revokedAt != nil }) { step.actions.append(.revoked(key)) }
      let location = located.whereabouts.first { $0.device == key }
      if let location, location.session == own.whereabouts.session {
        notifyNodes(with: located.calls, that: own.whereabouts, &step)
      } else if let location, location.incarnation != incarnation, own.isEntered, !isDead(location.incarnation, step.now) {
        step.actions.append(.replaced(key, own.whereabouts.session))
      } else {
        markUnwritten(.device(key), &step)
      }
    }
  }
}
