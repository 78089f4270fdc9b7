import CallModel
import TrunklineBytes

// What a renewal of our lease shows, passed to the parts: who has a lease, who has lost it, and whether we have ours.

extension ClusterMachine {
  /// Whether a hint of this incarnation counts: only of `ours` and `living`.
  enum Liveness { case ours, living(NodeLease), dead, unknown }

  func liveness(_ other: Incarnation, _ now: Instant) -> Liveness {
    if other == incarnation { return .ours }
    guard lease.isViewFresh(at: now) else { return .unknown }
    if let lease = peers[other] { return .living(lease) }
    return suspects.has(other) || other.node == incarnation.node ? .dead : .unknown
  }

  func isDead(_ other: Incarnation, _ now: Instant) -> Bool {
    if case .dead = liveness(other, now) { return true }
    return false
  }

  /// Nodes that count for shares: those with a lease, and those that are held.
  var knownNodes: Int { peers.count + 1 + suspects.heldCount }

  /// Computes the state from connection and lease, and performs the effects of a change.
  mutating func updateState(_ step: inout Step) {
    switch lease.update(&step) {
    case .began:
      suspects.calm(&step)
      tasks.leaseBegan(&step)
      suspects.checkAll(&step)
    case .ended:
      unconfirmedEnds.leaseEnded(&step)
      peers.reportNoTroubles(&step)
      tasks.leaseEnded(&step)
    case nil: break
    }
  }

  // MARK: renewing

  mutating func renewalDue(_ step: inout Step) {
    while let id = step.requests.popOverdue(at: step.now) { replied(id, .failure(.timeout), &step) }
    renew(&step)
  }

  mutating func renew(_ step: inout Step) { lease.renew(isReaper: tasks.leads(.reaper), &step) }

  mutating func renewed(_ all: [NodeLease], sent: Instant, _ step: inout Step) {
    let own = lease.published
    let leases = all.prefix(Limits.nodes).filter { own.understands($0) }
    if let other = all.prefix(Limits.nodes).first(where: { !own.understands($0) }) {
      if !lease.hasHadOne { return lease.refuse(other, &step) }
      // the other node does not start, or started while neither saw the other
      step.statistics.valuesDropped += UInt64(min(all.count, Limits.nodes) - leases.count)
    }
    let isOurs = leases.contains { $0.incarnation == incarnation }
    if let other = leases.first(where: { $0.incarnation.node == incarnation.node && $0.incarnation != incarnation }) {
      if !isOurs { handle(lease.nameIsInUse(by: other, &step), by: other, &step) }
    } else {
      lease.nameIsFree()
    }
    see(leases.filter { $0.incarnation.node != incarnation.node }, askedAt: sent, &step)
    if isOurs { granted(sent: sent, &step) }
    updateState(&step)
    if state == .up { peers.reportTroubles(&step) }
    deliverEarly(&step)
    leasesRead(&step)
  }

  private mutating func granted(sent: Instant, _ step: inout Step) {
    let hadNone = lease.granted(sent: sent, &step)
    if hadNone { regained(&step) }
    // not if the lease has expired by now: the reply waited while this process was suspended
    if hadNone || unconfirmedEnds.isOpen, lease.isValid(at: step.now) {
      write(unconfirmedEnds.leaseIsBack(hadNone: hadNone, hasStoredCalls: calls.hasStored, &step), &step)
    }
    writes.leaseRenewed(isReviewing: review.position != nil, &step)
  }

  /// Called when this node gets a lease, for the first time or again.
  private mutating func regained(_ step: inout Step) {
    if let before = settings.predecessor, !suspects.isDeparted(before) {
      suspects.declareDead(NodeLease(before, url: "", sip: "", version: ""), &step)
    }
    step.timers.schedule(.renewal, at: step.now + settings.renewal)
    // Other nodes may have removed the locations of calls that had no entry; they are written again.
    review.beginUnstarted()
  }

  /// Applies the leases that are valid now: which nodes have appeared, which have vanished, and how many at once.
  private mutating func see(_ leases: [NodeLease], askedAt sent: Instant, _ step: inout Step) {
    let before = peers.count + 1
    let change = peers.see(leases, askedAt: sent)
    for lease in leases { suspects.returned(lease.incarnation, &step) }
    for other in change.departed { suspects.departed(other, at: step.now) }
    for lease in change.lost { suspects.lost(lease, &step) }
    suspects.vanished(change.lost.count, of: before, &step)
    // A new incarnation of a name proves that the one before is dead.
    suspects.proveReplaced(isReplaced: peers.isReplaced, &step)
    suspects.liftHold(nodes: peers.count + 1, &step)
    peers.reportNodes(held: suspects.heldCount, &step)
    compareStaleGrants()
    suspects.expire(at: step.now)
    if lease.hasHadOne { writes.setRate(nodes: knownNodes) }
    tasks.holdersMayBeGone(isFit: peers.isFit, &step)
  }

  // MARK: names

  private mutating func handle(_ outcome: OwnLease.NameOutcome, by other: NodeLease, _ step: inout Step) {
    switch outcome {
    case .waiting: break
    case .isOver:
      lease.nameIsFree()
      suspects.declareDead(other, &step)
      step.send(.endLease(other.incarnation), .none)
      renew(&step)
    case .lost:
      reapedByOthers((calls.ids + unconfirmedEnds.calls).sorted { EntryKey($0) < EntryKey($1) }, &step)
      step.actions.append(.nameInUse(by: other, atStart: false))
    }
  }

  mutating func probed(_ other: Incarnation, _ result: ProbeResult, _ step: inout Step) {
    guard let namesake = lease.namesake, namesake.incarnation == other else { return suspects.probed(other, result, &step) }
    handle(lease.probed(result, &step), by: namesake, &step)
  }

  mutating func forget(_ node: String, _ step: inout Step) {
    let isLiving = node == incarnation.node || peers.has(name: node)
    let isKnown = !isLiving && suspects.has(name: node)
    step.actions.append(.forgotten(node: node, isLiving ? .living : isKnown ? .dead : .unknown))
    if !isLiving { suspects.forget(node, &step) }
  }

  // MARK: tasks

  mutating func trunks(single: [String], limited: [String], _ step: inout Step) {
    calls.limit(Set(limited.prefix(Limits.singleTasks)))
    tasks.set(single, isUp: state == .up, &step)
  }

  mutating func taskDue(_ task: SingleTask, _ step: inout Step) {
    guard state == .up, lease.mayLead else { return }  // `updateState` continues
    tasks.due(task, isHolderGone: tasks.holder(of: task).map { suspects.isGone($0) } ?? false, &step)
  }

  mutating func leadAnswered(
    _ task: SingleTask, _ result: Result<SharedStoreReply, SharedStoreFailure>, sent: Instant, _ step: inout Step
  ) {
    guard case .success(.granted(let isGranted, let holder)) = result else { return tasks.failed(task) }
    let isNewReaper = tasks.answered(
      task, isGranted: isGranted, holder: holder, sent: sent, mayLead: lease.mayLead,
      isHolderFit: holder.map { peers.isFit($0) } ?? false, &step)
    if isNewReaper { suspects.checkAll(&step) }
  }

  // MARK: the end of this node

  mutating func drain(_ step: inout Step) {
    if lease.drain(&step) { tasks.resignAll(&step) }
  }

  mutating func stop(_ step: inout Step) {
    guard !lease.isStopping else { return }
    write(unconfirmedEnds.stop(&step), &step)
    tasks.resignAll(&step)
    lease.stop(&step)
  }
}
