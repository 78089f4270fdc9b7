import CallFlow
import TrunklineAppProtocol
import TrunklineBytes

// The calls of dead nodes are closed in steps, each after a claim: a reaper may die too.

extension ClusterMachine {
  mutating func enqueue(_ item: ReapItem, _ step: inout Step) -> Bool {
    guard reapQueue.count - reapHead < Limits.reapQueue else { return false }
    reapQueue.append(item)
    timers.schedule(.reap, notLaterThan: step.now)
    return true
  }

  mutating func reapStep(_ step: inout Step) {
    guard reapHead < reapQueue.count else { return }
    guard state == .up else { return timers.schedule(.reap, at: step.now + .seconds(1)) }
    var asked = 0
    while reapHead < reapQueue.count, asked < Limits.reapStep {
      let item = reapQueue[reapHead]
      reapHead += 1
      guard isDue(item, step.now) else {
        done(item, isSkipped: true, &step)
        continue
      }
      asked += 1
      if closed[item.entry.line.call] != nil {
        removeEntry(item, &step)
        done(item, isSkipped: false, &step)
      } else if !send(.claimReaping(item.entry.line.call, of: item.incarnation, by: incarnation), .reaping(item), &step) {
        reapHead -= 1
        break
      }
    }
    if reapHead == reapQueue.count {
      reapQueue.removeAll(keepingCapacity: true)
      reapHead = 0
    } else {
      timers.schedule(.reap, at: step.now + Limits.reapPause)
    }
  }

  private func isDue(_ item: ReapItem, _ now: Instant) -> Bool {
    guard let suspect = suspects[item.incarnation], !suspect.isHeld, suspect.scan?.number == item.scan, mayReap(suspect, now)
    else { return false }
    return suspect.verdict == .dead || suspect.verdict == .silent
  }

  mutating func reapingClaimed(_ item: ReapItem, _ result: Result<SharedStoreReply, SharedStoreFailure>, _ step: inout Step) {
    guard case .success(.granted(let isGranted, let holder)) = result else {
      // The claim may be ours: the next scan asks again. If the node returns before, its entry exists and the call continues.
      return done(item, isSkipped: false, &step)
    }
    let isOurs = isGranted || holder == incarnation
    if isOurs { close(item, kind: item.entry.line.connect == nil ? .ringing : .connected, &step) }
    done(item, isSkipped: !isOurs, &step)
  }

  private mutating func done(_ item: ReapItem, isSkipped: Bool, _ step: inout Step) {
    guard suspects[item.incarnation]?.scan?.number == item.scan else { return }
    suspects[item.incarnation]?.scan?.waiting -= 1
    if isSkipped { suspects[item.incarnation]?.scan?.skipped += 1 }
    reapNext(item.incarnation, &step)
  }

  /// Closes a call once in this process, whatever the shared store answers.
  private mutating func close(_ item: ReapItem, kind: ClusterStatistics.ReapedKind, _ step: inout Step) {
    let call = item.entry.line.call
    guard closed[call] == nil, calls[call] == nil else { return removeEntry(item, &step) }
    closed.set(call, (), until: step.now + Limits.startClaim, at: step.now)
    // before the 503: the next node may ring the same devices, which must not be busy with this call
    for user in item.entry.users.prefix(Limits.usersPerCall) { send(.broadcast(.lost(call, user: user)), .none, &step) }
    if let legs = item.entry.line.legs, !legs.isEmpty { step.actions.append(.close(call, legs)) }
    step.actions.append(.orphan(item.entry, of: item.incarnation))
    statistics.reaped[kind, default: 0] += 1
    removeEntry(item, &step)
    let tombstone = RemoteTombstone(users: item.entry.users, CallOver(.gatewayRestart, by: .gateway))
    send(.putTombstone(call, tombstone), .none, &step)
  }

  private mutating func removeEntry(_ item: ReapItem, _ step: inout Step) {
    let call = item.entry.line.call
    write(.entryGone(call, item.incarnation), &step)
    for user in item.entry.users.prefix(Limits.usersPerCall) where calls[call]?.users.contains(user) != true {
      write(.location(user, call), &step)
    }
  }

  // MARK: calls of the previous process

  mutating func inherit(_ entries: [CallEntry], _ before: Incarnation, _ step: inout Step) {
    for entry in entries where inherited[entry.line.call] == nil && closed[entry.line.call] == nil {
      let deadline = step.now + Limits.inheritWait
      inherited[entry.line.call] = Inherited(entry: entry, incarnation: before, deadline: deadline)
      inheritedOrder.append(entry.line.call)
    }
    timers.schedule(.inherited, at: step.now)
  }

  /// Claims each inherited call while the shared store answers. Without an answer in time the call is closed all the same: it is
  /// ours, and no other node could read it.
  mutating func inheritStep(_ step: inout Step) {
    var removed = 0
    var waiting: [CallID] = []
    var index = 0
    while index < inheritedOrder.count, removed < Limits.reapStep {
      let call = inheritedOrder[index]
      index += 1
      guard let own = inherited[call] else { continue }
      if own.deadline <= step.now {
        removed += 1
        closeInherited(call, isOurs: true, &step)
      } else {
        waiting.append(call)
        guard !own.isAsking, send(.claimReaping(call, of: own.incarnation, by: incarnation), .inheriting(call), &step) else {
          continue
        }
        inherited[call]?.isAsking = true
        removed += 1
      }
    }
    inheritedOrder.replaceSubrange(..<index, with: [])
    inheritedOrder += waiting
    guard !inheritedOrder.isEmpty else { return }
    timers.schedule(.inherited, at: step.now + (removed == 0 ? .milliseconds(100) : Limits.reapPause))
  }

  mutating func inheritClaimed(_ call: CallID, _ result: Result<SharedStoreReply, SharedStoreFailure>, _ step: inout Step) {
    guard inherited[call] != nil else { return }
    guard case .success(.granted(let isGranted, let holder)) = result else {
      inherited[call]?.isAsking = false
      return
    }
    closeInherited(call, isOurs: isGranted || holder == incarnation, &step)
  }

  private mutating func closeInherited(_ call: CallID, isOurs: Bool, _ step: inout Step) {
    guard let own = inherited.removeValue(forKey: call) else { return }
    guard isOurs else { return step.actions.append(.reapedBefore(call)) }
    close(ReapItem(entry: own.entry, incarnation: own.incarnation, scan: 0), kind: .inherited, &step)
    guard !inherited.values.contains(where: { $0.incarnation == own.incarnation }) else { return }
    for trunk in limitedTrunks.sorted() { write(.shareGone(trunk, own.incarnation), &step) }
  }
}
