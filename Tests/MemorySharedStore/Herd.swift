import AppSessions
import Cluster
public import TrunklineBytes

/// Many devices over a `ClusterWorld`: the node of each device's socket, its reconnecting when that node dies, and the resulting
/// load of nodes and shared store. A device whose node dies waits a random time up to `spread` (sessions of the node ÷ 2,000 a
/// second, at most 60 s) and connects to the load balancer's choice: any node that runs; if that one is dead by then, again after
/// 0.5–5 s.
public final class Herd {
  public let world: ClusterWorld
  public let count: Int
  /// The most hellos of any node in any second.
  public private(set) var mostHellos = 0
  public private(set) var hellos = 0
  /// A digest of every hello and welcome: equal for equal seeds.
  public private(set) var digest: UInt64 = 0xcbf2_9ce4_8422_2325

  private var random: SplitMix64
  /// The node of the socket, or -1; the number of the session; whether it was welcomed.
  private var nodeOf: [Int]
  private var sessions: [Int]
  private var isWelcome: [Bool]
  private var helloCounts: [Int: (second: Int64, count: Int)] = [:]
  private var devicesOf: [Set<Int>]

  public init(nodes: Int, devices: Int, seed: UInt64) {
    count = devices
    random = SplitMix64(seed: seed)
    world = ClusterWorld(nodes: nodes, seed: seed)
    nodeOf = Array(repeating: -1, count: devices)
    sessions = Array(repeating: 0, count: devices)
    isWelcome = Array(repeating: false, count: devices)
    devicesOf = Array(repeating: [], count: nodes)
    world.onAction = { [unowned self] in note($0) }
  }

  private static func key(_ device: Int) -> DeviceKey { DeviceKey(user: "u\(device)", device: "d") }
  private func seconds(_ most: Double) -> Duration {
    .nanoseconds(Int64(Double.random(in: 0...1, using: &random) * most * 1e9))
  }
  private func mix(_ value: Int) { digest = (digest ^ UInt64(truncatingIfNeeded: value)) &* 0x100_0000_01b3 }

  /// The spread that `welcome` announces, in seconds.
  public static func spread(sessions: Int) -> Double { min(60, Double(sessions) / 2_000) }

  // MARK: events

  /// Connects all devices for the first time.
  public func fill(over length: Double) {
    for device in 0..<count { world.after(seconds(length)) { [unowned self] in connect(device) } }
  }

  public func kill(_ nodes: [Int], restartAfter pause: Duration? = nil) {
    for node in nodes {
      world.kill(node)
      let lost = devicesOf[node].sorted()
      devicesOf[node] = []
      let spread = Self.spread(sessions: lost.count)
      for device in lost {
        (nodeOf[device], isWelcome[device]) = (-1, false)
        world.after(seconds(spread)) { [unowned self] in connect(device) }
      }
      guard let pause else { continue }
      world.after(pause) { [unowned self] in world.restart(node) }
    }
  }

  private func connect(_ device: Int) {
    guard nodeOf[device] < 0 else { return }
    // A load balancer soon knows which nodes run.
    let first = Int.random(in: 0..<world.nodes.count, using: &random)
    guard
      let node = (0..<4).lazy.map({ (first + $0 * 7) % self.world.nodes.count }).first(where: { self.world.nodes[$0].isAlive })
    else {
      world.after(.milliseconds(500) + seconds(4.5)) { [unowned self] in connect(device) }
      return
    }
    nodeOf[device] = node
    devicesOf[node].insert(device)
    sessions[device] += 1
    hellos += 1
    let second = world.now.nanoseconds / 1_000_000_000
    var seen = helloCounts[node] ?? (second, 0)
    if seen.second != second { seen = (second, 0) }
    seen.count += 1
    helloCounts[node] = seen
    mostHellos = max(mostHellos, seen.count)
    mix(device &* 31 &+ node)
    world.input(node, .deviceCame(Self.key(device), SessionID("s\(sessions[device])"), DeviceInfo()))
  }

  private func note(_ logged: ClusterWorld.Logged) -> Bool {
    guard case .welcome(let key, let session, _, _) = logged.action, let device = Int(key.user.dropFirst()) else { return true }
    mix(device)
    mix(Int(truncatingIfNeeded: logged.at.nanoseconds))
    if nodeOf[device] == logged.node, session.text == "s\(sessions[device])" { isWelcome[device] = true }
    return true
  }

  // MARK: observations

  /// Devices that are welcomed at a node that runs.
  public var connected: Int { isWelcome.count { $0 } }
  /// Devices whose location in the shared store is right.
  public var entered: Int {
    (0..<count).count { device in
      isWelcome[device]
        && world.sharedStore.store.whereabouts["u\(device)"]?["d"]?.incarnation == world.incarnation(nodeOf[device])
    }
  }
  /// Deferred writes of all nodes.
  public var unwritten: Int { world.nodes.reduce(0) { $0 + ($1.isAlive ? $1.machine.unwritten : 0) } }
  public func mostCommands(since start: Instant) -> Int {
    world.sharedStore.commands.filter { $0.key >= start.nanoseconds / 1_000_000_000 }.values.max() ?? 0
  }
  public func resetMarks() { mostHellos = 0 }
}

/// The disturbances that a cluster must recover from, one after the other over one herd, each with its result.
public struct HerdRun {
  public struct Result {
    public var name: String
    public var mostHellos = 0
    public var mostCommands = 0
    /// Fraction of the devices, 60 s after the disturbance ended.
    public var connected = 0.0
    public var entered = 0.0
    /// Commands a second and node after 90 s, and deferred writes: no writes repeat endlessly.
    public var idleCommands = 0.0
    public var unwritten = 0
  }
  public let herd: Herd
  public private(set) var results: [Result] = []

  public init(nodes: Int, devices: Int, seed: UInt64) {
    herd = Herd(nodes: nodes, devices: devices, seed: seed)
    herd.world.run(for: .seconds(10))
    herd.fill(over: 40)
    herd.world.run(for: .seconds(60))
  }

  private mutating func disturb(_ name: String, lasting length: Duration = .zero, _ act: (Herd) -> Void) -> Result {
    let world = herd.world
    var result = Result(name: name)
    let start = world.now
    herd.resetMarks()
    act(herd)
    world.run(for: length + .seconds(60))
    result.connected = Double(herd.connected) / Double(herd.count)
    result.entered = Double(herd.entered) / Double(herd.count)
    world.run(for: .seconds(30))
    result.mostHellos = herd.mostHellos
    result.mostCommands = herd.mostCommands(since: start)
    let before = world.sharedStore.total
    world.run(for: .seconds(10))
    result.idleCommands = Double(world.sharedStore.total - before) / 10 / Double(world.nodes.count)
    result.unwritten = herd.unwritten
    results.append(result)
    return result
  }

  /// Disturbs a node, a third of the nodes, the shared store, and everything at once. Calls `onResult` after each.
  public mutating func all(onResult: (Result) -> Void = { _ in }) {
    let nodes = herd.world.nodes.count
    onResult(disturb("a node") { $0.kill([0], restartAfter: .seconds(30)) })
    onResult(disturb("a third of the nodes") { $0.kill(Array(0..<nodes / 3), restartAfter: .seconds(30)) })
    onResult(
      disturb("the shared store, for 15 s, flushed", lasting: .seconds(15)) { herd in
        herd.world.sharedStore.goDown(at: herd.world.now)
        herd.world.after(.seconds(15)) { herd.world.sharedStore.comeUp(isFlushed: true, at: herd.world.now) }
      })
    onResult(
      disturb("everything at once") { herd in
        herd.world.sharedStore.goDown(at: herd.world.now)
        herd.world.after(.seconds(3)) { herd.world.sharedStore.comeUp(isFlushed: true, at: herd.world.now) }
        herd.kill(Array(0..<nodes), restartAfter: .seconds(2))
      })
  }
}
