import AppSessions
import CallModel
import Devices
import TrunklineBytes

// Writes that are made at once, and writes that are deferred because the shared store was away, refused them or has lost them. A
// write always sends the state at the time of sending, so a repeated write does no harm.

extension ClusterMachine {
  /// Sends the write now if possible; defers it otherwise.
  mutating func write(_ key: WriteKey, paced: Bool = false, _ step: inout Step) {
    if paced, !writes.consume(at: step.now) { return writes.hold(key, &step) }
    if !perform(key, &step) { writes.hold(key, &step) }
  }

  /// Sends the current state. False: it could not be sent.
  private mutating func perform(_ key: WriteKey, _ step: inout Step) -> Bool {
    let isSent: Bool
    switch key {
    case .entry(let call):
      // an entry that is missing when our entries are read must have been removed by another node; `release` removes it
      if unconfirmedEnds.has(call) { return true }
      if let entry = calls.entry(of: call) { return step.send(.put(entry, at: incarnation), .write(key)) }
      isSent = step.send(.remove(call, at: incarnation), .write(key))
    case .location(let user, let call):
      if let direction = calls.direction(of: call, for: user) {
        let location = CallLocation(call, at: incarnation, direction)
        return step.send(.locate(user: user, entering: location), .write(key))
      }
      isSent = step.send(.leaveCall(user: user, call), .write(key))
    case .share(let trunk):
      return step.send(.share(trunk: trunk, count: calls.share(of: trunk), of: incarnation), .write(key))
    case .shareGone(let trunk, let other):
      isSent = step.send(.share(trunk: trunk, count: 0, of: other), .write(key))
    case .entryGone(let call, let other):
      isSent = step.send(.reaped(call, of: other, by: incarnation), .write(key))
    case .device(let device):
      guard let own = devices[device] else { return true }
      // This belongs to no question: the hello was completed long ago.
      return step.send(.enter(own.whereabouts, since: own.since), .part(0, nil, .enter(device, own.whereabouts.session)))
    case .left(let device, let session):
      guard !devices.isCurrent(session, of: device) else { return true }
      isSent = step.send(.leave(device, session), .write(key))
    case .registration(let device):
      guard let change = writes.registration(of: device) else { return true }
      return step.send(.register(user: device.user, [change]), .write(key))
    case .review(let user):
      guard devices.hasAny(of: user) else { return true }
      return step.send(.locate(user: user, entering: nil), .review(user))
    }
    if isSent { writes.removed(key, at: step.now) }
    return isSent
  }

  mutating func written(
    _ key: WriteKey, _ result: Result<SharedStoreReply, SharedStoreFailure>, sent: Instant, _ step: inout Step
  ) {
    guard case .success(let reply) = result else { return writes.hold(key, &step) }
    switch (key, reply) {
    case (.entry(let call), _): calls.confirm(call, sent: sent)
    case (.location, .located(let located)): memory.remember(located, at: step.now)
    case (.registration(let device), _): writes.registered(device, at: step.now)
    default: break
    }
  }

  // MARK: after a reconnection

  mutating func restore(_ step: inout Step) {
    guard state == .up else { return }  // `regained` continues
    if writes.beginReview() {
      holdAll(&step)
      writes.endReview()
    }
    // A step sends as much as the token bucket allows.
    sending: for _ in 0..<DeferredWrites.perStep {
      switch writes.next(at: step.now) {
      case .nothing: return
      case .later: break sending
      case .write(let key):
        guard perform(key, &step) else { return writes.hold(key, &step) }
        step.statistics.restored += 1
      }
    }
    step.timers.schedule(.restore, notLaterThan: step.now + Limits.restoreStep)
  }

  /// Defers a write of everything that the shared store may lack.
  private mutating func holdAll(_ step: inout Step) {
    for (id, call) in calls.sorted(where: { writes.wasFlushed || $0.putSent == nil }) {
      if call.entry != nil { writes.hold(.entry(id), &step) }
      for user in call.users { writes.hold(.location(user, id), &step) }
    }
    for trunk in calls.sharedTrunks { writes.hold(.share(trunk), &step) }
    writes.holdRecent(&step)
    var reviewed: Set<String> = []
    for device in devices.inOrder {
      let key = device.whereabouts.device
      if writes.wasFlushed || !device.isEntered {
        writes.hold(.device(key), &step)
      } else if reviewed.insert(key.user).inserted {
        writes.hold(.review(key.user), &step)
      }
    }
    guard writes.wasFlushed else { return }
    for user in memory.sortedUsers {
      for device in memory.all(of: user) where writes.registration(of: device.key) == nil {
        writes.register(.stored(device), at: step.now)
        writes.hold(.registration(device.key), &step)
      }
    }
  }

  /// Compares a user's devices here with the shared store after messages were missed: revoked devices, calls that began
  /// elsewhere, devices that have moved.
  mutating func reviewed(_ user: String, _ result: Result<SharedStoreReply, SharedStoreFailure>, _ step: inout Step) {
    guard case .success(.located(let located)) = result else { return writes.hold(.review(user), &step) }
    memory.remember(located, at: step.now)
    for own in devices.devices(of: user) {
      let key = own.whereabouts.device
      if located.devices.contains(where: { $0.key == key && $0.revokedAt != nil }) { step.actions.append(.revoked(key)) }
      let location = located.whereabouts.first { $0.device == key }
      if let location, location.session == own.whereabouts.session {
        notifyNodes(with: located.calls, that: own.whereabouts, &step)
      } else if let location, location.incarnation != incarnation, own.isEntered, !isDead(location.incarnation, step.now) {
        step.actions.append(.replaced(key, own.whereabouts.session))
      } else {
        writes.hold(.device(key), &step)
      }
    }
  }
}
