public import AppSessions
public import CallModel
public import Devices
public import Trunking
public import TrunklineAppProtocol
public import TrunklineBytes
import TrunklineMediaSession
public import TrunklineSIPDialogs

/// The call machine: trunk legs, app legs, media gate, routing, reasons and records, without clock, socket, thread or
/// randomness of its own.
///
/// Belongs to the control thread. Every input is one call of `handle`; everything it causes is in `output` when the call returns.
/// `Call` contains the life of one call. Here events are passed to their call, and new calls are admitted.
///
///     var output = Output()
///     machine.handle(.sip(.inviteReceived(leg, invite)), at: now, into: &output)
///     // output.actions: reserveMedia → handle(.mediaReserved), then journal, call.offer to each device …
public struct CallMachine {
  private(set) var configuration: CallConfiguration
  private(set) var routing: Routing
  let random: RandomSource
  private(set) var wallOffset: Int64 = 0
  private(set) var isDraining = false

  var calls = CallRegistry()
  var pending = PendingCalls()
  var direct = DirectDialogs()
  var userCache = UserCache()
  var sharedGrants = SharedGrantState()
  var grantRestoring = GrantRestoring()
  var grantReview = GrantReview()
  var slots = SlotRequests()
  var trunkCapacity = TrunkCapacity()
  var trunkHealth: TrunkHealth
  var presences = Presences()
  /// Every registered device, with its user's preferences.
  public internal(set) var devices = DeviceRegistry()
  var tombstones = Tombstones()
  var tombstoneQueries = TombstoneQueries()
  private var counters = CallStatistics()
  private(set) var nextNumber: UInt64 = 1
  var blockedCallers = BlockedCallers()
  var quota = UserQuota()
  /// Of test calls.
  var testQuota = UserQuota()

  public init(
    configuration: CallConfiguration = CallConfiguration(), routing: Routing, random: RandomSource,
    network: TrunkMachine.Network? = nil
  ) {
    (self.configuration, self.routing, self.random) = (configuration, routing, random)
    self.routing.settle()
    trunkHealth = TrunkHealth(network, random: random, sharesDuties: configuration.isClustered)
  }

  /// `CallConfiguration.bounds.calls`.
  public var mostCalls: Int { configuration.bounds.calls }

  /// When `handle(.timer)` is due; nil if nothing waits.
  public var nextDeadline: Instant? {
    .earliest(.earliest(calls.nextDeadline, tombstones.nextExpiry), .earliest(trunkHealth.nextDeadline, grantReview.nextStep))
  }

  /// After `trunking(.unregister)`: registrars have yet to answer.
  public var isUnregistering: Bool { trunkHealth.isUnregistering }

  /// The journal entry of the call that a leg belongs to; nil if it has none on disk, or is over.
  public func journalEntry(of leg: LegID, at now: Instant) -> JournalEntry? {
    guard let id = calls.id(of: leg), let call = calls[id], call.isLive, call.journal.hasEntry else { return nil }
    return call.journalEntry(Step(now: now, configuration: configuration, random: random, wallOffset: wallOffset))
  }

  /// The users whose devices may show a call.
  public func users(of call: CallID) -> [String] { calls[call]?.users.concerned ?? [] }

  /// The end for devices that connect late for a call; nil if the call is live, or no longer known.
  public func over(of call: CallID) -> CallOver? { tombstones[call]?.over }

  /// The end for devices that were woken for a call and connect late; nil if none was woken, or the call is live or no longer
  /// known.
  public func overOfWoken(_ call: CallID) -> CallOver? { tombstones[call].flatMap { $0.wasPushed ? $0.over : nil } }

  /// A device's session here, with its latest info.
  public func session(of key: DeviceKey) -> (SessionID, DeviceInfo)? { presences[key].map { ($0.session, $0.info) } }

  /// The legs of a call toward trunks.
  public func legs(of call: CallID) -> [LegID] { calls[call]?.legs.map(\.id) ?? [] }

  /// The credentials for a trunk's challenges.
  public func credentials(of trunk: String) -> Credentials? {
    let known = routing.trunk(trunk)
    return known?.peer?.credentials ?? known?.settings?.credentials
  }

  /// The rules of each trunk for the SIP user agent, now and after each `Input.routing`.
  public var trunkRules: [String: TrunkRules] { routing.rules }
  /// What login tokens may grant; nil: nothing.
  public var grantRules: GrantRules? { routing.directory.grantRules }
  /// Users whose grant of a login token the shared store lacks: this node serves its copy.
  public var staleGrants: Int { routing.directory.grants.stale.count }
  /// Their number, and how long ago a token last named the oldest of these grants; nil: none.
  public func lostGrants(at now: Instant) -> (users: Int, age: Duration)? {
    routing.directory.grants.lost(at: now.nanoseconds / 1_000_000 + wallOffset)
  }

  /// Counters, and gauges as of now.
  public var statistics: CallStatistics {
    var result = counters
    result.tombstones = tombstones.count
    return result
  }

  /// Handles one input and appends the actions that it causes to `output`.
  public mutating func handle(_ input: Input, at now: Instant, into output: inout Output) {
    // the actions of this input use the new offset already
    if case .wallClock(let offset) = input { wallOffset = offset }
    var step = Step(now: now, configuration: configuration, random: random, wallOffset: wallOffset)
    swap(&step.output, &output)
    swap(&step.statistics, &counters)
    dispatch(input, &step)
    connectDirectLegs(&step)
    reportStaleGrants(&step)
    swap(&step.output, &output)
    swap(&step.statistics, &counters)
  }

  mutating func dispatch(_ input: Input, _ step: inout Step) {
    // The store's inputs fill the registry before anything runs, and their actions have no reader: trunks are configured with the
    // first other input.
    if !input.isOfStore, !trunkHealth.isConfigured { configureTrunks(&step) }
    switch input {
    case .sip(let event): handle(event, &step)
    case .app(let event): handle(event, &step)
    case .media(let event): handle(event, &step)
    case .mediaReserved(let id, let reservation): reserved(id, reservation, &step)
    case .mediaRefused(let id, let reason, let isOverload):
      reservationRefused(id, isOverload ? .mediaOverload : .mediaPorts, detail: reason, &step)
    case .mediaMoved(let id, let session, let local):
      if let local { change(id, &step) { $0.mediaMoved(session, to: local, &$1) } }
    case .appCandidates(let candidates, let calls): networkChanged(candidates, of: calls, &step)
    case .moveTrunkLegs(let calls): moveTrunkLegs(of: calls, &step)
    case .journalled(let id): change(id, &step) { $0.journalled(&$1) }
    case .routed(let id, let answer): routed(id, answer, &step)
    case .userKnown(let question, let answer): userKnown(question, answer, &step)
    case .pushed(let report): pushed(report, &step)
    case .located(let id, let answer): located(id, answer, &step)
    case .claimed(let id, let answer): claimed(id, answer, &step)
    case .admitted(let id, let trunk, let isAdmitted): admitted(id, to: trunk, isAdmitted: isAdmitted, &step)
    case .nodes(let count): trunkCapacity.share(among: count, routing.trunks)
    case .tombstone(let id, let found): tombstoneRead(id, found, &step)
    case .orphaned(let line, let users): orphaned(line, users, &step)
    case .reaped(let id): reaped(id, &step)
    case .remote(let event): handle(event, &step)
    case .devices(let command): handle(command, &step)
    case .callerKnown(let id, let caller): change(id, &step) { $0.callerKnown(caller, &$1) }
    case .verified(let id, let attestation): verified(id, attestation, &step)
    case .push(let settings): configuration.push = settings
    case .events(let rules): configuration.events = rules
    case .recorded(let report): recorded(report, &step)
    case .stream(let news): change(news.call, &step) { $0.handle(news, &$1) }
    case .blocked(let scope, let numbers): blockedCallers.replace(scope, with: numbers)
    case .grants(let stored, let now): loadGrants(stored, at: now, &step)
    case .sharedGrants(let grants): apply(grants, &step)
    case .grantsUncertain(let isUncertain): sharedGrants.setUncertain(isUncertain)
    case .restoreGrants(let question): restoreGrants(question, &step)
    case .grantsRestored(let users, let hasFailed): grantsRestored(users, hasFailed, &step)
    case .routing(let routing):
      replace(routing, &step)
      configureTrunks(&step)
    case .ownAddresses(let own): for index in routing.trunks.indices { routing.trunks[index].ownAddresses = own }
    case .unanswered(let request): unanswered(request, &step)
    case .trunking(let input): handle(input, &step)
    case .setTrunk(let name, let isDisabled): setTrunk(name, isDisabled: isDisabled, &step)
    case .wallClock: break
    case .draining: isDraining = true
    case .hangUp(let id): change(id, &step) { $0.hangUp(&$1) }
    case .command(let id, let command, let question):
      let refusal = perform(command, id, &step)
      step.answer(question, refusal.map { .refused($0) } ?? .done)
    case .originate(let wanted, let question): originate(wanted, question, &step)
    case .timer: fire(&step)
    }
  }

  private mutating func fire(_ step: inout Step) {
    for id in tombstones.removeExpired(at: step.now) { step.app(.wakesOver(id)) }
    if let due = trunkHealth.nextDeadline, due <= step.now { handle(TrunkMachine.Input.timer, &step) }
    if let due = grantReview.nextStep, due <= step.now { reviewGrants(&step) }
    while let id = calls.popDue(at: step.now) {
      while let timer = calls.popDueTimer(of: id, at: step.now) {
        switch timer {
        case .finalStatistics: finish(id, nil, &step)
        case .verification: verified(id, nil, &step)
        default: change(id, &step) { $0.expired(timer, &$1) }
        }
      }
    }
  }

  /// Applies an event to a call, if it exists, and performs the outcomes that the call reports.
  mutating func change(_ id: CallID?, _ step: inout Step, _ body: (inout Call, inout Step) -> Void) {
    guard let id, calls.change(id, { body(&$0, &step) }) != nil else { return }
    performOutcomes(of: id, &step)
  }

  /// Performs the outcomes of a change. Not inlined: `change` is specialised for each of its callers' closures, and inlined into
  /// each of them this would take a third of the module's time to compile.
  @inline(never) private mutating func performOutcomes(of id: CallID, _ step: inout Step) {
    let outcomes = step.outcomes
    step.outcomes.removeAll()
    for outcome in outcomes {
      switch outcome {
      case .diverts(let planned): divert(id, planned, &step)
      case .routeTimedOut: routed(id, nil, &step)
      case .legLeft(let leg):
        release(leg, at: step.now)
        releaseSlot(leg, of: id, &step)
      case .numberAnswered: numberAnswered(id, &step)
      case .connected: connected(id, &step)
      case .ended: ended(id, &step)
      }
    }
  }

  /// Leaves a tombstone for devices that connect late; the record waits for the final statistics, if there is media.
  private mutating func ended(_ id: CallID, _ step: inout Step) {
    guard let call = calls[id] else { return }
    remember(call, &step)
    leaveGroup(id, &step)
    if call.reservation == nil { finish(id, nil, &step) }
  }

  private mutating func remember(_ call: Call, _ step: inout Step) {
    let end = call.conclusion.end ?? .init(.unknown, by: .gateway)
    let isAnswered = call.ringsDevices && call.winner != nil
    let reason = isAnswered ? .answeredElsewhere : call.divertedReason ?? call.conclusion.reasonForOthers ?? end.reason
    let over = CallOver(reason, by: end.by, at: step.wallNow, sip: end.sip)
    let forgotten = tombstones.insert(
      Tombstone(
        users: call.users.concerned, direction: call.ringsDevices ? .incoming : .outgoing,
        owner: call.ringsDevices ? nil : call.winner,
        over: over,
        terminals: call.terminals.all, wasPushed: call.pushes.hasWoken,
        expires: step.now + configuration.timers.tombstone),
      for: call.id)
    for id in forgotten { step.app(.wakesOver(id)) }
  }

  /// Releases a leg that its call no longer needs. One that was never invited gets no `legClosed`.
  private mutating func release(_ leg: TrunkLeg, at now: Instant) {
    if leg.phase == .idle { calls.detach(leg.id) }
    if leg.id.isOutbound, !leg.isTrunkOutcomeReported { trunkHealth.callUndecided(leg.trunk.name, at: now) }
    trunkCapacity.end(leg.trunk.name)
  }

  /// Counts a leg of ours that is to be invited among its trunk's calls.
  mutating func claim(_ leg: LegID, _ trunk: Routing.Trunk, for id: CallID, at now: Instant) {
    calls.attach(leg, to: id)
    trunkCapacity.begin(trunk.name)
    trunkHealth.callStarted(trunk.name, at: now)
  }

  /// Writes the record and removes the call; its SIP leg is removed with `legClosed`.
  mutating func finish(_ id: CallID, _ statistics: MediaStatistics?, _ step: inout Step) {
    guard let call = calls.remove(id) else { return }
    if call.reservation != nil, statistics == nil { step.statistics.recordsWithoutMedia += 1 }
    step.statistics.states[call.state, default: 0] -= 1
    if call.conclusion.isDisowned {
      step.output.actions.append(.disowned(id))
    } else {
      let record = call.record(statistics, step)
      step.statistics.ended[record.end.reason, default: [:]][record.end.by, default: 0] += 1
      step.output.actions.append(.record(record))
    }
    for leg in call.legs { release(leg, at: step.now) }
  }

  /// A call exists from here on, and has one record.
  mutating func admit(_ call: Call, _ step: inout Step) {
    step.statistics.started[call.direction, default: [:]][call.trunk.name, default: 0] += 1
    step.statistics.states[call.state, default: 0] += 1
    calls.insert(call)
    trunkCapacity.begin(call.trunk.name)
    if call.direction == .outgoing { trunkHealth.callStarted(call.trunk.name, at: step.now) }
  }

  // MARK: routing

  /// Replaces the routing, and keeps the grants that the new one allows; if it has other rules for them, in steps.
  private mutating func replace(_ new: Routing, _ step: inout Step) {
    var grants = UserGrants()
    swap(&grants, &routing.directory.grants)
    let (rules, hadSource) = (routing.directory.grantRules, routing.userSource != nil)
    routing = new
    routing.settle()
    swap(&grants, &routing.directory.grants)
    guard new.userSource == nil, hadSource || new.directory.grantRules != rules else { return }
    grantReview.begin(at: step.now)
    reviewGrants(&step)
  }

  /// In place. All else of the routing changes with an input only.
  mutating func changeGrants<Result, Fault: Error>(
    _ body: (inout UserGrants) throws(Fault) -> Result
  ) throws(Fault) -> Result { try body(&routing.directory.grants) }

  // MARK: numbers

  /// Of sessions, legs and groups: each once.
  mutating func makeNumber() -> UInt64 {
    defer { nextNumber += 1 }
    return nextNumber
  }
}
