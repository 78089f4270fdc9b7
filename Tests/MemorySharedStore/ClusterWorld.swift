public import Cluster
public import TrunklineBytes

/// Cluster machines over a `MemorySharedStore` on virtual time: processes that begin, stop, are frozen and die, and a network in
/// which OPTIONS are answered or not.
public final class ClusterWorld {
  public struct Node {
    public fileprivate(set) var machine: ClusterMachine
    public fileprivate(set) var isAlive = true
    /// SIGSTOP: nothing is handled until it is thawed.
    public fileprivate(set) var isFrozen = false
    /// Its host has failed too: OPTIONS are not even refused.
    public fileprivate(set) var isHostGone = false
    fileprivate var held: [ClusterMachine.Input] = []
  }
  public struct Logged {
    public var at: Instant
    public var node: Int
    public var incarnation: Incarnation
    public var action: ClusterMachine.Action
  }

  public private(set) var now = Instant.zero
  public var sharedStore: MemorySharedStore
  public private(set) var nodes: [Node] = []
  /// All actions but `sharedStore` and `probe`, oldest first, except those that `onAction` handles.
  public private(set) var log: [Logged] = []
  /// True: the action is not kept in `log`.
  public var onAction: ((Logged) -> Bool)?
  /// Each OPTIONS that a reaper sends.
  public var onProbe: ((Instant, Incarnation) -> Void)?
  /// Changes the settings of nodes that begin from now on.
  public var adjust: (inout ClusterMachine.Settings) -> Void = { _ in }

  private var due = DeadlineQueue<Int>()
  private var steps = EventHeap<() -> Void>()
  private var output = ClusterMachine.Output()
  private let seed: UInt64
  private var lives: Int64 = 0

  public init(nodes count: Int, seed: UInt64, adjust: @escaping (inout ClusterMachine.Settings) -> Void = { _ in }) {
    (self.seed, self.adjust) = (seed, adjust)
    sharedStore = MemorySharedStore(seed: seed ^ 0x9e37)
    for index in 0..<count {
      nodes.append(Node(machine: make(index, predecessor: nil)))
      begin(index)
    }
  }

  public static func name(_ index: Int) -> String { "n\(index)" }
  public static func sip(_ index: Int) -> String { "sip:10.0.\(index / 250).\(index % 250):5060" }

  private func make(_ index: Int, predecessor: Incarnation?, name: String? = nil) -> ClusterMachine {
    lives += 1
    var settings = ClusterMachine.Settings(
      Incarnation(node: name ?? Self.name(index), started: lives), url: "wss://\(Self.name(index))/v1/connect",
      sip: Self.sip(index), version: "1")
    settings.predecessor = predecessor
    adjust(&settings)
    return ClusterMachine(settings, random: .seeded(seed &* 31 &+ UInt64(lives)), at: now)
  }

  private func begin(_ index: Int) {
    sharedStore.attach(index, nodes[index].machine.incarnation, at: now)
    due.schedule(index, at: nodes[index].machine.nextDeadline)
  }

  // MARK: processes

  public func incarnation(_ index: Int) -> Incarnation { nodes[index].machine.incarnation }

  public func kill(_ index: Int, withHost: Bool = false) {
    nodes[index].isAlive = false
    nodes[index].isFrozen = false
    nodes[index].isHostGone = withHost
    nodes[index].held = []
    sharedStore.detach(index)
    due.cancel(index)
  }
  /// Starts a new process of the node.
  public func restart(_ index: Int, knowsPredecessor: Bool = true) {
    let before = nodes[index].machine.incarnation
    nodes[index] = Node(machine: make(index, predecessor: knowsPredecessor ? before : nil))
    begin(index)
  }
  /// Adds a node; optionally under the name of another one.
  @discardableResult public func add(named name: String? = nil) -> Int {
    nodes.append(Node(machine: make(nodes.count, predecessor: nil, name: name)))
    begin(nodes.count - 1)
    return nodes.count - 1
  }
  public func freeze(_ index: Int) {
    nodes[index].isFrozen = true
    due.cancel(index)
  }
  public func thaw(_ index: Int) {
    nodes[index].isFrozen = false
    let held = nodes[index].held
    nodes[index].held = []
    input(index, .timer)
    for input in held { self.input(index, input) }
  }

  // MARK: running

  public func input(_ index: Int, _ input: ClusterMachine.Input) {
    guard nodes[index].isAlive else { return }
    if nodes[index].isFrozen { return nodes[index].held.append(input) }
    nodes[index].machine.handle(input, at: now, into: &output)
    let next = nodes[index].machine.nextDeadline
    // a deadline that stays in the past stops or spins the loop that waits for it
    if case .timer = input { precondition(next.map { $0 > now } ?? true, "node \(index) waits for a deadline that is past") }
    due.schedule(index, at: next)
    if output.actions.isEmpty { return }
    var actions: [ClusterMachine.Action] = []
    swap(&actions, &output.actions)
    for action in actions { carryOut(action, index) }
  }

  public func at(_ time: Instant, _ step: @escaping () -> Void) { steps.add(step, at: max(time, now)) }
  public func after(_ wait: Duration, _ step: @escaping () -> Void) { at(now + wait, step) }

  public func run(for length: Duration) { run(until: now + length) }

  public func run(until end: Instant) {
    while true {
      let next = min(sharedStore.next ?? .distantFuture, due.next ?? .distantFuture, steps.next ?? .distantFuture)
      guard next <= end else { break }
      now = max(now, next)
      if let first = steps.next, first <= now, let step = steps.pop() { step.event() }
      while let (client, event) = sharedStore.take(at: now) { input(client, .sharedStore(event)) }
      while let index = due.popDue(at: now) { input(index, .timer) }
    }
    now = end
  }

  private func carryOut(_ action: ClusterMachine.Action, _ index: Int) {
    switch action {
    case .sharedStore(let id, let request): sharedStore.send(index, id, request, at: now)
    case .probe(let incarnation, let sip): probe(incarnation, sip, by: index)
    default:
      let logged = Logged(at: now, node: index, incarnation: nodes[index].machine.incarnation, action: action)
      if onAction?(logged) != true { log.append(logged) }
    }
  }

  /// Probes by address: the process at the address answers.
  private func probe(_ incarnation: Incarnation, _ sip: String, by index: Int) {
    onProbe?(now, incarnation)
    let target = nodes.indices.first { nodes[$0].machine.settings.sip == sip }
    let isRefused = target.map { !nodes[$0].isAlive && !nodes[$0].isHostGone } ?? false
    after(isRefused ? .milliseconds(1) : .seconds(1)) { [weak self] in
      guard let self else { return }
      let isAnswered = target.map { self.nodes[$0].isAlive && !self.nodes[$0].isFrozen } ?? false
      self.input(index, .probed(incarnation, isRefused ? .refused : isAnswered ? .answered : .silent))
    }
  }
}
