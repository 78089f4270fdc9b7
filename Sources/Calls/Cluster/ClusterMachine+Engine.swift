import AppSessions
import Bytes
import CallFlow
import Devices

// What the engine says: connections, replies, messages.

extension ClusterMachine {
  mutating func engine(_ event: EngineEvent, _ turn: inout Turn) {
    switch event {
    case .connected(let wasFlushed): connected(wasFlushed, &turn)
    case .lost: lost(&turn)
    case .reply(let id, let result): replied(id, result, &turn)
    case .message(let message, let from): heard(message, from, &turn)
    case .dropped(let count): statistics.messagesDropped += UInt64(max(0, count))
    }
  }

  private mutating func connected(_ flushed: Bool, _ turn: inout Turn) {
    isConnected = true
    calmUntil = turn.now + settings.calm
    // What the engine has lost meanwhile it has lost, whatever comes after it.
    if flushed { forgetWhatTheEngineHad(&turn) }
    mustReview = true
    restoreFrom = turn.now + jitter(settings.restoreSpread)
    compareGrants(&turn)
    for task in tasks.keys { tasks[task]?.isAsking = false }
    for other in suspects.keys { stopReading(other) }
    renew(&turn)
  }

  /// FLUSHALL, or a failover to a replica that had nothing, unseen by the driver.
  private mutating func flushed(_ turn: inout Turn) {
    calmUntil = turn.now + settings.calm
    forgetWhatTheEngineHad(&turn)
    statistics.flushes += 1
    compareGrants(&turn)
    mustReview = true
    restoreFrom = turn.now + jitter(settings.restoreSpread)
    for other in suspects.keys { stopReading(other) }
  }

  private mutating func forgetWhatTheEngineHad(_ turn: inout Turn) {
    flushedAt = turn.now
    wasFlushed = true
    ownReading = nil
    timers.cancel(.ownEntries)
    for call in calls.keys { calls[call]?.putSent = nil }
    for device in devices.keys { devices[device]?.isEntered = false }
    // nothing tells any more what others have closed
    mustReadOwn = false
    if doubt == .reading { doubt = .open }
    releaseRecords(&turn)
  }

  private mutating func lost(_ turn: inout Turn) {
    guard isConnected else { return }
    isConnected = false
    callsAtLoss = callsOfTrunk
    timers.cancel(.renewal)
    ownReading = nil
    timers.cancel(.ownEntries)
  }

  // MARK: replies

  mutating func replied(_ id: EngineRequestID, _ result: Result<EngineReply, EngineFailure>, _ turn: inout Turn) {
    guard let request = requests.removeValue(forKey: id) else { return }
    if case .failure(let failure) = result {
      if failure == .timeout { statistics.timeouts += 1 } else { statistics.failures += 1 }
    }
    switch request.purpose {
    case .renewal:
      if case .success(.nodes(let leases, let hadLease, let clock, let dropped)) = result {
        hear(clock: clock, &turn)
        statistics.valuesDropped += UInt64(max(0, dropped))
        // it cannot have ended by itself: the engine has lost what it held, behind a connection that stands
        if !hadLease, !isStopping, leasedUntil.map({ $0 > turn.now }) ?? false { flushed(&turn) }
        renewed(leases, sent: request.sent, &turn)
      } else {
        leasesRead(&turn)
      }
    case .part(let question, let call, let part): partReplied(question, call, part, result, &turn)
    case .write(let key): written(key, result, sent: request.sent, &turn)
    case .review(let user): reviewed(user, result, &turn)
    case .lead(let task): asked(task, result, sent: request.sent, &turn)
    case .entries(let other): entriesRead(other, result, &turn)
    case .ownEntries: ownEntriesRead(result, sent: request.sent, &turn)
    case .ownMissing(let call): ownMissingClaimed(call, result, &turn)
    case .reaping(let item): reapingClaimed(item, result, &turn)
    case .inheriting(let call): inheritClaimed(call, result, &turn)
    case .grants: grantsRead(result, &turn)
    case .putGrants(let batch): grantsPut(batch, result, &turn)
    case .none: break
    }
  }

  private mutating func hear(clock: Int64, _ turn: inout Turn) {
    guard Limits.clock.contains(clock) else { return }
    let offset = clock - turn.now.nanoseconds / 1_000_000
    guard clockOffset.map({ abs($0 - offset) >= 1_000 }) ?? true else { return }
    clockOffset = offset
    turn.actions.append(.clock(offsetMilliseconds: offset))
  }

  // MARK: messages

  private mutating func heard(_ message: ClusterMessage, _ from: Incarnation, _ turn: inout Turn) {
    guard from != incarnation else { return }
    switch standing(from, turn.now) {
    case .living: deliver(message, from, &turn)
    case .unknown where early.count < Limits.earlyMessages:
      early.append((message, from))
      meet(from, &turn)
    case .unknown, .dead, .ours: statistics.messagesDropped += 1
    }
  }

  /// An incarnation that the last renewal did not show: either it is new, or it is gone.
  mutating func meet(_ other: Incarnation, _ turn: inout Turn) {
    guard unknown[other] == nil, unknown.count < Limits.departed else { return }
    unknown[other] = turn.now
    renewSoon(&turn)
  }

  /// Messages of nodes that were not known when they came.
  mutating func deliverEarly(_ turn: inout Turn) {
    let waiting = early
    early = []
    for (message, from) in waiting {
      if case .living = standing(from, turn.now) {
        deliver(message, from, &turn)
      } else {
        statistics.messagesDropped += 1
      }
    }
  }

  private mutating func deliver(_ message: ClusterMessage, _ from: Incarnation, _ turn: inout Turn) {
    switch message {
    case .wake(let key, let call, let content):
      guard devices[key] != nil, content.count <= Limits.wakeBytes else { return statistics.wakesDropped += 1 }
      turn.actions.append(.wakeHere(key, call, content: content))
    case .came(let whereabouts):
      let key = whereabouts.device
      guard whereabouts.incarnation == from, callsOfUser[key.user] != nil else { return statistics.messagesDropped += 1 }
      turn.actions.append(.remoteDeviceConnected(RemoteDevice(whereabouts)))
    case .replaced(let key, let session):
      guard devices[key]?.whereabouts.session == session else { return statistics.messagesDropped += 1 }
      turn.actions.append(.replaced(key, session))
    case .revoked(let key):
      remember(revoked: key, &turn)
      turn.actions.append(.revoked(key))
    case .dead(let other):
      // may come before our own reading of the leases
      if other != incarnation { reportedDead.set(other, (), until: turn.now + Limits.suspects, at: turn.now) }
    case .grants: heardOfGrants(&turn)
    case .directories, .history: turn.actions.append(.news(message))
    case .lost(let call, let user): if from != incarnation { turn.actions.append(.lost(call, user: user)) }
    }
  }
}

extension RemoteDevice {
  init(_ place: Whereabouts) {
    self.init(place.device, at: place.incarnation.node, state: place.state, caps: place.caps, accounts: place.accounts)
  }
}
