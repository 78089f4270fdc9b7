import TrunklineBytes

/// This node's lease: for us it counts from the sending of a renewal, so we stop before others replace us. And its name, which one
/// process has.
///
/// | state | input | next | gives |
/// |---|---|---|---|
/// | any | `update`, not connected | away | `Action.state` with each change, and what has changed |
/// | any | `update`, connected, the lease is over, or none | isolated | the same |
/// | any | `update`, connected, with a lease | up | the same |
/// | any | `renew` | same | the request; `Timer.renewal`: sooner for a reaper, a conflict, or a node without a lease. Nothing if it stops, is not connected, or its name is used |
/// | any | `renewSoon` | same | `Timer.renewal`, five times a second at most |
/// | any | `granted` | same | `Timer.leaseEnd`; whether there was no lease until now |
/// | never granted | `nameIsInUse` | same | `Action.probe` of the other process, once at a time; `Action.nameInUse` after `Limits.nameWait` |
/// | granted before | `nameIsInUse` | closed | `lost`: the calls of this node were reaped |
/// | any | `nameIsInUse` by the predecessor, or by an older incarnation that a failover restored | same | `isOver` |
/// | conflict | `probed` answered, refused, silent | closed, same, same | `Action.nameInUse`; `isOver`; – |
/// | any | `nameIsFree` | same | – ; the conflict has ended |
/// | never granted | `refuse` | closed | `Action.incompatible`; its own lease is ended |
/// | any | `stop` | isolated or away, for good | its lease is ended |
/// | any | `received` a clock | same | `Action.clock`, if it has moved by a second |
struct OwnLease: Sendable {
  enum Change: Sendable { case began, ended }
  enum NameOutcome: Sendable {
    /// Nothing to do, or the wait continues.
    case waiting
    /// The other incarnation is over: its lease is to be ended.
    case isOver
    /// The other process has this node's calls.
    case lost
  }
  private struct Conflict: Sendable {
    var lease: NodeLease
    var since: Instant
    var isProbing = false
  }

  private let settings: ClusterMachine.Settings
  private(set) var state = SharedStoreState.away
  /// As other nodes read it.
  private(set) var published: NodeLease
  private(set) var isStopping = false
  private var until: Instant?
  private var granted: Instant?
  private var sent: Instant?
  private var conflict: Conflict?
  /// The last reported offset.
  private var clockOffset: Int64?

  init(_ settings: ClusterMachine.Settings) {
    self.settings = settings
    published = NodeLease(
      settings.incarnation, url: settings.url, sip: settings.sip, version: settings.version, configuration: settings.configuration
    )
    published.admin = settings.admin
  }

  func isValid(at now: Instant) -> Bool { until.map { $0 > now } ?? false }
  var hasHadOne: Bool { granted != nil }
  func age(at now: Instant) -> Duration? { granted.map { now - $0 } }
  /// What the last renewal showed of other nodes still counts.
  func isViewFresh(at now: Instant) -> Bool { granted.map { $0 + settings.lease > now } ?? false }
  var mayLead: Bool { !published.isDraining && !isStopping }
  /// The process that has this node's name.
  var namesake: NodeLease? { conflict?.lease }

  // MARK: the state

  mutating func update(_ step: inout Step) -> Change? {
    let next: SharedStoreState = !step.requests.isConnected ? .away : isValid(at: step.now) ? .up : .isolated
    guard next != state else { return nil }
    let wasUp = state == .up
    state = next
    step.actions.append(.state(next))
    return next == .up ? .began : wasUp ? .ended : nil
  }

  // MARK: renewing

  /// A reaper renews twice as often, so that it notices a death a second earlier.
  mutating func renew(isReaper: Bool, _ step: inout Step) {
    guard step.requests.isConnected, !isStopping, !step.requests.isClosed else { return step.timers.cancel(.renewal) }
    sent = step.now
    step.send(.renew(published, for: settings.lease), .renewal)
    let isWaiting = conflict != nil || until == nil
    let pause = isReaper ? settings.renewal / 2 : settings.renewal
    step.timers.schedule(.renewal, at: step.now + (isWaiting ? min(pause, .milliseconds(500)) : pause))
  }

  /// Renews out of turn; the next renewal stays due. False: the request was not sent.
  mutating func readLeases(_ step: inout Step) -> Bool {
    guard step.send(.renew(published, for: settings.lease), .renewal) else { return false }
    sent = step.now
    return true
  }

  /// Renews early, for changes that other nodes should see within less than 2 s and for unknown incarnations.
  func renewSoon(_ step: inout Step) {
    guard step.requests.isConnected else { return }
    let due = max(step.now, (sent ?? step.now - .seconds(1)) + .milliseconds(200))
    step.timers.schedule(.renewal, notLaterThan: due)
  }

  /// True: there was no lease until now, for the first time or again.
  mutating func granted(sent: Instant, _ step: inout Step) -> Bool {
    let hadNone = !isValid(at: step.now)
    until = max(until ?? sent + settings.lease, sent + settings.lease)
    granted = max(granted ?? sent, sent)
    step.timers.schedule(.leaseEnd, at: until)
    return hadNone
  }

  mutating func received(clock: Int64, _ step: inout Step) {
    guard Limits.clock.contains(clock) else { return }
    let offset = clock - step.now.nanoseconds / 1_000_000
    guard clockOffset.map({ abs($0 - offset) >= 1_000 }) ?? true else { return }
    clockOffset = offset
    step.actions.append(.clock(offsetMilliseconds: offset))
  }

  // MARK: the name

  mutating func nameIsFree() { conflict = nil }

  mutating func nameIsInUse(by other: NodeLease, _ step: inout Step) -> NameOutcome {
    guard !step.requests.isClosed else { return .waiting }
    // A failover has restored the lease of an older incarnation, which no process renews.
    let isGhost = hasHadOne && other.incarnation.started < settings.incarnation.started
    if other.incarnation == settings.predecessor || isGhost { return .isOver }
    until = nil
    if hasHadOne {
      step.requests.close()
      return .lost
    }
    if conflict?.lease.incarnation != other.incarnation { conflict = Conflict(lease: other, since: step.now) }
    guard let since = conflict?.since, step.now - since < Limits.nameWait else {
      giveUpName(to: other, &step)
      return .waiting
    }
    // At our own address our own user agent would answer.
    if conflict?.isProbing == false, other.sip != published.sip {
      conflict?.isProbing = true
      step.actions.append(.probe(other.incarnation, sip: other.sip))
    }
    return .waiting
  }

  /// The answer of `namesake`.
  mutating func probed(_ result: ProbeResult, _ step: inout Step) -> NameOutcome {
    guard let lease = conflict?.lease else { return .waiting }
    conflict?.isProbing = false
    switch result {
    case .answered: giveUpName(to: lease, &step)
    case .refused: return .isOver
    case .silent: break
    }
    return .waiting
  }

  private func giveUpName(to other: NodeLease, _ step: inout Step) {
    guard !step.requests.isClosed else { return }
    step.requests.close()
    step.actions.append(.nameInUse(by: other, atStart: true))
  }

  /// If two versions do not share a format, the node that starts yields. It ends the lease that its renewal has set.
  func refuse(_ other: NodeLease, _ step: inout Step) {
    guard !step.requests.isClosed else { return }
    step.send(.endLease(settings.incarnation), .none)
    step.requests.close()
    step.actions.append(.incompatible(with: other))
  }

  // MARK: the contents

  mutating func load(calls: Int, sessions: Int, refuses: Bool, _ step: inout Step) {
    let isNews = refuses != published.refuses
    published.calls = calls
    published.sessions = sessions
    published.refuses = refuses
    if isNews { renewSoon(&step) }
  }

  mutating func report(_ troubles: [String: String], _ step: inout Step) {
    let first = troubles.sorted { $0.key < $1.key }.prefix(Limits.troubles)
    let kept = Dictionary(first.map { ($0.key, $0.value) }, uniquingKeysWith: { a, _ in a })
    guard kept != published.troubles else { return }
    published.troubles = kept
    renewSoon(&step)
  }

  mutating func report(staleGrants digest: UInt64, _ step: inout Step) {
    guard digest != published.staleGrants else { return }
    published.staleGrants = digest
    renewSoon(&step)
  }

  mutating func move(to sip: String) { published.sip = sip }

  /// False: it drains already.
  mutating func drain(_ step: inout Step) -> Bool {
    guard !published.isDraining else { return false }
    published.isDraining = true
    renewSoon(&step)
    return true
  }

  mutating func stop(_ step: inout Step) {
    step.send(.endLease(settings.incarnation), .none)
    isStopping = true
    until = nil
    step.timers.cancel(.renewal)
  }
}
