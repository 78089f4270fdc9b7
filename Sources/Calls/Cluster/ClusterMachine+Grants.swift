import Bytes
import CallFlow

/// What login tokens grant at the nodes. Each has all of it; the shared store has, for each user, what is to hold (`SharedGrant.isLater`), and the
/// order in which that came, by which a node reads what it has not read yet.
///
/// | event | does |
/// |---|---|
/// | a token grants something here | puts it, `Limits.grantsPerPut` in one request, one request at a time; then tells all nodes, no more often than `newsOfGrants` |
/// | another node's word, and every `Limits.grantsLook` | reads what came since |
/// | the shared store has come; it has other grants than it had; claims come into the configuration | reads all, and puts what it lacks |
/// | no answer | again 1 to 2 s later |
struct GrantSync: Sendable {
  /// Tokens may grant something here.
  var isOn = false
  /// Of the last row that was read, and the shared store's name for the order.
  var place: Int64 = 0
  var epoch = ""
  var mustCompare = false
  var mustLook = false
  /// Everything was read once.
  var hasCompared = false
  /// The reading that is under way. Nil: none.
  var reading: Reading?
  /// What was read and is not taken yet, the latest token first; those behind `nextRow`.
  var rows: [SharedGrant] = []
  var nextRow = 0
  /// Goes with the last of `rows`.
  var known: [String: Int64]?
  /// What the shared store does not have yet, by user, in the order in which it came.
  var unwritten: [String: SharedGrant] = [:]
  var order = KeyQueue<String>(most: Limits.grants)
  var isPutting = false
  var lookAt = Instant.zero
  var retryAt = Instant.zero
  /// When other nodes were told last.
  var announcedAt: Instant?
  var mustAnnounce = false

  struct Reading: Sendable {
    var isComparison: Bool
    var since: Int64
    var rows: [SharedGrant] = []
  }
}

extension ClusterMachine {
  mutating func share(_ grants: [SharedGrant], _ step: inout Step) {
    guard self.grants.isOn else { return }
    for grant in grants {
      if let known = self.grants.unwritten[grant.user], known.isLater(than: grant) { continue }
      guard self.grants.order.append(grant.user) else {
        statistics.forgotten += 1
        continue
      }
      self.grants.unwritten[grant.user] = grant
    }
    goOnWithGrants(&step)
  }

  /// Claims have come into the configuration or have changed: what was passed over before is read again.
  mutating func sharesGrants(_ isOn: Bool, _ step: inout Step) {
    (grants.isOn, grants.mustCompare) = (isOn, isOn)
    if !isOn { (grants.unwritten, grants.order) = ([:], KeyQueue(most: Limits.grants)) }
    goOnWithGrants(&step)
  }

  /// The shared store has come, or has lost what it held. All nodes hear of that at the same time.
  mutating func compareGrants(_ step: inout Step) {
    guard grants.isOn else { return }
    grants.mustCompare = true
    if grants.hasCompared { grants.retryAt = step.now + jitter(settings.restoreSpread) }
    goOnWithGrants(&step)
  }

  mutating func grantsAnnounced(_ step: inout Step) {
    grants.mustLook = true
    goOnWithGrants(&step)
  }

  /// The next step of whatever waits.
  mutating func goOnWithGrants(_ step: inout Step) {
    guard grants.isOn, isConnected, !isNameInUse else { return }
    popRows(&step)
    let now = step.now
    if now >= grants.retryAt {
      if now >= grants.lookAt { grants.mustLook = true }
      if grants.reading == nil, grants.rows.isEmpty, grants.mustCompare || grants.mustLook { read(&step) }
      if !grants.isPutting, !grants.order.isEmpty { put(&step) }
    }
    if grants.mustAnnounce, grants.announcedAt.map({ now - $0 >= newsOfGrants }) ?? true {
      (grants.mustAnnounce, grants.announcedAt) = (false, now)
      send(.broadcast(.grants), .none, &step)
    }
    var next = grants.lookAt
    if !grants.rows.isEmpty {
      next = now + Limits.restoreStep
    } else if grants.reading == nil && (grants.mustCompare || grants.mustLook) || !grants.isPutting && !grants.order.isEmpty {
      next = grants.retryAt
    }
    if grants.mustAnnounce, let announcedAt = grants.announcedAt { next = min(next, announcedAt + newsOfGrants) }
    timers.schedule(.grants, at: max(next, grants.retryAt, now + .milliseconds(1)))
  }

  /// All nodes together say so 200 times a second at most.
  private var newsOfGrants: Duration { max(Limits.newsOfGrants, .milliseconds(5 * Int64(knownNodes))) }

  // MARK: reading

  private mutating func read(_ step: inout Step) {
    let isComparison = grants.mustCompare
    (grants.mustCompare, grants.mustLook) = (false, false)
    grants.lookAt = step.now + Limits.grantsLook
    readOn(GrantSync.Reading(isComparison: isComparison, since: isComparison ? 0 : grants.place), &step)
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
    // without an epoch all of it is new
    let isOther = page.epoch != grants.epoch && !(grants.epoch.isEmpty && grants.place == 0)
    if !reading.isComparison, isOther || page.last < grants.place {
      grants.mustCompare = true
      return
    }
    reading.rows += page.rows
    reading.since = page.place
    if page.hasMore, reading.rows.count < Limits.grants { return readOn(reading, &step) }
    (grants.place, grants.epoch) = (page.place, page.epoch)
    grants.rows = reading.rows.sorted { ($0.issuedAt, $0.user) > ($1.issuedAt, $1.user) }
    grants.nextRow = 0
    if reading.isComparison {
      grants.known = Dictionary(reading.rows.map { ($0.user, $0.issuedAt) }) { max($0, $1) }
    }
  }

  /// In steps: 100,000 at once would hold up calls.
  private mutating func popRows(_ step: inout Step) {
    guard !grants.rows.isEmpty || grants.known != nil else { return }
    let end = min(grants.rows.count, grants.nextRow + Limits.grantsPerStep)
    var batch = SharedGrants(Array(grants.rows[grants.nextRow..<end]))
    grants.nextRow = end
    if end == grants.rows.count {
      (batch.known, grants.known) = (grants.known, nil)
      (grants.rows, grants.nextRow) = ([], 0)
      if batch.known != nil { grants.hasCompared = true }
    }
    statistics.grantsRead += UInt64(batch.rows.count)
    step.actions.append(.grants(batch))
  }

  // MARK: putting

  private mutating func put(_ step: inout Step) {
    var batch: [SharedGrant] = []
    while batch.count < Limits.grantsPerPut, let user = grants.order.popFirst() {
      if let grant = grants.unwritten.removeValue(forKey: user) { batch.append(grant) }
    }
    guard !batch.isEmpty else { return }
    grants.isPutting = true
    if !send(.putGrants(batch), .putGrants(batch), &step) { puttingFailed(batch, &step) }
  }

  private mutating func puttingFailed(_ batch: [SharedGrant], _ step: inout Step) {
    grants.isPutting = false
    grants.retryAt = step.now + Limits.restoreAgain + jitter(Limits.restoreAgain)
    // what came meanwhile is later, or stays
    for grant in batch where grants.unwritten[grant.user].map(grant.isLater) ?? true {
      guard grants.order.append(grant.user) else {
        statistics.forgotten += 1
        continue
      }
      grants.unwritten[grant.user] = grant
    }
  }

  mutating func grantsPut(_ batch: [SharedGrant], _ result: Result<SharedStoreReply, SharedStoreFailure>, _ step: inout Step) {
    defer { goOnWithGrants(&step) }
    guard case .success(.grantsPut(let count, let later, let dropped)) = result else { return puttingFailed(batch, &step) }
    grants.isPutting = false
    statistics.valuesDropped += UInt64(max(0, dropped))
    statistics.grantsPut += UInt64(max(0, count))
    if count > 0 { grants.mustAnnounce = true }
    // what the shared store has instead; it may have been read before the token came here
    if !later.isEmpty { step.actions.append(.grants(SharedGrants(later))) }
  }
}
