import CallModel
import TrunklineBytes

/// Grants of login tokens. The shared store owns them: a node verifies a token and writes its grant, the shared store decides
/// which numbers the user gets (`SharedStoreRequest.putGrants`), and every node reads the changed rows by their sequence numbers
/// and applies them.
///
/// | event | does |
/// |---|---|
/// | a token grants something here, or a user is erased | puts the grant, `Limits.grantsPerPut` in one request; then reads, and notifies all nodes, no more often than `newsOfGrants` |
/// | a message of another node, and every `Limits.grantsLook` | reads the rows that have changed |
/// | the shared store is connected; its grants are others than before; claims are configured | puts the grants that it put within `Limits.recent`, and reads all |
/// | all rows were read | has the call machine compare its copy with them, then apply them, in steps |
/// | a batch of lost grants is to be restored | puts them as a login's; confirms the batch when the shared store has them, or when a put fails or the store is lost |
/// | no answer | again 1 to 2 s later |
///
/// The copy is uncertain (`Action.grantsUncertain`) while the shared store is away, from an outage or a failed read until all rows
/// are read, and while another node's lease states that it serves grants that the shared store has lost and this node does not.
///
/// Only one request is pending at a time, and none while rows wait to be applied: no older row is applied after a newer one. A reply
/// that no request waits for is ignored.
///
/// Each step handles `grantsPerStep` users at most, `Limits.restoreStep` apart while there are more: with 200,000 users calls would
/// wait otherwise.
///
/// Inputs: `share`, `restore`, `turn`, `compare`, `compared`, `disconnected`, `announced`, `read`, `put`, `compareStale` (digests of
/// nodes' leases), `reportUncertain` after each input, and `resume` when `Timer.grants` is due. Outputs: the requests `grants`,
/// `putGrants` and the message `grants`; `Action.grants`, `Action.grantsRestored`; `Timer.grants`. `nodes`: the known nodes, which
/// share a rate.
struct GrantSync: Sendable {
  private let spread: Duration
  /// Tokens may grant something here.
  private var isOn = false
  /// The position of the last row that was read, and the epoch of these positions in the shared store.
  private var position: Int64 = 0
  private var epoch = ""
  private var mustCompare = false
  private var mustLook = false
  /// A full read has been applied.
  private var hasCompared = false
  /// All rows that the shared store had at the last read were applied, and no read has failed since.
  private var isCurrent = false
  /// Another node serves grants that the shared store has lost, and not the same as this node.
  private var othersHaveMore = false
  private var isReportedUncertain = false
  /// The pending read; nil: none.
  private var reading: Reading?
  /// Rows that were read and not applied yet. `isAll`: they are a full read.
  private var rows = GrantRows()
  private var isAll = false
  /// Before the rows of a full read are applied, the call machine compares its copy with them.
  private var comparing = Comparing.none
  /// The next step of what was read is not before this time.
  private var stepAt = Instant.zero
  /// Grants that the shared store does not have yet, by user, and the users in the order of arrival.
  private var unwritten: [String: SharedGrant] = [:]
  private var order = KeyQueue<String>(most: Limits.grants)
  private var isPutting = false
  /// A due read precedes the next put, so that neither starves, however many there are of the other.
  private var isReadingNext = false
  /// The last puts, oldest first: a failover may have lost them.
  private var recent = Recent<SharedGrant>()
  /// Puts that are repeated, in steps; then, if `repeatsRecent`, those of `recent`.
  private var repeated = Recent<SharedGrant>()
  private var repeatsRecent = false
  /// `issuedAt` of the grants of the batch that is being restored which the shared store does not have yet, by user; nil: none is.
  private var restoring: [String: Int64]?
  private var restored = 0
  private var lookAt = Instant.zero
  private var retryAt = Instant.zero
  /// When other nodes were notified last.
  private var announcedAt: Instant?
  private var mustAnnounce = false

  private var isAsking: Bool { reading != nil || isPutting }
  private var mustRead: Bool { mustCompare || mustLook }
  /// Whether what was read is not applied yet, or recent puts are not queued yet.
  private var hasWork: Bool {
    if case .none = comparing { return !rows.isEmpty || isAll || !repeated.isEmpty || repeatsRecent }
    return true
  }

  private struct Reading: Sendable {
    var isComparison: Bool
    var since: Int64
    var rows = GrantRows()
    /// `issuedAt` of the users of `rows`.
    var known: [String: Int64] = [:]
  }
  private enum Comparing: Sendable {
    case none
    /// The grants of `order` from this index on are to be added to what is known.
    case gathering(known: [String: Int64], next: Int)
    /// The call machine compares.
    case comparing
  }

  /// A first read follows the connection at once, later ones within `spread`.
  init(spread: Duration) { self.spread = spread }

  /// Grants that wait to be put.
  var waiting: Int { unwritten.count }

  mutating func share(_ grants: [SharedGrant], nodes: Int, _ step: inout Step) {
    guard isOn else { return }
    for grant in grants { addUnwritten(grant, &step) }
    resume(nodes: nodes, &step)
  }

  /// Writes a batch of grants that the shared store has lost; the empty one is confirmed when nothing that was read waits to be
  /// applied.
  mutating func restore(_ batch: [SharedGrant], nodes: Int, _ step: inout Step) {
    restoring = [:]
    restored = 0
    guard isOn, step.requests.isConnected, !step.requests.isClosed, order.count + batch.count <= Limits.grants else {
      return restoringFailed(&step)
    }
    for grant in batch {
      addUnwritten(grant, &step)
      restoring?[grant.user] = grant.issuedAt
    }
    resume(nodes: nodes, &step)
  }

  private mutating func restoringFailed(_ step: inout Step) {
    guard restoring != nil else { return }
    restoring = nil
    step.actions.append(.grantsRestored(users: restored, hasFailed: true))
  }

  /// A batch is confirmed when nothing that was read waits to be applied, and no full read is due: the next batch is then read from
  /// a copy that was compared with the shared store.
  private mutating func confirmRestored(_ step: inout Step) {
    guard let waiting = restoring, !mustCompare, !hasWork, !isAsking, waiting.isEmpty || order.isEmpty else { return }
    restoring = nil
    step.actions.append(.grantsRestored(users: restored, hasFailed: false))
  }

  mutating func disconnected(_ step: inout Step) { restoringFailed(&step) }

  /// Of two grants of a user, the later token is written; an erasure wins over a token that is as late.
  private mutating func addUnwritten(_ grant: SharedGrant, _ step: inout Step) {
    if case .gathering(var known, let next) = comparing {
      comparing = .none
      known[grant.user] = max(known[grant.user] ?? grant.issuedAt, grant.issuedAt)
      comparing = .gathering(known: known, next: next)
    }
    if let other = unwritten[grant.user] {
      let isLater = (grant.issuedAt, grant.grant == nil ? 1 : 0) >= (other.issuedAt, other.grant == nil ? 1 : 0)
      let (kept, dropped) = isLater ? (grant, other) : (other, grant)
      unwritten[grant.user] = kept
      // the dropped grant claimed numbers of other users here that the shared store does not move
      if !Set(dropped.canonicalNumbers).isSubset(of: kept.canonicalNumbers) { mustCompare = true }
    } else if order.append(grant.user) {
      unwritten[grant.user] = grant
    } else {
      step.statistics.forgotten += 1
    }
  }

  /// Claims were configured or have changed: rows that were skipped before are read again.
  mutating func turn(on isOn: Bool, nodes: Int, _ step: inout Step) {
    (self.isOn, mustCompare, isCurrent) = (isOn, isOn, false)
    if !isOn {
      unwritten = [:]
      order = KeyQueue(most: Limits.grants)
      recent = Recent()
      repeated = Recent()
      repeatsRecent = false
      restoringFailed(&step)
    }
    resume(nodes: nodes, &step)
  }

  /// The shared store was connected, or has lost its data. All nodes notice that at the same time, so the read is spread.
  mutating func compare(nodes: Int, _ step: inout Step) {
    guard isOn else { return }
    mustCompare = true
    isCurrent = false
    if hasCompared { retryAt = step.now + step.jitter(spread) }
    repeatsRecent = true
    resume(nodes: nodes, &step)
  }

  mutating func announced(nodes: Int, _ step: inout Step) {
    mustLook = true
    resume(nodes: nodes, &step)
  }

  /// Starts the next pending step of the synchronisation.
  mutating func resume(nodes: Int, _ step: inout Step) {
    guard isOn, step.requests.isConnected, !step.requests.isClosed else { return }
    let now = step.now
    if now >= stepAt { applyNext(&step) }
    confirmRestored(&step)
    if now >= retryAt, !isAsking, !hasWork {
      if now >= lookAt { mustLook = true }
      if !order.isEmpty, !(mustRead && isReadingNext) {
        putNext(&step)
      } else if mustRead {
        readNext(&step)
      }
    }
    if mustAnnounce, announcedAt.map({ now - $0 >= Self.pauseOfNews(nodes) }) ?? true {
      mustAnnounce = false
      announcedAt = now
      step.send(.broadcast(.grants), .none)
    }
    var next = max(lookAt, retryAt)
    if hasWork {
      next = stepAt
    } else if isAsking {
      next = now + Limits.grantsLook
    } else if mustRead || !order.isEmpty {
      next = retryAt
    }
    if mustAnnounce, let announcedAt = announcedAt { next = min(next, announcedAt + Self.pauseOfNews(nodes)) }
    step.timers.schedule(.grants, at: max(next, now + .milliseconds(1)))
  }

  /// Bounds the notifications of all nodes together to 200 a second.
  private static func pauseOfNews(_ nodes: Int) -> Duration { max(Limits.newsOfGrants, .milliseconds(5 * Int64(nodes))) }

  // MARK: reading

  private mutating func readNext(_ step: inout Step) {
    let isComparison = mustCompare
    mustCompare = false
    mustLook = false
    isReadingNext = false
    lookAt = step.now + Limits.grantsLook
    readOn(Reading(isComparison: isComparison, since: isComparison ? 0 : position), &step)
  }

  private mutating func readOn(_ reading: Reading, _ step: inout Step) {
    self.reading = reading
    if !step.send(.grants(since: reading.since), .grants) { readingFailed(reading, &step) }
  }

  private mutating func readingFailed(_ reading: Reading, _ step: inout Step) {
    self.reading = nil
    isCurrent = false
    if reading.isComparison { mustCompare = true } else { mustLook = true }
    restoringFailed(&step)
    retryAt = step.now + Limits.restoreAgain + step.jitter(Limits.restoreAgain)
  }

  mutating func read(_ result: Result<SharedStoreReply, SharedStoreFailure>, nodes: Int, _ step: inout Step) {
    guard var reading else { return }
    self.reading = nil
    defer { resume(nodes: nodes, &step) }
    guard case .success(.grants(let page)) = result else { return readingFailed(reading, &step) }
    step.statistics.valuesDropped += UInt64(max(0, page.dropped))
    // without an epoch every row is new
    let isOther = page.epoch != epoch && !(epoch.isEmpty && position == 0)
    if !reading.isComparison, isOther || page.last < position {
      mustCompare = true
      isCurrent = false
      return
    }
    for row in page.rows {
      reading.rows.insert(row)
      if reading.isComparison { reading.known[row.user] = row.issuedAt }
    }
    reading.since = page.position
    if page.hasMore, reading.rows.count < Limits.grants { return readOn(reading, &step) }
    position = page.position
    epoch = page.epoch
    rows = reading.rows
    isAll = reading.isComparison
    if isAll { comparing = .gathering(known: reading.known, next: 0) } else if rows.isEmpty { readApplied() }
  }

  /// The next step of what is done with a full read, or with rows.
  private mutating func applyNext(_ step: inout Step) {
    guard hasWork else { return }
    let most = CallModel.Limits.grantsPerStep
    if !repeated.isEmpty {
      for grant in repeated.pop(most: most, at: step.now) { addUnwritten(grant, &step) }
    } else if repeatsRecent {
      swap(&repeated, &recent)
      repeatsRecent = false
      return applyNext(&step)
    } else if case .gathering = comparing {
      gather(most, &step)
    } else if case .comparing = comparing {
      step.actions.append(.grants(.comparisonStep))
    } else {
      popRows(most, &step)
    }
    stepAt = hasWork ? step.now + Limits.restoreStep : .zero
  }

  /// Adds the users whose grants are being written to those that the shared store has.
  private mutating func gather(_ most: Int, _ step: inout Step) {
    guard case .gathering(var known, let next) = comparing else { return }
    comparing = .comparing
    let users = order.keys(from: next, most: most)
    for user in users { if let grant = unwritten[user] { known[user] = max(known[user] ?? grant.issuedAt, grant.issuedAt) } }
    if users.count == most {
      comparing = .gathering(known: known, next: next + most)
    } else {
      step.actions.append(.grants(.comparison(known: known)))
    }
  }

  /// The call machine has compared its copy.
  mutating func compared(nodes: Int, _ step: inout Step) {
    guard case .comparing = comparing else { return }
    comparing = .none
    resume(nodes: nodes, &step)
  }

  /// Passes rows on in steps: 100,000 at once would delay calls.
  private mutating func popRows(_ most: Int, _ step: inout Step) {
    let batch = rows.pop(most: most, octets: CallModel.Limits.grantOctetsPerStep)
    let isLast = rows.isEmpty
    step.statistics.grantsRead += UInt64(batch.count)
    step.actions.append(.grants(.rows(batch, isAll: isLast && isAll)))
    guard isLast else { return }
    if isAll { hasCompared = true }
    isAll = false
    readApplied()
  }

  private mutating func readApplied() {
    if hasCompared, !mustCompare { isCurrent = true }
  }

  // MARK: what this node's copy may lack

  /// - Parameter own: the digest of this node's grants that the shared store has lost; 0: none.
  mutating func compareStale(_ own: UInt64, others: some Sequence<UInt64>) {
    othersHaveMore = others.contains { $0 != 0 && $0 != own }
  }

  mutating func reportUncertain(_ step: inout Step) {
    let isUncertain = isOn && (!step.requests.isConnected || !isCurrent || othersHaveMore)
    guard isUncertain != isReportedUncertain else { return }
    isReportedUncertain = isUncertain
    step.actions.append(.grantsUncertain(isUncertain))
  }

  // MARK: putting

  private mutating func putNext(_ step: inout Step) {
    var (batch, numbers) = ([SharedGrant](), 0)
    while batch.count < Limits.grantsPerPut, numbers < Limits.numbersPerPut, let user = order.popFirst() {
      guard let grant = unwritten.removeValue(forKey: user) else { continue }
      batch.append(grant)
      numbers += grant.grant?.numbers.count ?? 0
    }
    guard !batch.isEmpty else { return }
    isPutting = true
    isReadingNext = true
    if !step.send(.putGrants(batch), .putGrants(batch)) { puttingFailed(batch, &step) }
  }

  private mutating func puttingFailed(_ batch: [SharedGrant], _ step: inout Step) {
    isPutting = false
    retryAt = step.now + Limits.restoreAgain + step.jitter(Limits.restoreAgain)
    for grant in batch { addUnwritten(grant, &step) }
    restoringFailed(&step)
  }

  mutating func put(
    _ batch: [SharedGrant], _ result: Result<SharedStoreReply, SharedStoreFailure>, nodes: Int, _ step: inout Step
  ) {
    defer { resume(nodes: nodes, &step) }
    guard case .success(.grantsPut(let count, let others, let dropped)) = result else { return puttingFailed(batch, &step) }
    isPutting = false
    step.statistics.valuesDropped += UInt64(max(0, dropped))
    step.statistics.grantsPut += UInt64(max(0, count))
    for grant in batch {
      recent.append(grant, at: step.now)
      if let issuedAt = restoring?.removeValue(forKey: grant.user), issuedAt == grant.issuedAt { restored += 1 }
    }
    if count > 0 { (mustLook, mustAnnounce) = (true, true) }
    // the rows that the shared store has instead; they may have been read before the token arrived here
    if !others.isEmpty { step.actions.append(.grants(.rows(others, isAll: false))) }
    if others.count >= Limits.grantsPerRead { mustCompare = true }
  }
}
