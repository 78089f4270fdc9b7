import CallModel
import TrunklineAppProtocol
import TrunklineBytes

// The calls of dead nodes are closed in steps, each after a claim.

extension ClusterMachine {
  private func authority(_ now: Instant) -> Suspects.Authority {
    Suspects.Authority(isUp: state == .up, isReaper: tasks.leads(.reaper, at: now))
  }

  mutating func suspectDue(_ other: Incarnation, _ step: inout Step) { suspects.due(other, authority(step.now), &step) }

  mutating func entriesRead(_ other: Incarnation, _ result: Result<SharedStoreReply, SharedStoreFailure>, _ step: inout Step) {
    handle(suspects.read(other, result, room: reaping.room, &step), &step)
  }

  /// If no entry of a node is left, its shares of trunks are removed.
  private mutating func handle(_ progress: Suspects.Progress, _ step: inout Step) {
    reaping.append(progress.items, &step)
    guard let other = progress.finished else { return }
    for trunk in calls.limitedTrunks.union(progress.trunks).sorted() { write(.shareGone(trunk, other), &step) }
  }

  mutating func reapStep(_ step: inout Step) {
    guard state == .up || reaping.isEmpty else { return step.timers.schedule(.reap, at: step.now + .seconds(1)) }
    var asked = 0
    while asked < Limits.reapStep, let item = reaping.first {
      let isDue = suspects.isDue(item, authority(step.now), step.now)
      let isClosed = reaping.isClosed(item.entry.line.call)
      if isDue, !isClosed,
        !step.send(.claimReaping(item.entry.line.call, of: item.incarnation, by: incarnation), .reaping(item))
      {
        break
      }
      reaping.removeFirst()
      if isDue { asked += 1 }
      if isDue, isClosed { removeEntry(item, &step) }
      if !isDue || isClosed { done(item, isSkipped: !isDue, &step) }
    }
    reaping.pause(&step)
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
    handle(suspects.done(item, isSkipped: isSkipped, &step), &step)
  }

  private mutating func close(_ item: ReapItem, kind: ClusterStatistics.ReapedKind, _ step: inout Step) {
    let call = item.entry.line.call
    guard !calls.has(call), reaping.close(call, at: step.now) else { return removeEntry(item, &step) }
    // before the 503: the next node may ring the same devices, which must not be busy with this call
    for user in item.entry.users.prefix(Limits.usersPerCall) { step.send(.broadcast(.lost(call, user: user)), .none) }
    if let legs = item.entry.line.legs, !legs.isEmpty { step.actions.append(.close(call, legs)) }
    step.actions.append(.orphan(item.entry, of: item.incarnation))
    step.statistics.reaped[kind, default: 0] += 1
    removeEntry(item, &step)
    let tombstone = RemoteTombstone(users: item.entry.users, CallOver(.gatewayRestart, by: .gateway))
    step.send(.putTombstone(call, tombstone), .none)
  }

  private mutating func removeEntry(_ item: ReapItem, _ step: inout Step) {
    let call = item.entry.line.call
    write(.entryGone(call, item.incarnation), &step)
    for user in item.entry.users.prefix(Limits.usersPerCall) where calls.direction(of: call, for: user) == nil {
      write(.location(user, call), &step)
    }
  }

  // MARK: calls of the previous process

  mutating func inherit(_ entries: [CallEntry], _ before: Incarnation, _ step: inout Step) {
    inherited.add(entries.filter { !reaping.isClosed($0.line.call) }, of: before, &step)
  }

  mutating func inheritStep(_ step: inout Step) {
    for call in inherited.due(by: incarnation, &step) { closeInherited(call, isOurs: true, &step) }
  }

  mutating func inheritClaimed(_ call: CallID, _ result: Result<SharedStoreReply, SharedStoreFailure>, _ step: inout Step) {
    guard case .success(.granted(let isGranted, let holder)) = result else { return inherited.failed(call) }
    closeInherited(call, isOurs: isGranted || holder == incarnation, &step)
  }

  private mutating func closeInherited(_ call: CallID, isOurs: Bool, _ step: inout Step) {
    guard let (own, isLast) = inherited.remove(call) else { return }
    guard isOurs else { return step.actions.append(.reapedBefore(call)) }
    close(ReapItem(entry: own.entry, incarnation: own.incarnation, scan: 0), kind: .inherited, &step)
    guard isLast else { return }
    for trunk in calls.limitedTrunks.sorted() { write(.shareGone(trunk, own.incarnation), &step) }
  }
}
