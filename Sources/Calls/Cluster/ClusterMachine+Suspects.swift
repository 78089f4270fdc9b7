import CallFlow
import TrunklineBytes

// Nodes without a lease: what is known of them, and when their calls are closed, which needs evidence.

extension ClusterMachine {
  // MARK: evidence

  mutating func suspect(_ lease: NodeLease, _ step: inout Step) {
    let other = lease.incarnation
    guard suspects[other] == nil else { return }
    if suspects.count >= Limits.nodes, let oldest = suspects.min(by: { $0.value.missingSince < $1.value.missingSince })?.key {
      drop(oldest)
      statistics.forgotten += 1
    }
    suspects[other] = Suspect(lease: lease, now: step.now)
    timers.schedule(.suspect(other), at: max(step.now, calmUntil))
  }

  /// Marks a suspect as dead. Another incarnation of its name or an operator's command proves that; silence does not.
  mutating func proveDead(_ other: Incarnation, _ step: inout Step) {
    guard let suspect = suspects[other], suspect.verdict != .dead || suspect.isHeld else { return }
    suspects[other]?.verdict = .dead
    suspects[other]?.isHeld = false
    timers.schedule(.suspect(other), at: max(step.now, calmUntil))
  }

  /// An incarnation of our own name is over. The leader may never have seen its lease, so this node reaps its calls.
  mutating func declareDead(_ lease: NodeLease, _ step: inout Step) {
    suspect(lease, &step)
    suspects[lease.incarnation]?.byOperator = true
    proveDead(lease.incarnation, &step)
  }

  mutating func forget(_ node: String, _ step: inout Step) {
    let isLiving = node == incarnation.node || peerOfName[node] != nil
    let dead = suspects.keys.filter { $0.node == node }.sorted()
    step.actions.append(.forgotten(node: node, isLiving ? .living : dead.isEmpty ? .unknown : .dead))
    guard !isLiving else { return }
    for other in dead {
      suspects[other]?.byOperator = true
      proveDead(other, &step)
      timers.schedule(.suspect(other), at: max(step.now, calmUntil))
    }
  }

  mutating func probed(_ other: Incarnation, _ result: ProbeResult, _ step: inout Step) {
    if probedOfName(other, result, &step) { return }
    guard let suspect = suspects[other] else { return }
    guard suspect.verdict != .dead, !suspect.isHeld else { return }
    switch result {
    case .refused:
      suspects[other]?.verdict = .dead
      timers.schedule(.suspect(other), at: step.now)
    case .answered:
      suspects[other]?.verdict = .cutOff
      suspects[other]?.done = .nothing
      stopReading(other)
      timers.schedule(.suspect(other), at: step.now + Limits.cutOffAgain)
    case .silent:
      if suspect.verdict == .cutOff { suspects[other]?.silentSince = step.now }
      suspects[other]?.verdict = .silent
      timers.schedule(.suspect(other), at: step.now)
    }
  }

  /// This node leads now. The previous leader may have stopped half-way, so all suspects are checked.
  mutating func lookAtSuspects(_ step: inout Step) {
    for other in suspects.keys.sorted() { timers.schedule(.suspect(other), at: max(step.now, calmUntil)) }
  }

  /// If most of the nodes that vanished together are back, the shared store was at fault, and the rest are missing by themselves.
  /// A node that is held for too long is forgotten: its calls are not closed, and it no longer has a share of limits.
  mutating func liftHold(_ step: inout Step) {
    for (other, suspect) in suspects where suspect.isHeld && step.now - suspect.missingSince >= Limits.suspects {
      drop(other)
      departed.set(other, suspect.missingSince, until: step.now + Limits.remembered, at: step.now)
    }
    guard suspects.values.contains(where: \.isHeld) else { return nodesBeforeHold = 0 }
    guard (peers.count + 1) * 2 > nodesBeforeHold else { return }
    guard !vanishings.contains(where: { step.now - $0.at <= settings.lease }) else { return }
    for other in suspects.keys.filter({ suspects[$0]?.isHeld == true }).sorted() {
      suspects[other]?.isHeld = false
      suspects[other]?.silentSince = step.now
      timers.schedule(.suspect(other), at: max(step.now, calmUntil))
    }
  }

  func mayReap(_ suspect: Suspect, _ now: Instant) -> Bool {
    (tasks[.reaper]?.until.map { $0 > now } ?? false || suspect.byOperator) && state == .up && now >= calmUntil
  }

  // MARK: steps of a suspect

  mutating func suspectDue(_ other: Incarnation, _ step: inout Step) {
    guard let suspect = suspects[other], !suspect.isHeld else { return }
    // A node that becomes the leader checks all suspects; the others remember a suspect for `Limits.suspects`.
    guard mayReap(suspect, step.now) else {
      let end = suspect.missingSince + Limits.suspects
      if state == .up, step.now < calmUntil {
        timers.schedule(.suspect(other), at: calmUntil)
      } else if end > step.now {
        timers.schedule(.suspect(other), at: end)
      } else {
        drop(other)
        departed.set(other, suspect.missingSince, until: step.now + Limits.remembered, at: step.now)
      }
      return
    }
    let silence = step.now - suspect.silentSince
    var next: [Instant] = []
    if suspect.verdict == .dead {
      read(other, .all, &step)
    } else {
      let again = suspect.verdict == .cutOff ? Limits.cutOffAgain : Limits.probeAgain
      var isWaiting = false
      if suspect.probedAt.map({ step.now - $0 >= again }) ?? true {
        if probes.consume(at: step.now) {
          suspects[other]?.probedAt = step.now
          step.actions.append(.probe(other, sip: suspect.lease.sip))
        } else {
          isWaiting = true
        }
      }
      next.append(
        isWaiting ? step.now + Limits.probeLater + jitter(Limits.probeLater) : (suspects[other]?.probedAt ?? step.now) + again)
      if suspect.verdict == .silent {
        if silence >= settings.lostAfter {
          read(other, .all, &step)
        } else {
          if silence >= settings.movesRinging { read(other, .ringing, &step) }
          next.append(suspect.silentSince + (silence < settings.movesRinging ? settings.movesRinging : settings.lostAfter))
        }
      }
    }
    if let again = suspects[other]?.scanAgain { next.append(again) }
    if let due = next.filter({ $0 > step.now }).min() { timers.schedule(.suspect(other), at: due) }
  }

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
    if send(.entries(of: other, cursor: scan.cursor), .entries(other), &step) {
      suspects[other]?.scan?.isReading = true
    } else {
      stopReading(other)
      timers.schedule(.suspect(other), at: step.now + Limits.probeAgain)
    }
  }

  /// Stops the scan. Its queued items are dropped when the queue reaches them.
  mutating func stopReading(_ other: Incarnation) { suspects[other]?.scan = nil }

  mutating func entriesRead(_ other: Incarnation, _ result: Result<SharedStoreReply, SharedStoreFailure>, _ step: inout Step) {
    guard let suspect = suspects[other], let scan = suspect.scan, scan.isReading else { return }
    suspects[other]?.scan?.isReading = false
    guard case .success(.entries(let entries, let next, let dropped)) = result else {
      stopReading(other)
      return timers.schedule(.suspect(other), at: step.now + Limits.probeAgain)
    }
    statistics.valuesDropped += UInt64(max(0, dropped))
    for entry in entries.prefix(Limits.entriesPerRead) where scan.due == .all || entry.line.connect == nil {
      let item = ReapItem(entry: entry, incarnation: other, scan: scan.number)
      guard enqueue(item, &step) else { break }
      suspects[other]?.scan?.found += 1
      suspects[other]?.scan?.waiting += 1
      if suspect.trunks.count < Limits.singleTasks { suspects[other]?.trunks.insert(entry.line.trunk) }
    }
    suspects[other]?.scan?.cursor = next
    if next == 0 { suspects[other]?.scan?.isRead = true }
    reapNext(other, &step)
  }

  /// Reads the next page when few items of the last one wait; ends the scan when none waits.
  mutating func reapNext(_ other: Incarnation, _ step: inout Step) {
    guard let scan = suspects[other]?.scan else { return }
    if !scan.isRead, scan.waiting < Limits.reapStep { return readPage(other, &step) }
    guard scan.isRead, scan.waiting == 0 else { return }
    suspects[other]?.scan = nil
    suspects[other]?.done = scan.due
    if scan.found > 0 {
      // Scans again until no entry is found: soon for failed claims, and after `Limits.reapClaim` for calls that others have
      // claimed.
      let pause = scan.skipped > 0 ? Limits.reapClaim : .seconds(1)
      suspects[other]?.scanAgain = step.now + pause
      timers.schedule(.suspect(other), notLaterThan: step.now + pause)
    } else if scan.due == .all {
      finish(other, &step)
    }
  }

  /// No entry of the node is left: its shares of trunks are removed.
  private mutating func finish(_ other: Incarnation, _ step: inout Step) {
    let trunks = suspects[other]?.trunks ?? []
    let since = suspects[other]?.missingSince
    // an incarnation that only the journal knows has no address, and no node has seen it
    if let lease = suspects[other]?.lease, !lease.sip.isEmpty {
      reaped.set(other, lease, until: step.now + Limits.suspects, at: step.now)
      send(.broadcast(.dead(other)), .none, &step)
    }
    drop(other)
    departed.set(other, since, until: step.now + Limits.remembered, at: step.now)
    for trunk in limitedTrunks.union(trunks).sorted() { write(.shareGone(trunk, other), &step) }
  }

  private mutating func drop(_ other: Incarnation) {
    suspects[other] = nil
    timers.cancel(.suspect(other))
  }
}

extension ClusterMachine.Suspect {
  init(lease: NodeLease, now: Instant) { (self.lease, silentSince, missingSince) = (lease, now, now) }

  var state: SeenNode.Liveness {
    if isHeld { return .held }
    return switch verdict {
    case .missing: .missing
    case .cutOff: .cutOff
    case .silent: .silent
    case .dead: .dead
    }
  }
}
