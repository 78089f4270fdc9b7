import CallFlow
import TrunklineBytes

// Our lease, and the leases of the other nodes.

extension ClusterMachine {
  /// Whether a hint of this incarnation counts: only of `ours` and `living`.
  enum Liveness { case ours, living(NodeLease), dead, unknown }

  func liveness(_ other: Incarnation, _ now: Instant) -> Liveness {
    if other == incarnation { return .ours }
    guard isViewFresh(now) else { return .unknown }
    if let lease = peers[other] { return .living(lease) }
    return departed[other] != nil || suspects[other] != nil || other.node == incarnation.node ? .dead : .unknown
  }

  /// The node died within `Limits.comingBack`: its devices are reconnecting to other nodes.
  func hasDiedLately(_ other: Incarnation, _ now: Instant) -> Bool {
    guard let since = suspects[other]?.missingSince ?? departed[other] ?? nil else { return false }
    return now - since <= Limits.comingBack
  }

  func isViewFresh(_ now: Instant) -> Bool { lastGranted.map { $0 + settings.lease > now } ?? false }

  /// Computes the state from connection and lease, and performs the effects of a change.
  mutating func updateState(_ step: inout Step) {
    let isLeased = leasedUntil.map { $0 > step.now } ?? false
    let next: SharedStoreState = !isConnected ? .away : isLeased ? .up : .isolated
    guard next != state else { return }
    let before = state
    state = next
    step.actions.append(.state(next))
    if next == .up {
      calmUntil = step.now + settings.calm
      for task in sortedTasks { timers.schedule(.task(task), at: step.now + jitter(Limits.followerSoon)) }
      for suspect in suspects.keys.sorted() { timers.schedule(.suspect(suspect), at: calmUntil) }
    } else if before == .up {
      confirmation = .open
      ownReading = nil
      timers.cancel(.ownEntries)
      send(troubles: [:], &step)
      // Other nodes may depose a reaper without a lease at once.
      stopLeading(.reaper, &step)
      for task in tasks.keys where tasks[task]?.until == nil { timers.cancel(.task(task)) }
    }
  }

  // MARK: renewing

  mutating func renewalDue(_ step: inout Step) {
    sweepRequests(&step)
    renew(&step)
  }

  mutating func renew(_ step: inout Step) {
    guard isConnected, !isStopping, !isNameInUse else { return timers.cancel(.renewal) }
    renewalSent = step.now
    send(.renew(lease, for: settings.lease), .renewal, &step)
    let isWaiting = conflict != nil || leasedUntil == nil
    // The reaper renews twice as often, so that it notices a death a second earlier.
    let pause = tasks[.reaper]?.until != nil ? settings.renewal / 2 : settings.renewal
    timers.schedule(.renewal, at: step.now + (isWaiting ? min(pause, .milliseconds(500)) : pause))
  }

  /// Renews early, for changes that other nodes should see within less than 2 s and for unknown incarnations; at most five times
  /// a second.
  mutating func renewSoon(_ step: inout Step) {
    guard isConnected else { return }
    let due = max(step.now, (renewalSent ?? step.now - .seconds(1)) + .milliseconds(200))
    timers.schedule(.renewal, notLaterThan: due)
  }

  mutating func renewed(_ leases: [NodeLease], sent: Instant, _ step: inout Step) {
    let understood = leases.prefix(Limits.nodes).filter { lease.understands($0) }
    if let other = leases.prefix(Limits.nodes).first(where: { !lease.understands($0) }) {
      if lastGranted == nil { return refuseToShare(with: other, &step) }
      // the other node does not start, or started while neither saw the other
      statistics.valuesDropped += UInt64(min(leases.count, Limits.nodes) - understood.count)
    }
    let leases = understood
    let isOurs = leases.contains { $0.incarnation == incarnation }
    if let other = leases.first(where: { $0.incarnation.node == incarnation.node && $0.incarnation != incarnation }) {
      if !isOurs { nameIsInUse(by: other, &step) }
    } else {
      conflict = nil
    }
    see(leases.filter { $0.incarnation.node != incarnation.node }, askedAt: sent, &step)
    if isOurs {
      let hadNone = !(leasedUntil.map { $0 > step.now } ?? false)
      if leasedUntil == nil || sent + settings.lease > leasedUntil! { leasedUntil = sent + settings.lease }
      lastGranted = max(lastGranted ?? sent, sent)
      timers.schedule(.leaseEnd, at: leasedUntil)
      if hadNone { regained(&step) }
      if hadNone || confirmation == .open { leaseIsBack(hadNone: hadNone, &step) }
      startRestoring(&step)
    }
    updateState(&step)
    if state == .up { readTroubles(&step) }
    deliverEarly(&step)
    leasesRead(&step)
  }

  /// Called when this node gets a lease, for the first time or again.
  private mutating func regained(_ step: inout Step) {
    if let before = settings.predecessor, lastGranted == nil || departed[before] == nil {
      declareDead(NodeLease(before, url: "", sip: "", version: ""), &step)
    }
    timers.schedule(.renewal, at: step.now + settings.renewal)
    // Other nodes may have removed the locations of these calls, which had no entry; write them again.
    for (id, call) in calls.sorted(by: { "\($0.key)" < "\($1.key)" }) where call.entry == nil {
      for user in call.users { markUnwritten(.location(user, id), &step) }
    }
  }

  /// Applies the leases that are valid now: which nodes have appeared, which have vanished, and how many at once.
  private mutating func see(_ leases: [NodeLease], askedAt sent: Instant, _ step: inout Step) {
    var next: [Incarnation: NodeLease] = [:]
    for lease in leases { next[lease.incarnation] = lease }
    let gone = peers.keys.filter { next[$0] == nil }.sorted()
    let lost = gone.compactMap { peers[$0] }
    let before = peers.count + 1
    peers = next
    peerOfName = Dictionary(leases.map { ($0.incarnation.node, $0.incarnation) }, uniquingKeysWith: { a, _ in a })
    for lease in leases {
      departed.remove(lease.incarnation)
      reportedDead.remove(lease.incarnation)
      unknown[lease.incarnation] = nil
      if suspects.removeValue(forKey: lease.incarnation) != nil { timers.cancel(.suspect(lease.incarnation)) }
    }
    for (other, asked) in unknown where asked <= sent {
      unknown[other] = nil
      departed.set(other, nil, until: step.now + Limits.remembered, at: step.now)
    }
    for lease in lost { suspect(lease, &step) }
    holdIfMany(gone.count, before: before, &step)
    // A new incarnation of a name proves that the one before is dead.
    let replaced = suspects.keys.filter { other in peerOfName[other.node].map { $0 != other } ?? false }
    for other in replaced.sorted() { proveDead(other, &step) }
    liftHold(&step)
    countNodes(&step)
    reaped.expire(at: step.now)
    if lastGranted != nil { shareWrites() }
    for task in sortedTasks where tasks[task]?.until == nil {
      guard let holder = tasks[task]?.holder, holder != incarnation else { continue }
      if peers[holder].map(\.isDraining) ?? true {
        let soon = task == .reaper ? Limits.followerSoon / 5 : Limits.followerSoon
        timers.schedule(.task(task), notLaterThan: step.now + jitter(soon))
      }
    }
  }

  private mutating func shareWrites() {
    func share(_ all: Int) -> Int { max(1, min(Limits.writesPerSecond, all / max(1, knownNodes))) }
    let rate = share(Limits.clusterWritesPerSecond)
    writes.setRate(rate, burst: share(Limits.clusterWriteBurst))
    restores.setRate(min(Limits.restoresPerSecond, rate))
  }

  /// Nodes that count for shares: those with a lease, and those that are held.
  var knownNodes: Int { peers.count + 1 + suspects.values.count { $0.isHeld } }

  private mutating func holdIfMany(_ count: Int, before: Int, _ step: inout Step) {
    vanishings.removeAll { step.now - $0.at > settings.lease }
    guard count > 0 else { return }
    vanishings.append((step.now, count))
    let gone = vanishings.reduce(0) { $0 + $1.count }
    guard gone * 2 > before - count + gone else { return }
    nodesBeforeHold = max(nodesBeforeHold, before - count + gone)
    for other in suspects.keys where step.now - (suspects[other]?.missingSince ?? step.now) <= settings.lease {
      if suspects[other]?.verdict != .dead { suspects[other]?.isHeld = true }
    }
  }

  // MARK: names

  private mutating func nameIsInUse(by other: NodeLease, _ step: inout Step) {
    guard !isNameInUse else { return }
    // A failover has restored the lease of an older incarnation, which no process renews.
    let isGhost = lastGranted != nil && other.incarnation.started < incarnation.started
    if other.incarnation == settings.predecessor || isGhost { return reap(other, &step) }
    leasedUntil = nil
    if lastGranted != nil {
      isNameInUse = true
      reapedByOthers((Array(calls.keys) + unconfirmedEnds.keys).sorted { "\($0)" < "\($1)" }, &step)
      step.actions.append(.nameInUse(by: other, atStart: false))
      return
    }
    if conflict?.lease.incarnation != other.incarnation { conflict = (other, step.now, false) }
    guard let since = conflict?.since, step.now - since < Limits.nameWait else { return giveUpName(to: other, &step) }
    // At our own address our own user agent would answer.
    if conflict?.isProbing == false, other.sip != lease.sip {
      conflict?.isProbing = true
      step.actions.append(.probe(other.incarnation, sip: other.sip))
    }
  }

  /// True: the answer concerned the node that has our name.
  mutating func probedOfName(_ other: Incarnation, _ result: ProbeResult, _ step: inout Step) -> Bool {
    guard let lease = conflict?.lease, lease.incarnation == other else { return false }
    conflict?.isProbing = false
    switch result {
    case .answered: giveUpName(to: lease, &step)
    case .refused: reap(lease, &step)
    case .silent: break
    }
    return true
  }

  private mutating func reap(_ other: NodeLease, _ step: inout Step) {
    conflict = nil
    declareDead(other, &step)
    send(.endLease(other.incarnation), .none, &step)
    renew(&step)
  }

  private mutating func giveUpName(to other: NodeLease, _ step: inout Step) {
    guard !isNameInUse else { return }
    isNameInUse = true
    step.actions.append(.nameInUse(by: other, atStart: true))
  }

  /// If two versions do not share a format, the node that starts yields. It ends the lease that its renewal has set.
  private mutating func refuseToShare(with other: NodeLease, _ step: inout Step) {
    guard !isNameInUse else { return }
    send(.endLease(incarnation), .none, &step)
    isNameInUse = true
    step.actions.append(.incompatible(with: other))
  }

  // MARK: the contents of our lease

  mutating func load(_ calls: Int, _ sessions: Int, _ refuses: Bool, _ step: inout Step) {
    let isNews = refuses != lease.refuses
    (lease.calls, lease.sessions, lease.refuses) = (calls, sessions, refuses)
    if isNews { renewSoon(&step) }
  }

  mutating func say(_ troubles: [String: String], _ step: inout Step) {
    let first = troubles.sorted { $0.key < $1.key }.prefix(Limits.troubles)
    let kept = Dictionary(first.map { ($0.key, $0.value) }, uniquingKeysWith: { a, _ in a })
    guard kept != lease.troubles else { return }
    lease.troubles = kept
    renewSoon(&step)
  }

  /// If two nodes report a trunk, the one that reports a trouble wins: the other led it before, or is about to.
  private mutating func readTroubles(_ step: inout Step) {
    var received: [String: String] = [:]
    for lease in peers.values.filter({ !$0.troubles.isEmpty }).sorted(by: { $0.incarnation < $1.incarnation }) {
      received.merge(lease.troubles.prefix(Limits.troubles).map { ($0.key, $0.value) }) { first, _ in first }
    }
    send(troubles: received, &step)
  }

  private mutating func send(troubles received: [String: String], _ step: inout Step) {
    guard received != troubles else { return }
    troubles = received
    step.actions.append(.troubles(received))
  }

  private mutating func countNodes(_ step: inout Step) {
    let count = max(1, knownNodes - peers.values.count(where: \.isDraining))
    guard count != nodeCount else { return }
    nodeCount = count
    step.actions.append(.nodes(count))
  }

  mutating func drain(_ step: inout Step) {
    guard !lease.isDraining else { return }
    lease.isDraining = true
    renewSoon(&step)
    resignAll(&step)
  }

  mutating func stop(_ step: inout Step) {
    guard !isStopping else { return }
    endConfirmation(&step)
    resignAll(&step)
    send(.endLease(incarnation), .none, &step)
    isStopping = true
    leasedUntil = nil
    timers.cancel(.renewal)
  }
}
