import AppSessions
import CallModel
import Devices
import TrunklineBytes

/// The rate of this node's writes, and the writes that are deferred because the shared store was away, refused them or has lost
/// them. A write is a key: it always sends the state at the time of sending, so a repeated write does no harm.
///
/// | input | gives |
/// |---|---|
/// | `hold` | the write is queued, once; counted as forgotten if the queue is full. `Timer.restore` in 1 to 2 s, unless a random time after a connection is not over |
/// | `connected`, `flushed` | all state is to be reviewed, at a random time within the spread; `wasFlushed` stays true until then |
/// | `leaseRenewed` | `Timer.restore`, if anything waits or is under review |
/// | `beginReview` | true once after each connection or flush, when its random time is over, also while an earlier review goes on |
/// | `endReview` | – ; `wasFlushed` ends, unless another review is to begin |
/// | `hasRoomForReview` | whether few enough writes wait that what a review finds is to be added: of calls, only those of calls count |
/// | `holdRecent` | the removals of the last minute are queued, a page at a time |
/// | `next` | calls first: the next write; `later` if the bucket of restored writes is empty, or, without calls, that of all writes; `nothing` |
/// | `removed` | – ; a removal is repeated after a failover within `Limits.recent` |
/// | `register`, `registered` | – ; the device's last change, kept until it is stored and for `Limits.recent` more. What a node remembers of others is written again after a failover, too |
/// | `setRate` | this node's share of `Limits.clusterWritesPerSecond` |
struct DeferredWrites: Sendable {
  enum Next { case write(ClusterMachine.WriteKey), later, nothing }

  private struct Registration: Sendable {
    var change: DeviceChange
    /// When it is forgotten; nil: it is not stored yet.
    var end: Instant?
  }

  /// Writes that one step of `Timer.restore` sends.
  static let perStep = Int(Double(Limits.restoresPerSecond) * Limits.restoreStep.inSeconds)

  private let spread: Duration
  private var ofCalls = KeyQueue<ClusterMachine.WriteKey>(most: Limits.unwritten)
  private var ofDevices = KeyQueue<ClusterMachine.WriteKey>(most: Limits.unwritten)
  private var registrations = BoundedTable<DeviceKey, Registration>(most: Limits.unwritten)
  private var recent = Recent<ClusterMachine.WriteKey>()
  private var startsAt: Instant?
  private var mustReview = false
  private(set) var wasFlushed = false
  private var flushedAt: Instant?
  private var pace: TokenBucket
  private var restorePace: TokenBucket

  init(spread: Duration, at now: Instant) {
    self.spread = spread
    pace = TokenBucket(perSecond: Limits.firstWritesPerSecond, at: now)
    restorePace = TokenBucket(perSecond: Limits.restoresPerSecond, at: now)
  }

  /// The number of writes that wait.
  var count: Int { ofCalls.count + ofDevices.count }

  /// The shared store has lost its data after this time.
  func wasFlushed(after time: Instant) -> Bool { flushedAt.map { time < $0 } ?? false }

  // MARK: the rate

  /// False: a write that can wait must wait.
  mutating func consume(at now: Instant) -> Bool { pace.consume(at: now) }
  /// For a write that cannot wait.
  mutating func spend(at now: Instant) { pace.spend(at: now) }

  mutating func setRate(nodes: Int) {
    func share(_ all: Int) -> Int { max(1, min(Limits.writesPerSecond, all / max(1, nodes))) }
    let rate = share(Limits.clusterWritesPerSecond)
    pace.setRate(rate, burst: share(Limits.clusterWriteBurst))
    restorePace.setRate(min(Limits.restoresPerSecond, rate))
  }

  // MARK: the queue

  mutating func hold(_ key: ClusterMachine.WriteKey, _ step: inout Step) {
    let isKept = key.isOfCalls ? ofCalls.append(key) : ofDevices.append(key)
    if !isKept { step.statistics.forgotten += 1 }
    if step.requests.isConnected, startsAt.map({ $0 <= step.now }) ?? true {
      step.timers.schedule(.restore, notLaterThan: step.now + Limits.restoreAgain + step.jitter(Limits.restoreAgain))
    }
  }

  /// Calls do not wait for devices that connect meanwhile; devices wait for calls.
  mutating func next(at now: Instant) -> Next {
    guard count > 0 else { return .nothing }
    guard restorePace.has(at: now), !ofCalls.isEmpty || pace.has(at: now) else { return .later }
    guard let key = ofCalls.popFirst() ?? ofDevices.popFirst() else { return .nothing }
    restorePace.spend(at: now)
    pace.spend(at: now)
    return .write(key)
  }

  mutating func removed(_ key: ClusterMachine.WriteKey, at now: Instant) { recent.append(key, at: now) }

  /// Defers again what was removed, `most` of it from a position on; gives where to go on, nil after the last one.
  mutating func holdRecent(from position: Int, most: Int, _ step: inout Step) -> Int? {
    let page = recent.page(from: position, most: most, at: step.now)
    for key in page.elements { hold(key, &step) }
    return page.next
  }

  // MARK: registrations

  /// Nil as well when its time is over, though the table still has it.
  func registration(of key: DeviceKey, at now: Instant) -> DeviceChange? {
    registrations[key].flatMap { $0.end.map { now >= $0 } ?? false ? nil : $0.change }
  }

  /// False: the change of another device was forgotten.
  @discardableResult mutating func register(_ change: DeviceChange, at now: Instant) -> Bool {
    registrations.set(change.key, Registration(change: change), until: .distantFuture, at: now)
  }

  /// It stays for `Limits.recent`: a failover may lose it.
  mutating func registered(_ key: DeviceKey, at now: Instant) {
    if let change = registration(of: key, at: now) {
      guard registrations[key]?.end == nil else { return }
      let end = now + Limits.recent
      registrations.set(key, Registration(change: change, end: end), until: end, at: now)
    }
    removed(.registration(key), at: now)
  }

  // MARK: after a reconnection

  mutating func connected(_ step: inout Step) {
    mustReview = true
    startsAt = step.now + step.jitter(spread)
  }

  /// Data that the shared store lost stays lost, whatever follows. `connected` follows, too.
  mutating func flushed(at now: Instant) { (flushedAt, wasFlushed) = (now, true) }

  mutating func leaseRenewed(isReviewing: Bool, _ step: inout Step) {
    guard mustReview || isReviewing || count > 0 else { return }
    step.timers.schedule(.restore, notLaterThan: max(startsAt ?? step.now, step.now))
  }

  mutating func beginReview(at now: Instant) -> Bool {
    guard mustReview, startsAt.map({ $0 <= now }) ?? true else { return false }
    (mustReview, startsAt) = (false, nil)
    return true
  }

  mutating func endReview() { if !mustReview { wasFlushed = false } }

  /// What a review finds waits in the tables until the queue has room: nothing of it is forgotten.
  func hasRoomForReview(ofCalls isOfCalls: Bool) -> Bool { (isOfCalls ? ofCalls.count : count) < Limits.reviewAhead }
}
