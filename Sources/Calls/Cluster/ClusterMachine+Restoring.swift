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
      guard let change = writes.registration(of: device, at: step.now) ?? memory.device(device).map(DeviceChange.stored) else {
        return true
      }
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
    if writes.beginReview(at: step.now) { review.begin() }
    reviewState(&step)
    // A step sends as much as the token bucket allows.
    sending: for _ in 0..<DeferredWrites.perStep {
      switch writes.next(at: step.now) {
      case .nothing:
        guard review.position != nil else { return }
        break sending
      case .later: break sending
      case .write(let key):
        guard perform(key, &step) else { return writes.hold(key, &step) }
        step.statistics.restored += 1
      }
    }
    step.timers.schedule(.restore, notLaterThan: step.now + Limits.restoreStep)
  }

  /// Defers writes of what the shared store may lack, while fewer wait than some steps send: some pages at most.
  private mutating func reviewState(_ step: inout Step) {
    for _ in 0..<Limits.reviewPages {
      guard let position = review.position, writes.hasRoomForReview(ofCalls: position.isOfCalls) else { return }
      if review.advance(to: reviewPage(at: position, &step)) { writes.endReview() }
    }
  }

  /// Defers the writes of one page; gives where the next one begins, nil after the section's last one.
  private mutating func reviewPage(at position: StateReview.Position, _ step: inout Step) -> StateReview.Position? {
    let most = Limits.reviewPage
    switch position {
    case .calls(let last):
      let page = calls.entered(after: last, most: most)
      for call in page where writes.wasFlushed || !calls.isStored(call) {
        writes.hold(.entry(call), &step)
        holdLocations(of: call, &step)
      }
      return page.count < most ? nil : .calls(after: page.last)
    case .unstarted(let last):
      let page = calls.unstarted(after: last, most: most)
      for call in page { holdLocations(of: call, &step) }
      return page.count < most ? nil : .unstarted(after: page.last)
    case .shares:
      for trunk in calls.sharedTrunks { writes.hold(.share(trunk), &step) }
      return nil
    case .recent(let first): return writes.holdRecent(from: first, most: most, &step).map { .recent(from: $0) }
    case .devices(let last):
      let page = devices.page(after: last, most: most)
      for device in page { hold(device, &step) }
      return page.count < most ? nil : .devices(after: page.last?.number ?? last)
    case .users(let last):
      guard writes.wasFlushed else { return nil }
      let page = memory.page(below: last, most: most)
      for user in page.users { for device in memory.all(of: user) { writes.hold(.registration(device.key), &step) } }
      return page.below == 0 ? nil : .users(below: page.below)
    }
  }

  private mutating func holdLocations(of call: CallID, _ step: inout Step) {
    for user in calls.users(of: call) { writes.hold(.location(user, call), &step) }
  }

  /// A device that the shared store may lack is written. Otherwise its user is compared, once for all devices of the user here.
  private mutating func hold(_ device: OwnDevice, _ step: inout Step) {
    let key = device.whereabouts.device
    if writes.wasFlushed || !device.isEntered { writes.hold(.device(key), &step) }
    guard !writes.wasFlushed, devices.isFirstOfUser(device) else { return }
    if devices.devices(of: key.user).contains(where: \.isEntered) { writes.hold(.review(key.user), &step) }
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
