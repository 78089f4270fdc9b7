import AppSessions
import CallModel
import Devices
public import TrunklineBytes

/// This node's part in the cluster: its lease, and its view of the other nodes: leases, incarnations, whereabouts, wakes, limits,
/// single tasks, and the calls of nodes that died. Sans I/O; on the control thread beside `CallMachine`, which it never accesses.
/// It exchanges `SharedStoreRequest`, `SharedStoreReply` and `SharedStoreEvent` with the shared store. Docs:
/// docs/design/cluster.md; the purpose of each part: docs/design/cluster-failures.md, Mechanisms.
///
///     machine.handle(.locate(question), at: now, into: &output)
///     for action in output.actions { … }      // .sharedStore(id, .locate(…)), and after its reply .located(call, .here(…))
///     output.removeAll()
///
/// It has no state but that of its parts, each of which has its transition table: `OwnLease` (this node and the shared store),
/// `Peers` and `Suspects` (other nodes), `ReapQueue` and `InheritedCalls` (their calls), `TaskLeadership`, `CallTable`, `DeviceTable`,
/// `UserMemory`, `QuestionTable`, `DeferredWrites`, `StateReview`, `UnconfirmedEnds`, `GrantSync`. What one part's change means for others:
///
/// | change | effect |
/// |---|---|
/// | connected | renews at once; writes its state again after 0–5 s; no reaping for 10 s |
/// | our lease begins | tasks are requested; suspects are checked after 10 s; own entries are read, at least twice: calls that others closed are `reaped`, other calls that ended meanwhile `recordsDue` |
/// | our lease ends | steers and reaps nothing; ends of calls are unconfirmed |
/// | disconnected | the same; questions are answered from memory at once |
/// | the store lost its data | all is written again, grants are compared, no reaping for 10 s |
/// | another process has our name | the predecessor's lease is ended, and its calls are closed; else `nameInUse`, after `reaped` if it has our calls |
/// | a node's lease ends | it is a suspect; its tasks are requested soon. Only the leader of `reaper` probes it and closes its calls, or the node that got `forget` |
/// | no entry of a dead node is left | its shares of trunks are removed |
public struct ClusterMachine: Sendable {
  public let settings: Settings
  public private(set) var statistics = ClusterStatistics()

  private let random: RandomSource
  private var timers = DeadlineQueue<Timer>()
  private var requests = RequestTable()

  var lease: OwnLease
  var peers = Peers()
  var suspects: Suspects
  var reaping = ReapQueue()
  var inherited = InheritedCalls()
  var questions: QuestionTable
  var calls = CallTable()
  var devices = DeviceTable()
  var memory = UserMemory()
  var writes: DeferredWrites
  var review = StateReview()
  var grants: GrantSync
  var tasks: TaskLeadership
  var unconfirmedEnds: UnconfirmedEnds

  /// - Parameter random: spreads actions in time, nothing else.
  public init(_ settings: Settings, random: RandomSource, at now: Instant) {
    (self.settings, self.random) = (settings, random)
    lease = OwnLease(settings)
    suspects = Suspects(settings)
    questions = QuestionTable(wait: settings.wait)
    writes = DeferredWrites(spread: settings.restoreSpread, at: now)
    grants = GrantSync(spread: settings.restoreSpread)
    tasks = TaskLeadership(settings.incarnation, length: settings.leadership)
    unconfirmedEnds = UnconfirmedEnds(settings.incarnation)
  }

  public var state: SharedStoreState { lease.state }
  public var incarnation: Incarnation { settings.incarnation }

  /// When `handle(.timer)` is due; nil if nothing waits.
  public var nextDeadline: Instant? { timers.next }

  /// Time since the last granted renewal; nil: none was granted.
  public func leaseAge(at now: Instant) -> Duration? { lease.age(at: now) }

  /// All known nodes, ours first, the others by name. Leaves out dead incarnations of a node that has returned.
  public var nodes: [SeenNode] {
    let all = unsortedNodes
    return Array(all.prefix(1)) + all.dropFirst().sorted { $0.lease.incarnation < $1.lease.incarnation }
  }

  /// Ours first, the others in any order.
  var unsortedNodes: [SeenNode] {
    let own = SeenNode(lease: lease.published)
    // a node with our name is queried, too: its address must be known as a node's
    let living = (peers.all + (lease.namesake.map { [$0] } ?? [])).map { SeenNode(lease: $0) }
    let names = Set(([own] + living).map(\.lease.incarnation.node))
    return [own] + (living + suspects.seen).filter { $0.liveness != .dead || !names.contains($0.lease.incarnation.node) }
  }

  /// The tasks that this node leads.
  public var leads: Set<SingleTask> { tasks.leads }

  /// This call has ended, and its record waits for `Action.recordsDue` or `reaped`.
  public func isEndUnconfirmed(_ call: CallID) -> Bool { unconfirmedEnds.has(call) }

  /// Calls whose records wait.
  public var unconfirmedEndCount: Int { unconfirmedEnds.count }

  /// The number of writes that are deferred.
  public var unwritten: Int { writes.count + grants.waiting }

  /// Handles one input and appends its actions to `output`. Costs a few dictionary accesses; a reply with a page of entries, or a
  /// `timer` that restores or reaps, at most some hundred.
  public mutating func handle(_ input: Input, at now: Instant, into output: inout Output) {
    var step = Step(now: now, random: random)
    exchange(&step, &output)
    // A process that was suspended learns first, from its clock, that its lease has ended.
    updateState(&step)
    handle(input, &step)
    updateState(&step)
    grants.reportUncertain(&step)
    exchange(&step, &output)
  }

  /// Moves the outputs into the step before it, and back after it: they are never copied.
  private mutating func exchange(_ step: inout Step, _ output: inout Output) {
    swap(&step.actions, &output.actions)
    swap(&step.requests, &requests)
    swap(&step.timers, &timers)
    swap(&step.statistics, &statistics)
  }

  private mutating func handle(_ input: Input, _ step: inout Step) {
    switch input {
    case .sharedStore(let event): sharedStore(event, &step)
    case .deviceCame(let key, let session, let info): deviceCame(key, on: session, info, &step)
    case .deviceChanged(let key, let session, let info): deviceChanged(key, on: session, info, &step)
    case .deviceLeft(let key, let session): deviceLeft(key, session, &step)
    case .devices(let changes): register(changes, &step)
    case .revoke(let key): revoke(key, &step)
    case .sessionState(let request, let key): sessionState(request, key, &step)
    case .locate(let question): locate(question, &step)
    case .claim(let claim): self.claim(claim, &step)
    case .admit(let call, let trunk, let most): admit(call, to: trunk, most: most, &step)
    case .released(let call, let trunk): release(call, trunk, &step)
    case .started(let line, let users): started(line, users, &step)
    case .ended(let call, let over): ended(call, over, &step)
    case .tombstone(let call): tombstone(call, &step)
    case .wake(let content, let key, let node): wake(content, key, at: node, &step)
    case .load(let calls, let sessions, let refuses):
      lease.load(calls: calls, sessions: sessions, refuses: refuses, &step)
    case .draining: drain(&step)
    case .troubles(let troubles): lease.report(troubles, &step)
    case .moved(let sip): lease.move(to: sip)
    case .stopping: stop(&step)
    case .trunks(let single, let limited): trunks(single: single, limited: limited, &step)
    case .inherited(let entries, let before): inherit(entries, before, &step)
    case .probed(let incarnation, let result): probed(incarnation, result, &step)
    case .forget(let node): forget(node, &step)
    case .sharesGrants(let isOn): grants.turn(on: isOn, nodes: knownNodes, &step)
    case .grants(let new): grants.share(new, nodes: knownNodes, &step)
    case .restoreGrants(let batch): grants.restore(batch, nodes: knownNodes, &step)
    case .grantsCompared: grants.compared(nodes: knownNodes, &step)
    case .staleGrants(let digest):
      lease.report(staleGrants: digest, &step)
      compareStaleGrants()
    case .timer: break
    }
    while let timer = step.timers.popDue(at: step.now) { fire(timer, &step) }
  }

  mutating func compareStaleGrants() {
    grants.compareStale(lease.published.staleGrants, others: peers.all.lazy.map(\.staleGrants))
  }

  private mutating func fire(_ timer: Timer, _ step: inout Step) {
    switch timer {
    case .renewal: renewalDue(&step)
    case .leaseEnd: break  // `updateState`
    case .restore: restore(&step)
    case .reap: reapStep(&step)
    case .inherited: inheritStep(&step)
    case .question(let id): if let question = questions.remove(id) { answer(question, &step) }
    case .task(let task): taskDue(task, &step)
    case .suspect(let incarnation): suspectDue(incarnation, &step)
    case .ownEntries: if state == .up || lease.isValid(at: step.now) { unconfirmedEnds.startReading(isSecond: true, &step) }
    case .unconfirmedEnds: write(unconfirmedEnds.due(&step), &step)
    case .grants: grants.resume(nodes: knownNodes, &step)
    }
  }
}
