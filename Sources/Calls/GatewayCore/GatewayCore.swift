import AppSessions
public import CallFlow
public import CallModel
public import Cluster
public import TrunklineBytes
public import TrunklineSIPDialogs

/// The SIP user agent, the call machine and the pump between them: all of the gateway's signalling, without a clock, socket or
/// thread.
///
/// Every input is one call of `handle`; the events of the user agent become inputs of the call machine, first in first out, and
/// its commands go to the user agent in their order among the other actions. When `handle` returns, neither machine has more
/// output.
///
/// One question is answered within the step: whether there is media for a call. An INVITE or CANCEL that arrived in between would
/// find a call that does not exist yet. The answer is the call machine's next input; no machine is re-entered.
///
///     core.handle(.sip(.received(datagram, flow, trunk: "carrier")), at: now, into: &output) { request in
///       .mediaReserved(request.call, plane.reserve(request))
///     }
///     for effect in output.effects { … }
///     output.removeAll()
public struct GatewayCore {
  /// An input of the gateway.
  public enum Input: Sendable {
    /// An input of the SIP transport, or overload.
    case sip(UserAgent.Input)
    /// The legs that a dead process left open.
    case orphaned([OrphanedLeg])
    /// Request a sign of life from a silent node; `cluster(.probed)` follows inside, unless the caller has given it up.
    case probe(Incarnation, uri: String, Flow)
    /// A statement of the shared store, other nodes or an operator; ignored without a cluster.
    case cluster(ClusterMachine.Input)
    /// The machine's addresses or routes have changed. `sip`: where other nodes reach us, as the lease states it.
    case moved(OwnAddresses, AdvertisedAddresses, sip: String)
    /// Trunk legs of these calls whose address was removed continue at another: their media as `reserve` states, their dialogs
    /// over these flows.
    case moveCalls([CallID], flows: [LegID: Flow])
    /// Everything else. The user agent is notified of `routing` and `draining`, too.
    case call(CallMachine.Input)
    /// `now` has reached `nextDeadline` (early or late calls are harmless).
    case timer
  }

  /// An effect of an input.
  public enum Effect: Sendable {
    case sendSIP(UserAgent.Output.Message)
    /// The peer of a flow has answered a challenge.
    case authenticated(Flow)
    /// A request had no answer on this connection, which accepted it after `since`.
    case silent(Flow, since: Instant)
    /// A challenge of another realm than the trunk's was left unanswered.
    case challengeRefused(trunk: String, realm: String)
    /// `sharedStore`, `probe`, `close`, `reapedBefore`, `forgotten`, `nameInUse`, `incompatible`, `state` or `news`;
    /// `sharedStore` is answered with `cluster(.sharedStore)`.
    case cluster(ClusterMachine.Action)
    /// An action of the call machine; never `sip`, `reserveMedia` or what the cluster answers. The `journal` ones are the step's
    /// last.
    case action(CallMachine.Action)
  }

  /// The effects of a `handle` call, in order: media is notified before the trunk can send. Owned by the caller and reused.
  public struct Output: Sendable {
    public var effects: [Effect] = []
    public init() {}
    /// Empties the list and keeps its storage.
    public mutating func removeAll() { effects.removeAll(keepingCapacity: true) }
  }

  public private(set) var userAgent: UserAgent
  public private(set) var machine: CallMachine
  /// Nil: this node is alone.
  public internal(set) var cluster: ClusterMachine?
  var clustered = ClusterMachine.Output()
  /// OPTIONS to silent nodes.
  var probes: [RequestID: Incarnation] = [:]
  private var lastProbe = GatewayCore.firstProbe
  /// False: the nodes still use their own clocks.
  var knowsSharedStoreClock = false
  /// An operator revokes devices in this step: other nodes are notified.
  var isRevoking = false
  /// Inputs of sessions that wait for the cluster's answer: a grant and a `connected` of each at most.
  var coming: [SessionID: [CallMachine.Input]] = [:]
  /// The rules for grants of tokens, as last sent to the cluster machine.
  var grantRules: GrantRules?
  /// Of calls that ended while this node had no lease. A call that another node closed has that node's record.
  var heldRecords: [CallID: CallRecord] = [:]
  private var signalling = UserAgent.Output()
  private var calls = CallMachine.Output()
  /// Inputs that the present step caused, first in first out, from `next` on.
  var pending: [CallMachine.Input] = []
  var next = 0
  /// Start lines of the present step, the latest of each call, and legs that are closed otherwise than their calls' lines state.
  private var journalEntries: [JournalEntry] = []
  private var changedLegs: [LegID] = []

  /// Above every number of the trunk machine's requests.
  private static let firstProbe: UInt64 = 1 << 63

  mutating func nextProbe() -> RequestID {
    lastProbe += 1
    // One that was given up is forgotten with its transaction; only a few are open at a time.
    if probes.count > Self.mostProbes { probes.removeAll() }
    return RequestID(lastProbe)
  }
  private static let mostProbes = 1_000

  public init(userAgent: UserAgent, machine: CallMachine, cluster: ClusterMachine? = nil) {
    (self.userAgent, self.machine, self.cluster) = (userAgent, machine, cluster)
    self.userAgent.handle(.rules(machine.trunkRules), at: .zero, into: &signalling)
    grantRules = machine.grantRules
    self.cluster?.handle(.sharesGrants(grantRules != nil), at: .zero, into: &clustered)
  }

  /// When `handle(.timer)` is due; nil if nothing waits.
  public var nextDeadline: Instant? {
    .earliest(.earliest(userAgent.nextDeadline, machine.nextDeadline), cluster?.nextDeadline)
  }

  /// A page of the live calls (`CallMachine.callPage`).
  public mutating func callPage(after last: CallNumber?, most: Int) -> CallPage { machine.callPage(after: last, most: most) }
  public mutating func callRow(_ id: CallID) -> CallRow? { machine.callRow(id) }

  /// Handles one input and appends all its effects to `output`.
  /// - Parameter reserve: Whether there is media for a call: `mediaReserved` or `mediaRefused`, and `mediaMoved` for a request
  ///   that `moves`. Must not wait.
  public mutating func handle(
    _ input: Input, at now: Instant, into output: inout Output, reserve: (MediaRequest) -> CallMachine.Input
  ) {
    switch input {
    case .orphaned(let legs):
      signal(.orphaned(legs.map { ($0, machine.credentials(of: $0.trunk)) }), at: now, into: &output)
    case .sip(let input):
      signal(input, at: now, into: &output)
      if case .transportFailed(let flow, _, _) = input, flow.transport.isReliable { pending.append(.trunking(.flowLost(flow))) }
    case .call(let input):
      if case .routing(let routing) = input { signal(.rules(routing.rules), at: now, into: &output) }
      if case .draining = input { signal(.draining(true), at: now, into: &output) }
      if case .devices(.revoke) = input { isRevoking = true }
      if case .wallClock(let offset) = input, cluster != nil, !knowsSharedStoreClock {
        signal(.sharedClock(offsetMilliseconds: offset), at: now, into: &output)
      }
      if !waits(input, at: now) { pending.append(input) }
    case .cluster(let input):
      cluster(input, at: now)
      // A registration may end without an event.
      if case .load = input { sendTroubles(at: now) }
    case .moved(let own, let advertised, let sip):
      signal(.moved(own, advertised), at: now, into: &output)
      cluster(.moved(sip: sip), at: now)
      pending += [.ownAddresses(own.addresses), .trunking(.networkChanged)]
    case .moveCalls(let calls, let flows):
      // Media first: the offers of moved legs name its new address.
      pending.append(.moveTrunkLegs(calls))
      signal(.moveLegs(flows), at: now, into: &output)
    case .probe(let incarnation, let uri, let flow): probe(incarnation, uri: uri, over: flow, at: now, into: &output)
    case .timer:
      if let due = userAgent.nextDeadline, due <= now { signal(.timer, at: now, into: &output) }
      if let due = machine.nextDeadline, due <= now { pending.append(.timer) }
      if let due = cluster?.nextDeadline, due <= now { cluster(.timer, at: now) }
    }
    drainCluster(at: now, into: &output)
    pump(at: now, into: &output, reserve)
  }

  /// Handles one input of the user agent: its messages are sent, its events wait for the call machine.
  mutating func signal(_ input: UserAgent.Input, at now: Instant, into output: inout Output) {
    userAgent.handle(input, at: now, into: &signalling)
    for flow in signalling.authenticated { output.effects.append(.authenticated(flow)) }
    for (flow, since) in signalling.silent { output.effects.append(.silent(flow, since: since)) }
    changedLegs += signalling.changedLegs
    for message in signalling.messages { output.effects.append(.sendSIP(message)) }
    for request in signalling.unanswered { pending.append(.unanswered(request)) }
    for event in signalling.events {
      if case .challengeRefused(let trunk, let realm) = event {
        output.effects.append(.challengeRefused(trunk: trunk, realm: realm))
      } else if case .requestAnswered(let id, let outcome) = event, let probed = probes.removeValue(forKey: id) {
        if let result = outcome.probed { cluster(.probed(probed, result), at: now) }
      } else {
        pending.append(.sip(event))
      }
    }
    signalling.removeAll()
  }

  private mutating func pump(at now: Instant, into output: inout Output, _ reserve: (MediaRequest) -> CallMachine.Input) {
    while next < pending.count {
      let input = pending[next]
      next += 1
      machine.handle(input, at: now, into: &calls)
      notifyCluster(input, at: now)
      var answers: [CallMachine.Input] = []
      for action in calls.actions {
        switch action {
        case .sip(let command): signal(.command(command), at: now, into: &output)
        case .reserveMedia(let request): answers.append(reserve(request))
        case .journal(let line): note(line)
        default: if cluster == nil || !notifyCluster(action, at: now) { output.effects.append(.action(action)) }
        }
      }
      calls.removeAll()
      drainCluster(at: now, into: &output)
      if !answers.isEmpty { pending.insert(contentsOf: answers, at: next) }
    }
    pending.removeAll(keepingCapacity: true)
    next = 0
    isRevoking = false
    writeStartLines(at: now, into: &output)
  }

  private mutating func note(_ line: JournalEntry) {
    journalEntries.removeAll { $0.call == line.call }
    journalEntries.append(line)
  }

  /// With the closing lines of the legs: the user agent knows these only once the step is over.
  private mutating func writeStartLines(at now: Instant, into output: inout Output) {
    for leg in changedLegs { if let line = machine.journalEntry(of: leg, at: now) { note(line) } }
    changedLegs.removeAll(keepingCapacity: true)
    for var line in journalEntries {
      let legs = machine.legs(of: line.call).compactMap { userAgent.orphan(of: $0, withholdsCaller: line.withholdsCaller) }
      if !legs.isEmpty { line.legs = legs }
      output.effects.append(.action(.journal(line)))
      cluster(.started(line, users: machine.users(of: line.call)), at: now)
    }
    drainCluster(at: now, into: &output)
    journalEntries.removeAll(keepingCapacity: true)
  }
}
