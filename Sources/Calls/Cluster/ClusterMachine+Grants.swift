import CallFlow
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
/// | no answer | again 1 to 2 s later |
///
/// Only one request is pending at a time, and none while rows wait to be applied: no older row is applied after a newer one.
struct GrantSync: Sendable {
  /// Tokens may grant something here.
  var isOn = false
  /// The position of the last row that was read, and the epoch of these positions in the shared store.
  var position: Int64 = 0
  var epoch = ""
  var mustCompare = false
  var mustLook = false
  /// A full read has been applied.
  var hasCompared = false
  /// The pending read; nil: none.
  var reading: Reading?
  /// Rows that were read and not applied yet, the latest token first, from index `nextRow`.
  var rows: [SharedGrant] = []
  var nextRow = 0
  /// `known` is passed with the first of `rows`; `isAll`: the rows are a full read.
  var known: [String: Int64]?
  var isAll = false
  /// Grants that the shared store does not have yet, by user, and the users in the order of arrival.
  var unwritten: [String: SharedGrant] = [:]
  var order = KeyQueue<String>(most: Limits.grants)
  var isPutting = false
  /// A due read precedes the next put, so that neither starves, however many there are of the other.
  var isReadingNext = false
  /// The last puts, oldest first: a failover may have lost them.
  var recent: [(grant: SharedGrant, at: Instant)] = []
  var recentHead = 0
  var lookAt = Instant.zero
  var retryAt = Instant.zero
  /// When other nodes were notified last.
  var announcedAt: Instant?
  var mustAnnounce = false

  var isAsking: Bool { reading != nil || isPutting }
  var mustRead: Bool { mustCompare || mustLook }

  struct Reading: Sendable {
    var isComparison: Bool
    var since: Int64
    /// By user: a row that is read twice has changed meanwhile, and the later one counts.
    var rows: [String: SharedGrant] = [:]
  }
}

extension ClusterMachine {
  mutating func share(_ grants: [SharedGrant], _ step: inout Step) {
    guard self.grants.isOn else { return }
    for grant in grants { addUnwritten(grant) }
    goOnWithGrants(&step)
  }

  /// Of two grants of a user, the later token is written; an erasure wins over a token that is as late.
  private mutating func addUnwritten(_ grant: SharedGrant) {
    if let other = grants.unwritten[grant.user] {
      let isLater = (grant.issuedAt, grant.grant == nil ? 1 : 0) >= (other.issuedAt, other.grant == nil ? 1 : 0)
      let (kept, dropped) = isLater ? (grant, other) : (other, grant)
      grants.unwritten[grant.user] = kept
      // the dropped grant claimed numbers of other users here that the shared store does not move
      if !Set(dropped.canonicalNumbers).isSubset(of: kept.canonicalNumbers) { grants.mustCompare = true }
    } else if grants.order.append(grant.user) {
      grants.unwritten[grant.user] = grant
    } else {
      statistics.forgotten += 1
    }
  }

  /// Claims were configured or have changed: rows that were skipped before are read again.
  mutating func sharesGrants(_ isOn: Bool, _ step: inout Step) {
    (grants.isOn, grants.mustCompare) = (isOn, isOn)
    if !isOn {
      (grants.unwritten, grants.order) = ([:], KeyQueue(most: Limits.grants))
      (grants.recent, grants.recentHead) = ([], 0)
    }
    goOnWithGrants(&step)
  }

  /// The shared store was connected, or has lost its data. All nodes notice that at the same time, so the read is spread.
  mutating func compareGrants(_ step: inout Step) {
    guard grants.isOn else { return }
    grants.mustCompare = true
    if grants.hasCompared { grants.retryAt = step.now + jitter(settings.restoreSpread) }
    let recent = grants.recent[grants.recentHead...].filter { step.now - $0.at <= Limits.recent }
    (grants.recent, grants.recentHead) = ([], 0)
    for (grant, _) in recent { addUnwritten(grant) }
    goOnWithGrants(&step)
  }

  mutating func grantsAnnounced(_ step: inout Step) {
    grants.mustLook = true
    goOnWithGrants(&step)
  }

  /// Starts the next pending step of the synchronisation.
  mutating func goOnWithGrants(_ step: inout Step) {
    guard grants.isOn, isConnected, !isNameInUse else { return }
    popRows(&step)
    let now = step.now
    if now >= grants.retryAt, !grants.isAsking, grants.rows.isEmpty {
      if now >= grants.lookAt { grants.mustLook = true }
      if !grants.order.isEmpty, !(grants.mustRead && grants.isReadingNext) {
        put(&step)
      } else if grants.mustRead {
        read(&step)
      }
    }
    if grants.mustAnnounce, grants.announcedAt.map({ now - $0 >= newsOfGrants }) ?? true {
      (grants.mustAnnounce, grants.announcedAt) = (false, now)
      send(.broadcast(.grants), .none, &step)
    }
    var next = max(grants.lookAt, grants.retryAt)
    if !grants.rows.isEmpty {
      next = now + Limits.restoreStep
    } else if grants.isAsking {
      next = now + Limits.grantsLook
    } else if grants.mustRead || !grants.order.isEmpty {
      next = grants.retryAt
    }
    if grants.mustAnnounce, let announcedAt = grants.announcedAt { next = min(next, announcedAt + newsOfGrants) }
    timers.schedule(.grants, at: max(next, now + .milliseconds(1)))
  }

  /// Bounds the notifications of all nodes together to 200 a second.
  private var newsOfGrants: Duration { max(Limits.newsOfGrants, .milliseconds(5 * Int64(knownNodes))) }

  // MARK: reading

  private mutating func read(_ step: inout Step) {
    let isComparison = grants.mustCompare
    (grants.mustCompare, grants.mustLook, grants.isReadingNext) = (false, false, false)
    grants.lookAt = step.now + Limits.grantsLook
    readOn(GrantSync.Reading(isComparison: isComparison, since: isComparison ? 0 : grants.position), &step)
  }

  private mutating func readOn(_ reading: GrantSync.Reading, _ step: inout Step) {
    grants.reading = reading
    if !send(.grants(since: reading.since), .grants, &step) { readingFailed(reading, &step) }
  }

  private mutating func readingFailed(_ reading: GrantSync.Reading, _ step: inout Step) {
    grants.reading = nil
    if reading.isComparison { grants.mustCompare = true } else { grants.mustLook = true }
    grants.retryAt = step.now + Limits.restoreAgain + jitter(Limits.restoreAgain)
  }

  mutating func grantsRead(_ result: Result<SharedStoreReply, SharedStoreFailure>, _ step: inout Step) {
    guard var reading = grants.reading else { return }
    grants.reading = nil
    defer { goOnWithGrants(&step) }
    guard case .success(.grants(let page)) = result else { return readingFailed(reading, &step) }
    statistics.valuesDropped += UInt64(max(0, page.dropped))
    // without an epoch every row is new
    let isOther = page.epoch != grants.epoch && !(grants.epoch.isEmpty && grants.position == 0)
    if !reading.isComparison, isOther || page.last < grants.position {
      grants.mustCompare = true
      return
    }
    for row in page.rows { reading.rows[row.user] = row }
    reading.since = page.position
    if page.hasMore, reading.rows.count < Limits.grants { return readOn(reading, &step) }
    (grants.position, grants.epoch) = (page.position, page.epoch)
    grants.rows = reading.rows.values.sorted { ($0.issuedAt, $0.user) > ($1.issuedAt, $1.user) }
    grants.nextRow = 0
    grants.isAll = reading.isComparison
    if reading.isComparison {
      grants.known = reading.rows.mapValues(\.issuedAt).merging(grants.unwritten.mapValues(\.issuedAt)) { max($0, $1) }
    }
  }

  /// Passes rows on in steps: 100,000 at once would delay calls.
  private mutating func popRows(_ step: inout Step) {
    guard !grants.rows.isEmpty || grants.known != nil else { return }
    let end = min(grants.rows.count, grants.nextRow + Limits.grantsPerStep)
    var batch = SharedGrants(Array(grants.rows[grants.nextRow..<end]))
    grants.nextRow = end
    (batch.known, grants.known) = (grants.known, nil)
    if end == grants.rows.count {
      (grants.rows, grants.nextRow) = ([], 0)
      batch.isAll = grants.isAll
      if grants.isAll { grants.hasCompared = true }
    }
    statistics.grantsRead += UInt64(batch.rows.count)
    step.actions.append(.grants(batch))
  }

  // MARK: putting

  private mutating func put(_ step: inout Step) {
    var (batch, numbers) = ([SharedGrant](), 0)
    while batch.count < Limits.grantsPerPut, numbers < Limits.numbersPerPut, let user = grants.order.popFirst() {
      guard let grant = grants.unwritten.removeValue(forKey: user) else { continue }
      batch.append(grant)
      numbers += grant.grant?.numbers.count ?? 0
    }
    guard !batch.isEmpty else { return }
    (grants.isPutting, grants.isReadingNext) = (true, true)
    if !send(.putGrants(batch), .putGrants(batch), &step) { puttingFailed(batch, &step) }
  }

  private mutating func puttingFailed(_ batch: [SharedGrant], _ step: inout Step) {
    grants.isPutting = false
    grants.retryAt = step.now + Limits.restoreAgain + jitter(Limits.restoreAgain)
    for grant in batch { addUnwritten(grant) }
  }

  mutating func grantsPut(_ batch: [SharedGrant], _ result: Result<SharedStoreReply, SharedStoreFailure>, _ step: inout Step) {
    defer { goOnWithGrants(&step) }
    guard case .success(.grantsPut(let count, let others, let dropped)) = result else { return puttingFailed(batch, &step) }
    grants.isPutting = false
    statistics.valuesDropped += UInt64(max(0, dropped))
    statistics.grantsPut += UInt64(max(0, count))
    for grant in batch { noteRecent(grant, step.now) }
    if count > 0 { (grants.mustLook, grants.mustAnnounce) = (true, true) }
    // the rows that the shared store has instead; they may have been read before the token arrived here
    if !others.isEmpty { step.actions.append(.grants(SharedGrants(others))) }
    if others.count >= Limits.grantsPerRead { grants.mustCompare = true }
  }

  private mutating func noteRecent(_ grant: SharedGrant, _ now: Instant) {
    grants.recent.append((grant, now))
    while grants.recentHead < grants.recent.count,
      now - grants.recent[grants.recentHead].at > Limits.recent
        || grants.recent.count - grants.recentHead > Limits.recentWrites
    {
      grants.recentHead += 1
    }
    if grants.recentHead > 1_024, grants.recentHead * 2 > grants.recent.count {
      grants.recent.removeFirst(grants.recentHead)
      grants.recentHead = 0
    }
  }
}
