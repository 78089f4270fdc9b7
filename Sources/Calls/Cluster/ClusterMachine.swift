import AppSessions
import CallFlow
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
/// This node and the shared store (`SharedStoreState`):
///
/// | state | event | next | effect |
/// |---|---|---|---|
/// | away | `connected` | isolated | renews at once; writes its state again after 0–5 s; no reaping for 10 s |
/// | isolated | a renewal is granted | up | reads its own entries, at least twice: calls that others closed are `reaped`, other calls that ended meanwhile `recordsDue` |
/// | isolated | another incarnation of the name has a lease | isolated | the predecessor's is ended; else `probe`, `nameInUse` |
/// | up | 6 s without a granted renewal | isolated | steers and reaps nothing |
/// | up | another incarnation of the name has a lease | isolated | `reaped`, `nameInUse` |
/// | any | `lost` | away | questions are answered from memory at once |
///
/// Another node (`Suspect.Verdict`). Only the leader of `reaper` probes it and closes its calls, or the node that got `forget`:
///
/// | state | event | next | effect |
/// |---|---|---|---|
/// | living | its lease has ended | missing | `probe` |
/// | living | more than half of the leases have ended with it | held | nothing |
/// | living | its lease has ended, and another incarnation of its name has one | dead | all its calls are closed |
/// | missing, silent | probe answered | cutOff | probed again every 5 s |
/// | missing, cutOff | probe silent | silent | after 4 s ringing calls are closed, after `lostAfter` all; probed again every 2 s |
/// | missing, cutOff, silent | probe refused | dead | all its calls are closed |
/// | held | probe answered or not | held | – |
/// | any but living | `forget`, or another incarnation of its name | dead | all its calls are closed |
/// | any but living | it has a lease again | living | calls that are not being closed yet stay |
/// | dead, silent | a reading finds no entry | – | its shares of trunks are removed |
public struct ClusterMachine: Sendable {
  public let settings: Settings
  public internal(set) var statistics = ClusterStatistics()
  public internal(set) var state = SharedStoreState.away

  let random: RandomSource
  var timers = DeadlineQueue<Timer>()
  var requests: [SharedStoreRequestID: PendingRequest] = [:]
  /// Oldest first, to find the requests without a reply.
  var requestOrder: [SharedStoreRequestID] = []
  var requestHead = 0
  var lastRequest: UInt64 = 0

  // this node
  var lease: NodeLease
  var isConnected = false
  var isStopping = false
  var leasedUntil: Instant?
  var lastGranted: Instant?
  var renewalSent: Instant?
  /// After a time without shared store or lease this node neither probes nor reaps before this time.
  var calmUntil = Instant.zero
  var conflict: (lease: NodeLease, since: Instant, isProbing: Bool)?
  var isNameInUse = false

  // other nodes
  /// Nodes with a lease in the last renewal.
  var peers: [Incarnation: NodeLease] = [:]
  var peerOfName: [String: Incarnation] = [:]
  var suspects: [Incarnation: Suspect] = [:]
  var departed = BoundedTable<Incarnation, Instant?>(most: Limits.departed)
  /// Nodes that the reaper reports as dead: shown to people, and not evidence.
  var reportedDead = BoundedTable<Incarnation, Void>(most: Limits.reapedNodes)
  /// Dead nodes whose calls are all closed, shown to people.
  var reaped = BoundedTable<Incarnation, NodeLease>(most: Limits.reapedNodes)
  /// Incarnations in a hint or a message that were not in the last renewal; and when they were seen first.
  var unknown: [Incarnation: Instant] = [:]
  var early: [(message: ClusterMessage, from: Incarnation)] = []
  var probes = TokenBucket(perSecond: Limits.probesPerSecond)
  var vanishings: [(at: Instant, count: Int)] = []
  /// The number of nodes before so many vanished that they are held.
  var nodesBeforeHold = 0

  /// The last reported troubles of other nodes' trunks, and the last reported number of nodes.
  var troubles: [String: String] = [:]
  var nodeCount = 1
  /// The last reported offset.
  var clockOffset: Int64?

  // questions
  var questions: [UInt64: Question] = [:]
  var lastQuestion: UInt64 = 0
  var leaseWaiters: [UInt64] = []

  // calls and devices here
  var calls: [CallID: OwnCall] = [:]
  /// Calls with an entry, in the order of their ids: a reader of all of them reads in steps.
  var entryOrder = OrderedKeys<EntryKey>()
  var callsOfUser: [String: Set<CallID>] = [:]
  var callsOfTrunk: [String: Int] = [:]
  var callsAtLoss: [String: Int] = [:]
  var sharesSent: [String: UInt64] = [:]
  var devices: [DeviceKey: OwnDevice] = [:]
  var devicesOfUser: [String: Set<String>] = [:]
  var lastDevice: UInt64 = 0

  // memory, used while the shared store is away
  var memory = BoundedTable<String, Remembered>(most: Limits.rememberedUsers)
  var revocations = BoundedTable<DeviceKey, Void>(most: Limits.revocations)

  // deferred writes
  var writesOfCalls = KeyQueue<WriteKey>(most: Limits.unwritten)
  var writesOfDevices = KeyQueue<WriteKey>(most: Limits.unwritten)
  var registrations = BoundedTable<DeviceKey, Registration>(most: Limits.unwritten)
  /// Removals of the last minute, oldest first: a failover may have lost them.
  var recent: [(key: WriteKey, at: Instant)] = []
  var recentHead = 0
  var restoreFrom: Instant?
  var mustReview = false
  var wasFlushed = false
  var flushedAt: Instant?
  var writes: TokenBucket
  var restores: TokenBucket

  var grants = GrantSync()

  // tasks
  var tasks: [SingleTask: TaskState] = [.reaper: TaskState()]
  var limitedTrunks: Set<String> = []
  var lastScan: UInt64 = 0
  var reapQueue: [ReapItem] = []
  var reapHead = 0
  var closed = BoundedTable<CallID, Void>(most: Limits.reapQueue)
  var inherited: [CallID: Inherited] = [:]
  var inheritedOrder: [CallID] = []
  /// The pending read of our own entries: what was found so far, and since when.
  var ownReading: (found: Set<CallID>, since: Instant, isSecond: Bool)?
  /// Whether other nodes may have closed our calls; and whether our lease has ended since that was known last, so that our
  /// entries must be read.
  var confirmation = ConfirmationState.none
  var mustReadOwn = false
  /// Calls that ended in such a time; and until when each record waits, oldest first.
  var unconfirmedEnds: [CallID: UnconfirmedEnd] = [:]
  var unconfirmedEndsByTime: [(call: CallID, until: Instant)] = []

  /// - Parameter random: spreads actions in time, nothing else.
  public init(_ settings: Settings, random: RandomSource, at now: Instant) {
    (self.settings, self.random) = (settings, random)
    lease = NodeLease(
      settings.incarnation, url: settings.url, sip: settings.sip, version: settings.version, configuration: settings.configuration
    )
    lease.admin = settings.admin
    writes = TokenBucket(perSecond: Limits.firstWritesPerSecond, at: now)
    restores = TokenBucket(perSecond: Limits.restoresPerSecond, at: now)
  }

  public var incarnation: Incarnation { settings.incarnation }

  /// When `handle(.timer)` is due; nil if nothing waits.
  public var nextDeadline: Instant? { timers.next }

  /// Time since the last granted renewal; nil: none was granted.
  public func leaseAge(at now: Instant) -> Duration? { lastGranted.map { now - $0 } }

  /// All known nodes, ours first, the others by name. Leaves out dead incarnations of a node that has returned.
  public var nodes: [SeenNode] {
    let all = unsortedNodes
    return Array(all.prefix(1)) + all.dropFirst().sorted { $0.lease.incarnation < $1.lease.incarnation }
  }

  /// Ours first, the others in any order.
  var unsortedNodes: [SeenNode] {
    let own = SeenNode(lease: lease, liveness: lease.isDraining ? .draining : .living)
    // a node with our name is queried, too: its address must be known as a node's
    let leases = peers.values + (conflict.map { [$0.lease] } ?? [])
    let living = leases.map { SeenNode(lease: $0, liveness: $0.isDraining ? .draining : .living) }
    let names = Set(([own] + living).map(\.lease.incarnation.node))
    let others =
      living
      + (suspects.values.map { SeenNode(lease: $0.lease, liveness: state(of: $0)) }
      + reaped.keys.filter { suspects[$0] == nil }.compactMap { reaped[$0].map { SeenNode(lease: $0, liveness: .dead) } })
      .filter { $0.liveness != .dead || !names.contains($0.lease.incarnation.node) }
    return [own] + others
  }

  private func state(of suspect: Suspect) -> SeenNode.Liveness {
    !suspect.isHeld && reportedDead[suspect.lease.incarnation] != nil ? .dead : suspect.state
  }

  /// The tasks that this node leads.
  public var leads: Set<SingleTask> { Set(tasks.filter { $0.value.until != nil }.keys) }

  /// The number of writes that are deferred.
  public var unwritten: Int { writesOfCalls.count + writesOfDevices.count + grants.unwritten.count }

  /// The time and the actions of one input.
  struct Step {
    let now: Instant
    var actions: [Action]
  }

  /// Handles one input and appends its actions to `output`. Costs a few dictionary accesses; a reply with a page of entries, or a
  /// `timer` that restores or reaps, at most some hundred.
  public mutating func handle(_ input: Input, at now: Instant, into output: inout Output) {
    var step = Step(now: now, actions: [])
    swap(&step.actions, &output.actions)
    // A process that was suspended learns first, from its clock, that its lease has ended.
    updateState(&step)
    handle(input, &step)
    updateState(&step)
    swap(&step.actions, &output.actions)
  }

  private mutating func handle(_ input: Input, _ step: inout Step) {
    switch input {
    case .sharedStore(let event): sharedStore(event, &step)
    case .deviceCame(let key, let session, let info): deviceCame(key, session, info, &step)
    case .deviceChanged(let key, let session, let info): deviceChanged(key, session, info, &step)
    case .deviceLeft(let key, let session): deviceLeft(key, session, &step)
    case .devices(let changes): register(changes, &step)
    case .revoke(let key): revoke(key, &step)
    case .sessionState(let request, let key): sessionState(request, key, &step)
    case .locate(let question): locate(question, &step)
    case .claim(let claim): self.claim(claim, &step)
    case .admit(let call, let trunk, let most): admit(call, trunk, most, &step)
    case .released(let call, let trunk): release(call, trunk, &step)
    case .started(let line, let users): started(line, users, &step)
    case .ended(let call, let over): ended(call, over, &step)
    case .tombstone(let call): tombstone(call, &step)
    case .wake(let call, let key, let node, let content): wake(call, key, node, content, &step)
    case .load(let calls, let sessions, let refuses): load(calls, sessions, refuses, &step)
    case .draining: drain(&step)
    case .troubles(let troubles): say(troubles, &step)
    case .moved(let sip): lease.sip = sip
    case .stopping: stop(&step)
    case .trunks(let single, let limited): trunks(single, limited, &step)
    case .inherited(let entries, let before): inherit(entries, before, &step)
    case .probed(let incarnation, let result): probed(incarnation, result, &step)
    case .forget(let node): forget(node, &step)
    case .sharesGrants(let isOn): sharesGrants(isOn, &step)
    case .grants(let grants): share(grants, &step)
    case .timer: break
    }
    while let timer = timers.popDue(at: step.now) { fire(timer, &step) }
  }

  private mutating func fire(_ timer: Timer, _ step: inout Step) {
    switch timer {
    case .renewal: renewalDue(&step)
    case .leaseEnd: break  // `updateState`
    case .restore: restore(&step)
    case .reap: reapStep(&step)
    case .inherited: inheritStep(&step)
    case .question(let id): if let question = questions.removeValue(forKey: id) { answer(question, &step) }
    case .task(let task): taskDue(task, &step)
    case .suspect(let incarnation): suspectDue(incarnation, &step)
    case .ownEntries: readOwnEntries(isSecond: true, &step)
    case .unconfirmedEnds: confirmationDue(&step)
    case .grants: goOnWithGrants(&step)
    }
  }

  // MARK: requests

  /// False: the request was not sent, and no reply follows.
  @discardableResult
  mutating func send(_ request: SharedStoreRequest, _ purpose: Purpose, _ step: inout Step) -> Bool {
    guard isConnected, !isNameInUse, requests.count < Limits.requests else { return false }
    lastRequest += 1
    let id = SharedStoreRequestID(lastRequest)
    requests[id] = PendingRequest(purpose: purpose, sent: step.now)
    requestOrder.append(id)
    step.actions.append(.sharedStore(id, request))
    return true
  }

  /// Fails the requests that had no reply within `Limits.replyWait`.
  mutating func sweepRequests(_ step: inout Step) {
    while requestHead < requestOrder.count {
      let id = requestOrder[requestHead]
      if let request = requests[id] {
        guard step.now - request.sent > Limits.replyWait else { break }
        replied(id, .failure(.timeout), &step)
      }
      requestHead += 1
    }
    if requestHead > 1_024, requestHead * 2 > requestOrder.count {
      requestOrder.removeFirst(requestHead)
      requestHead = 0
    }
  }

  /// A random duration below `most`.
  func jitter(_ most: Duration) -> Duration {
    .nanoseconds(Int64(random.next() % UInt64(max(1, most.nanoseconds))))
  }
}
