import CallModel
import TrunklineBytes

/// The nodes without a lease: what is known of them, and when their calls are closed, which needs evidence. `ReapQueue` closes the
/// calls that a scan finds, one by one.
///
/// | state | input | next | gives |
/// |---|---|---|---|
/// | – | `lost` | missing | `Timer.suspect`, when no calm is left |
/// | any | `returned` | – | its timer ends; its scan's items are no longer due |
/// | missing, silent, cutOff | `vanished` with more than half of the nodes | held | – |
/// | held | `liftHold`, when most of them are back | as before | `Timer.suspect` |
/// | held | `liftHold` after `Limits.suspects` | departed | – |
/// | missing, silent, cutOff | `due`, as reaper and up | same | `Action.probe` |
/// | missing, cutOff | `probed` silent | silent | `Timer.suspect` |
/// | missing, silent, cutOff | `probed` answered | cutOff | its scan ends |
/// | missing, silent, cutOff | `probed` refused | dead | `Timer.suspect` |
/// | dead, held | `probed` | same | – |
/// | any | `proveDead` (another incarnation of its name, or an operator) | dead | `Timer.suspect` |
/// | silent for `lostAfter`, dead | `due` | same | its entries are requested, all of them |
/// | silent for `movesRinging` | `due` | same | the same, without connected calls |
/// | any | `due`, not as reaper, after `Limits.suspects` | departed | – |
/// | any, reading | `read` a page | same | items for the queue; the next page, when few of them wait |
/// | silent, dead | `done` with the last item | same | another scan, if it found any; else it is departed, and its trunks are returned |
///
/// A node that is unknown, and a reply or item of an older scan, is ignored in each input. None of them is a decision about a node
/// that has a lease: `returned` precedes.
struct Suspects: Sendable {
  /// What a step of a scan gives.
  struct Progress: Sendable {
    var items: [ReapItem] = []
    /// No entry of this node is left: its shares of trunks are removed.
    var finished: Incarnation?
    /// The trunks of its calls.
    var trunks: Set<String> = []
  }
  /// Whether this node may close calls of others now.
  struct Authority: Sendable {
    var isUp: Bool
    var isReaper: Bool
  }

  private let settings: ClusterMachine.Settings
  private var suspects: [Incarnation: Suspect] = [:]
  /// Dead nodes, and since when they had no lease.
  private var departed = BoundedTable<Incarnation, Instant?>(most: Limits.departed)
  /// Nodes that the reaper reports as dead: shown to people, and not evidence.
  private var reportedDead = BoundedTable<Incarnation, Void>(most: Limits.reapedNodes)
  /// Dead nodes whose calls are all closed, shown to people.
  private var reaped = BoundedTable<Incarnation, NodeLease>(most: Limits.reapedNodes)
  private var probes = TokenBucket(perSecond: Limits.probesPerSecond)
  private var vanishings: [(at: Instant, count: Int)] = []
  /// The number of nodes before so many vanished that they are held.
  private var nodesBeforeHold = 0
  private var lastScan: UInt64 = 0
  /// After a time without shared store or lease this node neither probes nor reaps before this time.
  private var calmUntil = Instant.zero

  init(_ settings: ClusterMachine.Settings) { self.settings = settings }

  // MARK: reading

  subscript(other: Incarnation) -> Suspect? { suspects[other] }
  var count: Int { suspects.count + reaped.count }
  /// They keep their share of limits.
  var heldCount: Int { suspects.values.count { $0.isHeld } }
  /// Suspected, or known to be dead.
  func has(_ other: Incarnation) -> Bool { departed[other] != nil || suspects[other] != nil }
  func isDeparted(_ other: Incarnation) -> Bool { departed[other] != nil }
  func has(name: String) -> Bool { suspects.keys.contains { $0.node == name } }
  func isUnderSuspicion(_ other: Incarnation) -> Bool { suspects[other] != nil }
  /// This node saw the end of its lease, and no fault of the shared store explains it.
  func isGone(_ other: Incarnation) -> Bool { suspects[other].map { !$0.isHeld } ?? false }

  /// It died within `Limits.comingBack`: its devices are reconnecting to other nodes.
  func hasDiedLately(_ other: Incarnation, _ now: Instant) -> Bool {
    guard let since = suspects[other]?.missingSince ?? departed[other] ?? nil else { return false }
    return now - since <= Limits.comingBack
  }

  /// For people: suspects, and dead nodes whose calls are closed. In any order.
  var seen: [SeenNode] {
    suspects.values.map { SeenNode(lease: $0.lease, liveness: liveness(of: $0)) }
      + reaped.keys.filter { suspects[$0] == nil }.compactMap { reaped[$0].map { SeenNode(lease: $0, liveness: .dead) } }
  }

  private func liveness(of suspect: Suspect) -> SeenNode.Liveness {
    !suspect.isHeld && reportedDead[suspect.lease.incarnation] != nil ? .dead : suspect.state
  }

  // MARK: evidence

  mutating func calm(_ step: inout Step) { calmUntil = step.now + settings.calm }

  mutating func lost(_ lease: NodeLease, _ step: inout Step) {
    let other = lease.incarnation
    guard suspects[other] == nil else { return }
    if suspects.count >= Limits.nodes, let oldest = suspects.min(by: { $0.value.missingSince < $1.value.missingSince })?.key {
      drop(oldest, &step)
      step.statistics.forgotten += 1
    }
    suspects[other] = Suspect(lease: lease, now: step.now)
    scheduleAfterCalm(other, &step)
  }

  mutating func returned(_ other: Incarnation, _ step: inout Step) {
    departed.remove(other)
    reportedDead.remove(other)
    if suspects.removeValue(forKey: other) != nil { step.timers.cancel(.suspect(other)) }
  }

  /// No renewal has shown it: it is long dead.
  mutating func departed(_ other: Incarnation, since: Instant? = nil, at now: Instant) {
    departed.set(other, since, until: now + Limits.remembered, at: now)
  }

  mutating func reportedDead(_ other: Incarnation, at now: Instant) {
    reportedDead.set(other, (), until: now + Limits.suspects, at: now)
  }

  /// Marks a suspect as dead. Another incarnation of its name or an operator's command proves that; silence does not.
  mutating func proveDead(_ other: Incarnation, _ step: inout Step) {
    guard let suspect = suspects[other], suspect.verdict != .dead || suspect.isHeld else { return }
    suspects[other]?.verdict = .dead
    suspects[other]?.isHeld = false
    scheduleAfterCalm(other, &step)
  }

  /// Another incarnation of these nodes' names has a lease.
  mutating func proveReplaced(isReplaced: (Incarnation) -> Bool, _ step: inout Step) {
    for other in suspects.keys.filter(isReplaced).sorted() { proveDead(other, &step) }
  }

  /// An incarnation of our own name is over. The leader may never have seen its lease, so this node reaps its calls.
  mutating func declareDead(_ lease: NodeLease, _ step: inout Step) {
    lost(lease, &step)
    suspects[lease.incarnation]?.byOperator = true
    proveDead(lease.incarnation, &step)
  }

  /// An operator states that the node is dead.
  mutating func forget(_ node: String, _ step: inout Step) {
    for other in suspects.keys.filter({ $0.node == node }).sorted() {
      suspects[other]?.byOperator = true
      proveDead(other, &step)
      scheduleAfterCalm(other, &step)
    }
  }

  mutating func probed(_ other: Incarnation, _ result: ProbeResult, _ step: inout Step) {
    guard let suspect = suspects[other], suspect.verdict != .dead, !suspect.isHeld else { return }
    switch result {
    case .refused:
      suspects[other]?.verdict = .dead
      step.timers.schedule(.suspect(other), at: step.now)
    case .answered:
      suspects[other]?.verdict = .cutOff
      suspects[other]?.done = .nothing
      stopReading(other)
      step.timers.schedule(.suspect(other), at: step.now + Limits.cutOffAgain)
    case .silent:
      if suspect.verdict == .cutOff { suspects[other]?.silentSince = step.now }
      suspects[other]?.verdict = .silent
      step.timers.schedule(.suspect(other), at: step.now)
    }
  }

  // MARK: many at once

  /// - Parameter before: the number of nodes before, this one included.
  mutating func vanished(_ count: Int, of before: Int, _ step: inout Step) {
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

  /// If most of the nodes that vanished together are back, the shared store was at fault, and the rest are missing by themselves.
  /// A node that is held for too long is forgotten: its calls are not closed, and it no longer has a share of limits.
  mutating func liftHold(nodes: Int, _ step: inout Step) {
    for (other, suspect) in suspects where suspect.isHeld && step.now - suspect.missingSince >= Limits.suspects {
      depart(other, since: suspect.missingSince, &step)
    }
    guard suspects.values.contains(where: \.isHeld) else { return nodesBeforeHold = 0 }
    guard nodes * 2 > nodesBeforeHold else { return }
    guard !vanishings.contains(where: { step.now - $0.at <= settings.lease }) else { return }
    for other in suspects.keys.filter({ suspects[$0]?.isHeld == true }).sorted() {
      suspects[other]?.isHeld = false
      suspects[other]?.silentSince = step.now
      scheduleAfterCalm(other, &step)
    }
  }

  // MARK: steps of a suspect

  /// This node leads now, or has a lease again. Another leader may have stopped half-way, so all suspects are checked.
  mutating func checkAll(_ step: inout Step) {
    for other in suspects.keys.sorted() { scheduleAfterCalm(other, &step) }
  }

  private func scheduleAfterCalm(_ other: Incarnation, _ step: inout Step) {
    step.timers.schedule(.suspect(other), at: max(step.now, calmUntil))
  }

  private func mayReap(_ suspect: Suspect, _ authority: Authority, _ now: Instant) -> Bool {
    (authority.isReaper || suspect.byOperator) && authority.isUp && now >= calmUntil
  }

  mutating func due(_ other: Incarnation, _ authority: Authority, _ step: inout Step) {
    guard let suspect = suspects[other], !suspect.isHeld else { return }
    guard mayReap(suspect, authority, step.now) else { return remember(suspect, authority, &step) }
    var next: [Instant] = []
    if suspect.verdict == .dead {
      read(other, .all, &step)
    } else {
      next.append(probe(suspect, &step))
      if suspect.verdict == .silent {
        let silence = step.now - suspect.silentSince
        if silence >= settings.lostAfter {
          read(other, .all, &step)
        } else {
          if silence >= settings.movesRinging { read(other, .ringing, &step) }
          next.append(suspect.silentSince + (silence < settings.movesRinging ? settings.movesRinging : settings.lostAfter))
        }
      }
    }
    if let again = suspects[other]?.scanAgain { next.append(again) }
    if let due = next.filter({ $0 > step.now }).min() { step.timers.schedule(.suspect(other), at: due) }
  }

  /// A node that becomes the leader checks all suspects; the others remember a suspect for `Limits.suspects`.
  private mutating func remember(_ suspect: Suspect, _ authority: Authority, _ step: inout Step) {
    let other = suspect.lease.incarnation
    let end = suspect.missingSince + Limits.suspects
    if authority.isUp, step.now < calmUntil {
      step.timers.schedule(.suspect(other), at: calmUntil)
    } else if end > step.now {
      step.timers.schedule(.suspect(other), at: end)
    } else {
      depart(other, since: suspect.missingSince, &step)
    }
  }

  /// - Returns: when the next probe is due.
  private mutating func probe(_ suspect: Suspect, _ step: inout Step) -> Instant {
    let other = suspect.lease.incarnation
    let again = suspect.verdict == .cutOff ? Limits.cutOffAgain : Limits.probeAgain
    if suspect.probedAt.map({ step.now - $0 >= again }) ?? true {
      guard probes.consume(at: step.now) else { return step.now + Limits.probeLater + step.jitter(Limits.probeLater) }
      suspects[other]?.probedAt = step.now
      step.actions.append(.probe(other, sip: suspect.lease.sip))
    }
    return (suspects[other]?.probedAt ?? step.now) + again
  }

  private mutating func drop(_ other: Incarnation, _ step: inout Step) {
    suspects[other] = nil
    step.timers.cancel(.suspect(other))
  }

  private mutating func depart(_ other: Incarnation, since: Instant?, _ step: inout Step) {
    drop(other, &step)
    departed(other, since: since, at: step.now)
  }

  mutating func expire(at now: Instant) { reaped.expire(at: now) }

  // MARK: scans

  /// Begins to read the suspect's entries that are to be closed, unless that is pending or done.
  private mutating func read(_ other: Incarnation, _ due: Suspect.Due, _ step: inout Step) {
    guard let suspect = suspects[other] else { return }
    if let scan = suspect.scan, scan.due.rawValue >= due.rawValue { return }
    if suspect.scan == nil, suspect.done.rawValue >= due.rawValue, suspect.scanAgain.map({ $0 > step.now }) ?? true { return }
    lastScan += 1
    suspects[other]?.scan = Suspect.Scan(number: lastScan, due: due)
    suspects[other]?.scanAgain = nil
    readPage(other, &step)
  }

  private mutating func readPage(_ other: Incarnation, _ step: inout Step) {
    guard let scan = suspects[other]?.scan, !scan.isReading, !scan.isRead else { return }
    if step.send(.entries(of: other, cursor: scan.cursor), .entries(other)) {
      suspects[other]?.scan?.isReading = true
    } else {
      stopReading(other)
      step.timers.schedule(.suspect(other), at: step.now + Limits.probeAgain)
    }
  }

  /// Stops the scan. Its queued items are dropped when the queue reaches them.
  private mutating func stopReading(_ other: Incarnation) { suspects[other]?.scan = nil }

  /// No reply to an earlier request follows.
  mutating func stopReading() { for other in suspects.keys { stopReading(other) } }

  /// - Parameter room: the most items.
  mutating func read(
    _ other: Incarnation, _ result: Result<SharedStoreReply, SharedStoreFailure>, room: Int, _ step: inout Step
  ) -> Progress {
    guard let suspect = suspects[other], let scan = suspect.scan, scan.isReading else { return Progress() }
    suspects[other]?.scan?.isReading = false
    guard case .success(.entries(let entries, let next, let dropped)) = result else {
      stopReading(other)
      step.timers.schedule(.suspect(other), at: step.now + Limits.probeAgain)
      return Progress()
    }
    step.statistics.valuesDropped += UInt64(max(0, dropped))
    var items: [ReapItem] = []
    for entry in entries.prefix(Limits.entriesPerRead) where scan.due == .all || entry.line.connect == nil {
      guard items.count < room else { break }
      items.append(ReapItem(entry: entry, incarnation: other, scan: scan.number))
      if suspect.trunks.count < Limits.singleTasks { suspects[other]?.trunks.insert(entry.line.trunk) }
    }
    suspects[other]?.scan?.found += items.count
    suspects[other]?.scan?.waiting += items.count
    suspects[other]?.scan?.cursor = next
    if next == 0 { suspects[other]?.scan?.isRead = true }
    var progress = resumeScan(other, &step)
    progress.items = items
    return progress
  }

  /// Whether the item's call may be closed now.
  func isDue(_ item: ReapItem, _ authority: Authority, _ now: Instant) -> Bool {
    guard let suspect = suspects[item.incarnation], !suspect.isHeld, suspect.scan?.number == item.scan,
      mayReap(suspect, authority, now)
    else { return false }
    return suspect.verdict == .dead || suspect.verdict == .silent
  }

  /// - Parameter isSkipped: this node does not close the call.
  mutating func done(_ item: ReapItem, isSkipped: Bool, _ step: inout Step) -> Progress {
    guard suspects[item.incarnation]?.scan?.number == item.scan else { return Progress() }
    suspects[item.incarnation]?.scan?.waiting -= 1
    if isSkipped { suspects[item.incarnation]?.scan?.skipped += 1 }
    return resumeScan(item.incarnation, &step)
  }

  /// Reads the next page when few items of the last one wait; ends the scan when none waits.
  private mutating func resumeScan(_ other: Incarnation, _ step: inout Step) -> Progress {
    guard let scan = suspects[other]?.scan else { return Progress() }
    if !scan.isRead, scan.waiting < Limits.reapStep { readPage(other, &step) }
    guard scan.isRead, scan.waiting == 0 else { return Progress() }
    suspects[other]?.scan = nil
    suspects[other]?.done = scan.due
    if scan.found > 0 {
      // Scans again until no entry is found: soon for failed claims, and after `Limits.reapClaim` for calls that others have
      // claimed.
      let pause = scan.skipped > 0 ? Limits.reapClaim : .seconds(1)
      suspects[other]?.scanAgain = step.now + pause
      step.timers.schedule(.suspect(other), notLaterThan: step.now + pause)
      return Progress()
    }
    return scan.due == .all ? finish(other, &step) : Progress()
  }

  /// No entry of the node is left.
  private mutating func finish(_ other: Incarnation, _ step: inout Step) -> Progress {
    guard let suspect = suspects[other] else { return Progress() }
    // an incarnation that only the journal knows has no address, and no node has seen it
    if !suspect.lease.sip.isEmpty {
      reaped.set(other, suspect.lease, until: step.now + Limits.suspects, at: step.now)
      step.send(.broadcast(.dead(other)), .none)
    }
    depart(other, since: suspect.missingSince, &step)
    return Progress(finished: other, trunks: suspect.trunks)
  }
}
