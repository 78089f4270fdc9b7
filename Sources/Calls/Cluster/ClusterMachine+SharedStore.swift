import AppSessions
import CallModel
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
    case .dropped(let count): step.statistics.messagesDropped += UInt64(max(0, count))
    }
  }

  private mutating func connected(_ flushed: Bool, _ step: inout Step) {
    step.requests.connect()
    suspects.calm(&step)
    // Data that the shared store lost meanwhile stays lost, whatever event follows.
    if flushed { forgetSharedStoreContents(&step) }
    writes.connected(&step)
    grants.compare(nodes: knownNodes, &step)
    tasks.reconnected()
    suspects.stopReading()
    renew(&step)
  }

  /// FLUSHALL, or a failover to an empty replica, that the driver did not notice.
  private mutating func flushed(_ step: inout Step) {
    suspects.calm(&step)
    forgetSharedStoreContents(&step)
    step.statistics.flushes += 1
    grants.compare(nodes: knownNodes, &step)
    writes.connected(&step)
    suspects.stopReading()
  }

  private mutating func forgetSharedStoreContents(_ step: inout Step) {
    writes.flushed(at: step.now)
    calls.unconfirmAll()
    devices.unenterAll()
    write(unconfirmedEnds.flushed(&step), &step)
  }

  private mutating func lost(_ step: inout Step) {
    guard step.requests.isConnected else { return }
    step.requests.disconnect()
    calls.sharedStoreLost()
    grants.disconnected(&step)
    step.timers.cancel(.renewal)
    unconfirmedEnds.disconnected(&step)
  }

  // MARK: replies

  mutating func replied(_ id: SharedStoreRequestID, _ result: Result<SharedStoreReply, SharedStoreFailure>, _ step: inout Step) {
    guard let request = step.requests.remove(id) else { return }
    if case .failure(let failure) = result {
      if failure == .timeout { step.statistics.timeouts += 1 } else { step.statistics.failures += 1 }
    }
    switch request.purpose {
    case .renewal:
      if case .success(.nodes(let leases, let hadLease, let clock, let dropped)) = result {
        lease.received(clock: clock, &step)
        step.statistics.valuesDropped += UInt64(max(0, dropped))
        // the lease cannot have expired: the shared store has lost its data, while the connection stayed open
        if !hadLease, !lease.isStopping, lease.isValid(at: step.now) { flushed(&step) }
        renewed(leases, sent: request.sent, &step)
      } else {
        leasesRead(&step)
      }
    case .part(let question, let call, let part): partReplied(question, of: call, part, result, &step)
    case .write(let key): written(key, result, sent: request.sent, &step)
    case .review(let user): reviewed(user, result, &step)
    case .lead(let task): leadAnswered(task, result, sent: request.sent, &step)
    case .entries(let other): entriesRead(other, result, &step)
    case .ownEntries: ownEntriesRead(result, sent: request.sent, &step)
    case .ownMissing(let call): ownMissingClaimed(call, result, &step)
    case .reaping(let item): reapingClaimed(item, result, &step)
    case .inheriting(let call): inheritClaimed(call, result, &step)
    case .grants: grants.read(result, nodes: knownNodes, &step)
    case .putGrants(let batch): grants.put(batch, result, nodes: knownNodes, &step)
    case .none: break
    }
  }

  // MARK: messages

  private mutating func received(_ message: ClusterMessage, _ from: Incarnation, _ step: inout Step) {
    guard from != incarnation else { return }
    switch liveness(from, step.now) {
    case .living: deliver(message, from, &step)
    case .unknown where peers.keep(message, from: from):
      // The last renewal did not show this incarnation: it is new, or it has died.
      if peers.meet(from, at: step.now) { lease.renewSoon(&step) }
    case .unknown, .dead, .ours: step.statistics.messagesDropped += 1
    }
  }

  /// Delivers the messages of nodes that were not known when the messages arrived.
  mutating func deliverEarly(_ step: inout Step) {
    for (message, from) in peers.dequeueEarly() {
      if case .living = liveness(from, step.now) {
        deliver(message, from, &step)
      } else {
        step.statistics.messagesDropped += 1
      }
    }
  }

  private mutating func deliver(_ message: ClusterMessage, _ from: Incarnation, _ step: inout Step) {
    switch message {
    case .wake(let key, let content):
      guard devices.has(key) else { return step.statistics.wakesDropped += 1 }
      step.actions.append(.wakeHere(key, content))
    case .came(let whereabouts):
      let key = whereabouts.device
      guard whereabouts.incarnation == from, !calls.calls(of: key.user).isEmpty else {
        return step.statistics.messagesDropped += 1
      }
      step.actions.append(.remote(.deviceConnected(RemoteDevice(whereabouts))))
    case .replaced(let key, let session):
      guard devices.isCurrent(session, of: key) else { return step.statistics.messagesDropped += 1 }
      step.actions.append(.replaced(key, session))
    case .revoked(let key):
      memory.revoke(key, at: step.now)
      step.actions.append(.revoked(key))
    case .dead(let other):
      // this may arrive before our own reading of the leases
      if other != incarnation { suspects.reportedDead(other, at: step.now) }
    case .grants: grants.announced(nodes: knownNodes, &step)
    case .directories, .history: step.actions.append(.news(message))
    case .lost(let call, let user): if from != incarnation { step.actions.append(.remote(.callLost(call, user: user))) }
    }
  }
}

extension RemoteDevice {
  init(_ location: Whereabouts) {
    self.init(
      location.device, at: location.incarnation.node, state: location.state, caps: location.caps, accounts: location.accounts)
  }
}
