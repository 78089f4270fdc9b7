import Bytes
import CallFlow

// Our lease, and whose leases live.

extension ClusterMachine {
  /// Whether a hint of this incarnation counts.
  enum Standing { case ours, living(NodeLease), dead, unknown }

  func standing(_ other: Incarnation, _ now: Instant) -> Standing {
    if other == incarnation { return .ours }
    guard isViewFresh(now) else { return .unknown }
    if let lease = peers[other] { return .living(lease) }
    return departed[other] != nil || suspects[other] != nil || other.node == incarnation.node ? .dead : .unknown
  }

  /// Its devices are on their way to other nodes.
  func hasDiedLately(_ other: Incarnation, _ now: Instant) -> Bool {
    guard let since = suspects[other]?.missingSince ?? departed[other] ?? nil else { return false }
    return now - since <= Limits.comingBack
  }

  func isViewFresh(_ now: Instant) -> Bool { lastGranted.map { $0 + settings.lease > now } ?? false }

  /// The state as it follows from connection and lease, and what a change of it brings.
  mutating func updateState(_ turn: inout Turn) {
    let isLeased = leasedUntil.map { $0 > turn.now } ?? false
    let next: EngineState = !isConnected ? .away : isLeased ? .up : .isolated
    guard next != state else { return }
    let before = state
    state = next
    turn.actions.append(.state(next))
    if next == .up {
      calmUntil = turn.now + settings.calm
      for task in sortedTasks { timers.schedule(.task(task), at: turn.now + jitter(Limits.followerSoon)) }
      for suspect in suspects.keys.sorted() { timers.schedule(.suspect(suspect), at: calmUntil) }
    } else if before == .up {
      doubt = .open
      ownReading = nil
      timers.cancel(.ownEntries)
      tell(troubles: [:], &turn)
      // Others may depose a reaper without a lease at once.
      stopLeading(.reaper, &turn)
      for task in tasks.keys where tasks[task]?.until == nil { timers.cancel(.task(task)) }
    }
  }

  // MARK: renewing

  mutating func renewalDue(_ turn: inout Turn) {
    sweepRequests(&turn)
    renew(&turn)
  }

  mutating func renew(_ turn: inout Turn) {
    guard isConnected, !isStopping, !isTaken else { return timers.cancel(.renewal) }
    renewalSent = turn.now
    send(.renew(lease, for: settings.lease), .renewal, &turn)
    let isWaiting = conflict != nil || leasedUntil == nil
    // The reaper looks twice as often: a death is seen a second earlier.
    let pause = tasks[.reaper]?.until != nil ? settings.renewal / 2 : settings.renewal
    timers.schedule(.renewal, at: turn.now + (isWaiting ? min(pause, .milliseconds(500)) : pause))
  }

  /// What others should know now and not in 2 s, and incarnations that we do not know; not more than five a second.
  mutating func renewSoon(_ turn: inout Turn) {
    guard isConnected else { return }
    let due = max(turn.now, (renewalSent ?? turn.now - .seconds(1)) + .milliseconds(200))
    timers.schedule(.renewal, notLaterThan: due)
  }

  mutating func renewed(_ leases: [NodeLease], sent: Instant, _ turn: inout Turn) {
    let understood = leases.prefix(Limits.nodes).filter { lease.understands($0) }
    if let other = leases.prefix(Limits.nodes).first(where: { !lease.understands($0) }) {
      if lastGranted == nil { return refuseToShare(with: other, &turn) }
      // it does not start, or did so while neither saw the other
      statistics.valuesDropped += UInt64(min(leases.count, Limits.nodes) - understood.count)
    }
    let leases = understood
    let isOurs = leases.contains { $0.incarnation == incarnation }
    if let other = leases.first(where: { $0.incarnation.node == incarnation.node && $0.incarnation != incarnation }) {
      if !isOurs { nameIsTaken(by: other, &turn) }
    } else {
      conflict = nil
    }
    see(leases.filter { $0.incarnation.node != incarnation.node }, askedAt: sent, &turn)
    if isOurs {
      let hadNone = !(leasedUntil.map { $0 > turn.now } ?? false)
      if leasedUntil == nil || sent + settings.lease > leasedUntil! { leasedUntil = sent + settings.lease }
      lastGranted = max(lastGranted ?? sent, sent)
      timers.schedule(.leaseEnd, at: leasedUntil)
      if hadNone { regained(&turn) }
      if hadNone || doubt == .open { leaseIsBack(hadNone: hadNone, &turn) }
      startRestoring(&turn)
    }
    updateState(&turn)
    if state == .up { hearTroubles(&turn) }
    deliverEarly(&turn)
    leasesRead(&turn)
  }

  /// We have a lease, for the first time or again.
  private mutating func regained(_ turn: inout Turn) {
    if let before = settings.predecessor, lastGranted == nil || departed[before] == nil {
      declareDead(NodeLease(before, url: "", sip: "", version: ""), &turn)
    }
    timers.schedule(.renewal, at: turn.now + settings.renewal)
    // For these no entry spoke: whoever read their places meanwhile has taken them off.
    for (id, call) in calls.sorted(by: { "\($0.key)" < "\($1.key)" }) where call.entry == nil {
      for user in call.users { markUnwritten(.place(user, id), &turn) }
    }
  }

  /// Which leases live now: who has come, who is gone, and how many at once.
  private mutating func see(_ leases: [NodeLease], askedAt sent: Instant, _ turn: inout Turn) {
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
      departed.set(other, nil, until: turn.now + Limits.remembered, at: turn.now)
    }
    for lease in lost { suspect(lease, &turn) }
    holdIfMany(gone.count, before: before, &turn)
    // A new life of a name is proof that the one before is over.
    let replaced = suspects.keys.filter { other in peerOfName[other.node].map { $0 != other } ?? false }
    for other in replaced.sorted() { proveDead(other, &turn) }
    liftHold(&turn)
    countNodes(&turn)
    reaped.expire(at: turn.now)
    if lastGranted != nil { shareWrites() }
    for task in sortedTasks where tasks[task]?.until == nil {
      guard let holder = tasks[task]?.holder, holder != incarnation else { continue }
      if peers[holder].map(\.isDraining) ?? true {
        let soon = task == .reaper ? Limits.followerSoon / 5 : Limits.followerSoon
        timers.schedule(.task(task), notLaterThan: turn.now + jitter(soon))
      }
    }
  }

  private mutating func shareWrites() {
    func share(_ all: Int) -> Int { max(1, min(Limits.writesPerSecond, all / max(1, knownNodes))) }
    let rate = share(Limits.clusterWritesPerSecond)
    writes.setRate(rate, burst: share(Limits.clusterWriteBurst))
    restores.setRate(min(Limits.restoresPerSecond, rate))
  }

  /// Nodes that count for shares: those with a lease, and those that were cut off with everybody else.
  var knownNodes: Int { peers.count + 1 + suspects.values.count { $0.isHeld } }

  private mutating func holdIfMany(_ count: Int, before: Int, _ turn: inout Turn) {
    vanishings.removeAll { turn.now - $0.at > settings.lease }
    guard count > 0 else { return }
    vanishings.append((turn.now, count))
    let gone = vanishings.reduce(0) { $0 + $1.count }
    guard gone * 2 > before - count + gone else { return }
    nodesBeforeHold = max(nodesBeforeHold, before - count + gone)
    for other in suspects.keys where turn.now - (suspects[other]?.missingSince ?? turn.now) <= settings.lease {
      if suspects[other]?.verdict != .dead { suspects[other]?.isHeld = true }
    }
  }

  // MARK: names

  private mutating func nameIsTaken(by other: NodeLease, _ turn: inout Turn) {
    guard !isTaken else { return }
    // An older life whose lease a failover has brought back: nobody renews it.
    let isGhost = lastGranted != nil && other.incarnation.started < incarnation.started
    if other.incarnation == settings.predecessor || isGhost { return takeOver(other, &turn) }
    leasedUntil = nil
    if lastGranted != nil {
      isTaken = true
      reapedByOthers((Array(calls.keys) + doubtful.keys).sorted { "\($0)" < "\($1)" }, &turn)
      turn.actions.append(.taken(by: other, atStart: false))
      return
    }
    if conflict?.lease.incarnation != other.incarnation { conflict = (other, turn.now, false) }
    guard let since = conflict?.since, turn.now - since < Limits.nameWait else { return giveUpName(to: other, &turn) }
    // At our own address our own user agent would answer.
    if conflict?.isProbing == false, other.sip != lease.sip {
      conflict?.isProbing = true
      turn.actions.append(.probe(other.incarnation, sip: other.sip))
    }
  }

  /// True: the answer was about who has our name.
  mutating func probedOfName(_ other: Incarnation, _ result: ProbeResult, _ turn: inout Turn) -> Bool {
    guard let lease = conflict?.lease, lease.incarnation == other else { return false }
    conflict?.isProbing = false
    switch result {
    case .answered: giveUpName(to: lease, &turn)
    case .refused: takeOver(lease, &turn)
    case .silent: break
    }
    return true
  }

  private mutating func takeOver(_ other: NodeLease, _ turn: inout Turn) {
    conflict = nil
    declareDead(other, &turn)
    send(.endLease(other.incarnation), .none, &turn)
    renew(&turn)
  }

  private mutating func giveUpName(to other: NodeLease, _ turn: inout Turn) {
    guard !isTaken else { return }
    isTaken = true
    turn.actions.append(.taken(by: other, atStart: true))
  }

  /// Of two versions that do not share a format the one that starts gives way. The lease that it has got by asking goes back.
  private mutating func refuseToShare(with other: NodeLease, _ turn: inout Turn) {
    guard !isTaken else { return }
    send(.endLease(incarnation), .none, &turn)
    isTaken = true
    turn.actions.append(.incompatible(with: other))
  }

  // MARK: what we say of ourselves

  mutating func load(_ calls: Int, _ sessions: Int, _ refuses: Bool, _ turn: inout Turn) {
    let isNews = refuses != lease.refuses
    (lease.calls, lease.sessions, lease.refuses) = (calls, sessions, refuses)
    if isNews { renewSoon(&turn) }
  }

  mutating func say(_ troubles: [String: String], _ turn: inout Turn) {
    let first = troubles.sorted { $0.key < $1.key }.prefix(Limits.troubles)
    let kept = Dictionary(first.map { ($0.key, $0.value) }, uniquingKeysWith: { a, _ in a })
    guard kept != lease.troubles else { return }
    lease.troubles = kept
    renewSoon(&turn)
  }

  /// Of two nodes that speak of one trunk the one that sees trouble is heard: the other has led before, or is to lead.
  private mutating func hearTroubles(_ turn: inout Turn) {
    var heard: [String: String] = [:]
    for lease in peers.values.filter({ !$0.troubles.isEmpty }).sorted(by: { $0.incarnation < $1.incarnation }) {
      heard.merge(lease.troubles.prefix(Limits.troubles).map { ($0.key, $0.value) }) { first, _ in first }
    }
    tell(troubles: heard, &turn)
  }

  private mutating func tell(troubles heard: [String: String], _ turn: inout Turn) {
    guard heard != troubles else { return }
    troubles = heard
    turn.actions.append(.troubles(heard))
  }

  private mutating func countNodes(_ turn: inout Turn) {
    let count = max(1, knownNodes - peers.values.count(where: \.isDraining))
    guard count != nodeCount else { return }
    nodeCount = count
    turn.actions.append(.nodes(count))
  }

  mutating func drain(_ turn: inout Turn) {
    guard !lease.isDraining else { return }
    lease.isDraining = true
    renewSoon(&turn)
    resignAll(&turn)
  }

  mutating func stop(_ turn: inout Turn) {
    guard !isStopping else { return }
    endDoubt(&turn)
    resignAll(&turn)
    send(.endLease(incarnation), .none, &turn)
    isStopping = true
    leasedUntil = nil
    timers.cancel(.renewal)
  }
}
