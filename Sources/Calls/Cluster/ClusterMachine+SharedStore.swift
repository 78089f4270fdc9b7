import AppSessions
import CallFlow
import Devices
import TrunklineBytes

// Events of the shared store: connections, replies, messages.

extension ClusterMachine {
  mutating func sharedStore(_ event: SharedStoreEvent, _ step: inout Step) {
    switch event {
    case .connected(let wasFlushed): connected(wasFlushed, &step)
    case .lost: lost(&step)
    case .reply(let id, let result): replied(id, result, &step)
    case .message(let message, let from): received(message, from, &step)
    case .dropped(let count): statistics.messagesDropped += UInt64(max(0, count))
    }
  }

  private mutating func connected(_ flushed: Bool, _ step: inout Step) {
    isConnected = true
    calmUntil = step.now + settings.calm
    // Data that the shared store lost meanwhile stays lost, whatever event follows.
    if flushed { forgetSharedStoreContents(&step) }
    mustReview = true
    restoreFrom = step.now + jitter(settings.restoreSpread)
    compareGrants(&step)
    for task in tasks.keys { tasks[task]?.isAsking = false }
    for other in suspects.keys { stopReading(other) }
    renew(&step)
  }

  /// FLUSHALL, or a failover to an empty replica, that the driver did not notice.
  private mutating func flushed(_ step: inout Step) {
    calmUntil = step.now + settings.calm
    forgetSharedStoreContents(&step)
    statistics.flushes += 1
    compareGrants(&step)
    mustReview = true
    restoreFrom = step.now + jitter(settings.restoreSpread)
    for other in suspects.keys { stopReading(other) }
  }

  private mutating func forgetSharedStoreContents(_ step: inout Step) {
    flushedAt = step.now
    wasFlushed = true
    ownReading = nil
    timers.cancel(.ownEntries)
    for call in calls.keys { calls[call]?.putSent = nil }
    for device in devices.keys { devices[device]?.isEntered = false }
    // the entries no longer show what other nodes have closed
    mustReadOwn = false
    if confirmation == .reading { confirmation = .open }
    releaseRecords(&step)
  }

  private mutating func lost(_ step: inout Step) {
    guard isConnected else { return }
    isConnected = false
    callsAtLoss = callsOfTrunk
    timers.cancel(.renewal)
    ownReading = nil
    timers.cancel(.ownEntries)
  }

  // MARK: replies

  mutating func replied(_ id: SharedStoreRequestID, _ result: Result<SharedStoreReply, SharedStoreFailure>, _ step: inout Step) {
    guard let request = requests.removeValue(forKey: id) else { return }
    if case .failure(let failure) = result {
      if failure == .timeout { statistics.timeouts += 1 } else { statistics.failures += 1 }
    }
    switch request.purpose {
    case .renewal:
      if case .success(.nodes(let leases, let hadLease, let clock, let dropped)) = result {
        receive(clock: clock, &step)
        statistics.valuesDropped += UInt64(max(0, dropped))
        // the lease cannot have expired: the shared store has lost its data, while the connection stayed open
        if !hadLease, !isStopping, leasedUntil.map({ $0 > step.now }) ?? false { flushed(&step) }
        renewed(leases, sent: request.sent, &step)
      } else {
        leasesRead(&step)
      }
    case .part(let question, let call, let part): partReplied(question, call, part, result, &step)
    case .write(let key): written(key, result, sent: request.sent, &step)
    case .review(let user): reviewed(user, result, &step)
    case .lead(let task): asked(task, result, sent: request.sent, &step)
    case .entries(let other): entriesRead(other, result, &step)
    case .ownEntries: ownEntriesRead(result, sent: request.sent, &step)
    case .ownMissing(let call): ownMissingClaimed(call, result, &step)
    case .reaping(let item): reapingClaimed(item, result, &step)
    case .inheriting(let call): inheritClaimed(call, result, &step)
    case .grants: grantsRead(result, &step)
    case .putGrants(let batch): grantsPut(batch, result, &step)
    case .none: break
    }
  }

  private mutating func receive(clock: Int64, _ step: inout Step) {
    guard Limits.clock.contains(clock) else { return }
    let offset = clock - step.now.nanoseconds / 1_000_000
    guard clockOffset.map({ abs($0 - offset) >= 1_000 }) ?? true else { return }
    clockOffset = offset
    step.actions.append(.clock(offsetMilliseconds: offset))
  }

  // MARK: messages

  private mutating func received(_ message: ClusterMessage, _ from: Incarnation, _ step: inout Step) {
    guard from != incarnation else { return }
    switch liveness(from, step.now) {
    case .living: deliver(message, from, &step)
    case .unknown where early.count < Limits.earlyMessages:
      early.append((message, from))
      meet(from, &step)
    case .unknown, .dead, .ours: statistics.messagesDropped += 1
    }
  }

  /// The last renewal did not show this incarnation: it is new, or it has died.
  mutating func meet(_ other: Incarnation, _ step: inout Step) {
    guard unknown[other] == nil, unknown.count < Limits.departed else { return }
    unknown[other] = step.now
    renewSoon(&step)
  }

  /// Delivers the messages of nodes that were not known when the messages arrived.
  mutating func deliverEarly(_ step: inout Step) {
    let waiting = early
    early = []
    for (message, from) in waiting {
      if case .living = liveness(from, step.now) {
        deliver(message, from, &step)
      } else {
        statistics.messagesDropped += 1
      }
    }
  }

  private mutating func deliver(_ message: ClusterMessage, _ from: Incarnation, _ step: inout Step) {
    switch message {
    case .wake(let key, let call, let content):
      guard devices[key] != nil, content.count <= Limits.wakeBytes else { return statistics.wakesDropped += 1 }
      step.actions.append(.wakeHere(key, call, content: content))
    case .came(let whereabouts):
      let key = whereabouts.device
      guard whereabouts.incarnation == from, callsOfUser[key.user] != nil else { return statistics.messagesDropped += 1 }
      step.actions.append(.remoteDeviceConnected(RemoteDevice(whereabouts)))
    case .replaced(let key, let session):
      guard devices[key]?.whereabouts.session == session else { return statistics.messagesDropped += 1 }
      step.actions.append(.replaced(key, session))
    case .revoked(let key):
      remember(revoked: key, &step)
      step.actions.append(.revoked(key))
    case .dead(let other):
      // this may arrive before our own reading of the leases
      if other != incarnation { reportedDead.set(other, (), until: step.now + Limits.suspects, at: step.now) }
    case .grants: grantsAnnounced(&step)
    case .directories, .history: step.actions.append(.news(message))
    case .lost(let call, let user): if from != incarnation { step.actions.append(.lost(call, user: user)) }
    }
  }
}

extension RemoteDevice {
  init(_ location: Whereabouts) {
    self.init(
      location.device, at: location.incarnation.node, state: location.state, caps: location.caps, accounts: location.accounts)
  }
}
