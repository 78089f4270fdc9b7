public import AppProtocol
public import AppSessions
public import Bytes
public import Devices
import MediaSession
import SDP
public import SIPDialogs
public import Trunking

/// The call machine: trunk legs, app legs, media gate, routing, reasons and records, without clock, socket, thread or
/// randomness of its own.
///
/// Belongs to the control thread. Every input is one call of `handle`; everything it causes is in `output` when the call returns.
/// The life of one call stands in `Call`; here is who is called: events find their call, and new calls are admitted.
///
///     var output = Output()
///     machine.handle(.sip(.inviteReceived(leg, invite)), at: now, into: &output)
///     // output.actions: reserveMedia → handle(.mediaReserved), then journal, call.offer to each device …
public struct CallMachine {
  /// A call that waits for media, whose answer is the next input; or for the cluster.
  enum Pending {
    case incoming(Call)
    case outgoing(Call, offer: SessionDescription, DevicePresence, RequestToken)
    /// Between `locate` or `claim` and the cluster's answer: no call yet.
    case locating(Call, user: String, toward: IPAddress)
    case claiming(Call, offer: SessionDescription, DevicePresence, RequestToken)
    /// One that a program makes for a user, before and after the cluster's answer.
    case claimingOriginated(Call, QuestionID)
    case originated(Call, QuestionID)
    /// A call that a stream is to have.
    case stream(Call, StreamTarget)
    /// A call whose users the webhook has named.
    case asked
    /// The leg to the number that a call is diverted to.
    case diversion(DiversionPlan)
  }

  var configuration: Configuration
  var routing: Routing
  let random: RandomSource
  var wallOffset: Int64 = 0
  var isDraining = false

  var calls: [CallID: Call] = [:]
  /// The same, oldest first.
  var callOrder = OrderedKeys<CallNumber>()
  var pending: [CallID: Pending] = [:]
  var legs: [LegID: CallID] = [:]
  var sessions: [MediaSessionID: CallID] = [:]
  var direct = DirectDialogs()
  var userCache = UserCache()
  /// What tokens grant at other nodes was read once.
  var hasSharedGrants = false
  var callsOfUser: [String: [CallID]] = [:]
  var callsOfTrunk: [String: Int] = [:]
  /// Legs that wait for a slot among their trunk's calls of all nodes; one at a time of a call.
  var slotRequests: [CallID: SlotRequest] = [:]
  /// Nodes that take calls, this one included.
  var nodeCount = 1
  /// Devices with a session that lives, connected or not, by user.
  var presences = Presences()
  /// Every device that can be woken, and what its user wants.
  public internal(set) var devices = DeviceRegistry()
  var tombstones = Tombstones()
  /// Who waits to hear how a call of another node ended.
  var tombstoneReaders: [CallID: [TombstoneReader]] = [:]
  var deadlines = DeadlineQueue<CallID>()
  var counters = CallStatistics()
  var nextNumber: UInt64 = 1
  /// Where the trunks are and how they do; nil: each has its fixed `peer`.
  var trunking: TrunkMachine?
  var trunkOutput = TrunkMachine.Output()
  var isTrunkingConfigured = false
  /// Taken out of use by an operator, until they take it back or the trunk leaves the configuration.
  var disabledTrunks: Set<String> = []
  /// Whether each trunk was up when that was told last.
  var reportedTrunks: [String: Bool] = [:]
  var blockedCallers = BlockedCallers()
  var rates: [String: TokenBucket] = [:]
  var quota = UserQuota()
  /// Of test calls.
  var testQuota = UserQuota()

  public init(
    configuration: Configuration = Configuration(), routing: Routing, random: RandomSource, network: TrunkMachine.Network? = nil
  ) {
    (self.configuration, self.routing, self.random) = (configuration, routing, random)
    self.routing.settle()
    trunking = network.map { TrunkMachine(network: $0, random: random, sharesDuties: configuration.isClustered) }
  }

  /// `Configuration.bounds.calls`.
  public var mostCalls: Int { configuration.bounds.calls }

  /// When `handle(.timer)` is due; nil if nothing waits.
  public var nextDeadline: Instant? {
    .earliest(.earliest(deadlines.next, tombstones.nextExpiry), trunking?.nextDeadline)
  }

  /// After `trunking(.unregister)`: registrars have yet to answer.
  public var isUnregistering: Bool { trunking?.isUnregistering ?? false }

  /// The start line of the call that a leg belongs to; nil if it has none on disk, or is over.
  public func startLine(of leg: LegID, at now: Instant) -> StartLine? {
    guard let id = legs[leg], let call = calls[id], call.isLive, call.hasStartLine else { return nil }
    return call.startLine(Step(now: now, configuration: configuration, random: random, wallOffset: wallOffset))
  }

  /// Whose devices may show a call.
  public func users(of call: CallID) -> [String] { calls[call]?.users.concerned ?? [] }

  /// What devices hear that come late for a call; nil if it lives, or is forgotten.
  public func over(of call: CallID) -> CallOver? { tombstones[call]?.over }

  /// What devices hear that were woken for a call and come late; nil if none was, or the call lives or is forgotten.
  public func overOfWoken(_ call: CallID) -> CallOver? { tombstones[call].flatMap { $0.wasPushed ? $0.over : nil } }

  /// A device's session here, as it last said.
  public func session(of key: DeviceKey) -> (SessionID, DeviceInfo)? { presence(key).map { ($0.session, $0.info) } }

  /// The legs of a call toward trunks.
  public func legs(of call: CallID) -> [LegID] { calls[call]?.legs.map(\.id) ?? [] }

  /// What a trunk's challenges are answered with.
  public func credentials(of trunk: String) -> Credentials? {
    let known = routing.trunk(trunk)
    return known?.peer?.credentials ?? known?.settings?.credentials
  }

  /// What the SIP user agent is to be told of each trunk, now and after each `Input.routing`.
  public var trunkRules: [String: TrunkRules] { routing.rules }
  /// What login tokens may grant; nil: nothing.
  public var grantRules: GrantRules? { routing.directory.grantRules }

  /// Takes one input and appends what it causes to `output`.
  public mutating func handle(_ input: Input, at now: Instant, into output: inout Output) {
    // what this input itself causes has the time already
    if case .wallClock(let offset) = input { wallOffset = offset }
    var step = Step(now: now, configuration: configuration, random: random, wallOffset: wallOffset)
    swap(&step.output, &output)
    swap(&step.statistics, &counters)
    dispatch(input, &step)
    connectDirectLegs(&step)
    swap(&step.output, &output)
    swap(&step.statistics, &counters)
  }

  mutating func dispatch(_ input: Input, _ step: inout Step) {
    // The registry is filled before anything runs, and its effects are not reported: trunks wait for the first other input.
    if !input.isOfStore, !isTrunkingConfigured { configureTrunks(&step) }
    switch input {
    case .sip(let event): handle(event, &step)
    case .app(let event): handle(event, &step)
    case .media(let event): handle(event, &step)
    case .mediaReserved(let id, let reservation): reserved(id, reservation, &step)
    case .mediaRefused(let id, let reason, let isOverload):
      reservationRefused(id, isOverload ? .mediaOverload : .mediaPorts, reason, &step)
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
    case .admitted(let id, let trunk, let isAdmitted): admitted(id, trunk, isAdmitted, &step)
    case .nodes(let count): nodesCounted(count)
    case .tombstone(let id, let found): tombstoneRead(id, found, &step)
    case .orphaned(let line, let users): orphaned(line, users, &step)
    case .remoteCallLost(let id, let user): remoteCallLost(id, user, &step)
    case .reaped(let id): reaped(id, &step)
    case .remoteDeviceConnected(let remote): remoteDeviceConnected(remote, &step)
    case .devices(let command): handle(command, &step)
    case .callerKnown(let id, let caller): change(id, &step) { $0.callerKnown(caller, &$1) }
    case .verified(let id, let attestation): verified(id, attestation, &step)
    case .push(let settings): configuration.push = settings
    case .events(let rules): configuration.events = rules
    case .recorded(let report): recorded(report, &step)
    case .stream(let news): change(news.call, &step) { $0.handle(news, &$1) }
    case .blocked(let scope, let numbers): blockedCallers.replace(scope, with: numbers)
    case .grants(let stored, let now):
      granted(routing.directory.grants.load(stored, at: now), &step)
      granted(routing.directory.grants.keep(routing.directory.grantRules), &step)
    case .sharedGrants(let grants): merge(grants, &step)
    case .routing(let routing):
      replace(routing, &step)
      reportedTrunks = reportedTrunks.filter { routing.trunk($0.key) != nil }
      configureTrunks(&step)
    case .ownAddresses(let own): for index in routing.trunks.indices { routing.trunks[index].ownAddresses = own }
    case .unanswered(let request): unanswered(request, &step)
    case .trunking(let input): handle(input, &step)
    case .setTrunk(let name, let isDisabled):
      if !isDisabled { disabledTrunks.remove(name) } else if routing.trunk(name) != nil { disabledTrunks.insert(name) }
      reportTrunk(name, &step)
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
    if let due = trunking?.nextDeadline, due <= step.now { handle(TrunkMachine.Input.timer, &step) }
    while let id = deadlines.popDue(at: step.now) {
      while let timer = calls[id]?.timers.popDue(at: step.now) {
        switch timer {
        case .finalStatistics: finish(id, nil, &step)
        case .verification: verified(id, nil, &step)
        default: change(id, &step) { $0.expired(timer, &$1) }
        }
      }
      deadlines.schedule(id, at: calls[id]?.timers.next)
    }
  }

  /// Applies an event to a call, if it is there, and does what the call says that it means.
  mutating func change(_ id: CallID?, _ step: inout Step, _ body: (inout Call, inout Step) -> Void) {
    guard let id, calls[id]?.apply(body, &step) != nil else { return }
    performOutcomes(of: id, &step)
  }

  /// Does what a call says that a change means. Not inlined: `change` is specialised for each of its callers' closures, and all of this with it
  /// would take a third of the module's time to compile.
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
    deadlines.schedule(id, at: calls[id]?.timers.next)
  }

  /// A tombstone tells who comes late; the record waits for the final statistics, if there is media.
  private mutating func ended(_ id: CallID, _ step: inout Step) {
    guard let call = calls[id] else { return }
    remember(call, &step)
    leaveGroup(id, &step)
    if call.appMedia.reservation == nil { finish(id, nil, &step) }
  }

  private mutating func remember(_ call: Call, _ step: inout Step) {
    let end = call.bookkeeping.end ?? .init(.unknown, by: .gateway)
    let isAnswered = call.ringsDevices && call.winner != nil
    let reason = isAnswered ? .answeredElsewhere : call.divertedReason ?? call.bookkeeping.reasonForOthers ?? end.reason
    let over = CallOver(reason, by: end.by, at: step.wallNow, sip: end.sip)
    let forgotten = tombstones.insert(
      Tombstone(
        users: call.users.concerned, direction: call.ringsDevices ? .incoming : .outgoing,
        owner: call.ringsDevices ? nil : call.winner,
        over: over,
        terminals: call.terminals, wasPushed: call.bookkeeping.wasPushed,
        expires: step.now + configuration.timers.tombstone),
      for: call.id)
    for id in forgotten { step.app(.wakesOver(id)) }
  }

  /// A leg that its call is done with. One that was never invited has no `legClosed` to come.
  private mutating func release(_ leg: TrunkLeg, at now: Instant) {
    if leg.phase == .idle { legs[leg.id] = nil }
    if leg.id.isOutbound, !leg.isTrunkOutcomeReported { trunking?.callUndecided(leg.trunk.name, at: now) }
    releaseTrunk(leg.trunk.name)
  }

  /// An outbound leg that will be invited uses a slot of its trunk.
  mutating func claim(_ leg: LegID, _ trunk: Routing.Trunk, for id: CallID, at now: Instant) {
    legs[leg] = id
    callsOfTrunk[trunk.name, default: 0] += 1
    trunking?.callStarted(trunk.name, at: now)
  }

  /// Writes the record and forgets the call; its SIP leg is forgotten with `legClosed`.
  mutating func finish(_ id: CallID, _ statistics: MediaStatistics?, _ step: inout Step) {
    guard let call = calls.removeValue(forKey: id) else { return }
    callOrder.remove(CallNumber(call))
    if call.appMedia.reservation != nil, statistics == nil { step.statistics.recordsWithoutMedia += 1 }
    step.statistics.states[call.state, default: 0] -= 1
    if call.bookkeeping.isDisowned {
      step.output.actions.append(.disowned(id))
    } else {
      let record = call.record(statistics, step)
      step.statistics.ended[record.end.reason, default: [:]][record.end.by, default: 0] += 1
      step.output.actions.append(.record(record))
    }
    for leg in call.legs { if let session = leg.session { sessions[session] = nil } }
    deadlines.schedule(id, at: nil)
    for leg in call.legs { release(leg, at: step.now) }
    for user in call.users.concerned {
      callsOfUser[user]?.removeAll { $0 == id }
      if callsOfUser[user]?.isEmpty ?? false { callsOfUser[user] = nil }
    }
  }

  /// A call exists from here on, and has one record.
  mutating func admit(_ call: Call, _ step: inout Step) {
    step.statistics.started[call.direction, default: [:]][call.trunk.name, default: 0] += 1
    step.statistics.states[call.state, default: 0] += 1
    calls[call.id] = call
    callOrder.insert(CallNumber(call))
    legs[call.trunkLeg.id] = call.id
    sessions[call.session] = call.id
    for user in call.users.ringing { callsOfUser[user, default: []].append(call.id) }
    callsOfTrunk[call.trunk.name, default: 0] += 1
    if call.direction == .outgoing { trunking?.callStarted(call.trunk.name, at: step.now) }
  }

  mutating func makeNumber() -> UInt64 {
    defer { nextNumber += 1 }
    return nextNumber
  }
}
