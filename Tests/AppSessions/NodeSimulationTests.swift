import AppSessions
import Testing
import TrunklineAppProtocol
import TrunklineBytes

/// Three nodes and a few devices that connect, break, wake and resume at random nodes, while nodes die, restart and drain. The
/// nodes' knowledge of each other is always a little old.
private struct World {
  struct Node {
    var bench: Bench
    var isDraining = false
  }
  /// A socket and its client's data. `wake`: a further socket, for a call.
  struct Socket {
    var node: Int
    var client: Client
    var isWake: Bool
  }
  static let names = ["n1", "n2", "n3"]
  let random: RandomSource
  let seed: UInt64
  var nodes: [Node]
  var started: Int64 = 1_690_000_000_000
  var now = Duration.zero
  var sockets: [Socket] = []
  /// The data that clients would resume with, the newest last.
  var held: [Socket] = []
  var wakes: [(node: String, token: String)] = []
  var welcomed = 0
  var sentOn = 0

  init(seed: UInt64) {
    (random, self.seed) = (.seeded(seed), seed)
    nodes = Self.names.map { Node(bench: Bench(node: $0, seed: seed)) }
    for index in nodes.indices { tell(index) }
  }

  func below(_ count: Int) -> Int { Int(random.next() % UInt64(count)) }
  func chance(_ percent: Int) -> Bool { below(100) < percent }

  /// Notifies a node of the living ones.
  mutating func tell(_ index: Int) {
    nodes[index].bench.perform(
      .nodes(nodes.map { $0.bench.seen(isOpen: !$0.isDraining, sessions: $0.bench.machine.connectedCount) }))
  }

  /// The node's process dies and another one replaces it; no node has been notified yet.
  mutating func restart(_ index: Int) {
    started += 1_000
    sockets.removeAll { $0.node == index }
    var bench = Bench(node: Self.names[index], started: started, seed: seed &+ UInt64(started))
    bench.pass(now)
    nodes[index] = Node(bench: bench)
    if chance(80) { tell(index) }
  }

  /// Control welcomes the device; `hold` keeps the data with which its client resumes.
  mutating func welcome(_ index: Int, _ id: ConnectionID, isWake: Bool) throws -> Bool {
    let events = nodes[index].bench.takeEvents()
    // a resume may acknowledge the ends that a `call.gone` reported
    guard
      case .connected(let device, let session, let info, let resumed)? = events.last(where: {
        if case .connected = $0 { true } else { false }
      })
    else { return false }
    #expect(isWake == (info.onlyCall != nil), "seed \(seed)")
    if !resumed {
      nodes[index].bench.perform(.welcome(session, calls: [], gone: [], live: chance(50) ? [callA] : []))
    }
    guard case .message(.welcome(let welcome))? = nodes[index].bench.frames(id).first?.body else { throw Trouble("no welcome") }
    #expect(welcome.node == Self.names[index] && welcome.resumed == resumed, "seed \(seed)")
    let client = Client(connection: id, device: device, session: session, welcome: welcome)
    welcomed += 1
    if nodes[index].bench.closed(id) == nil { sockets.append(Socket(node: index, client: client, isWake: isWake)) }
    held.removeAll { $0.client.welcome.sid == welcome.sid }
    held.append(Socket(node: index, client: client, isWake: isWake))
    if held.count > 12 { held.removeFirst() }
    return true
  }

  /// A `hello` that led to no session: never 4001, and with the address of another node.
  mutating func refused(_ index: Int, _ id: ConnectionID) throws {
    let (failure, code) = try nodes[index].bench.failure(id)
    #expect(failure.code == .overload || failure.code == .gone, "seed \(seed): \(failure)")
    #expect(code == .draining || code == .replaced, "seed \(seed)")
    if failure.url != nil { sentOn += 1 }
    let own = nodes[index].bench.cluster?.url
    #expect(failure.url != own, "seed \(seed): to itself")
  }

  mutating func step() throws {
    let index = below(nodes.count)
    switch below(100) {
    case 0..<20:
      let id = nodes[index].bench.open()
      let device = "d\(below(3))"
      let proof = Hello.Proof.auth(Bench.token("alice", device, lives: 1_000_000))
      nodes[index].bench.send(
        .hello(Hello(proof, device: .init(id: device), caps: ["nodes"])), on: id, id: number(1))
      if try !welcome(index, id, isWake: false) { try refused(index, id) }
    case 20..<45:
      guard !held.isEmpty else { return }
      let session = held[below(held.count)]
      let id = nodes[index].bench.resume(session.client, lastSeq: below(2))
      if try !welcome(index, id, isWake: session.isWake) { try refused(index, id) }
    case 45..<55:
      wakes.append((Self.names[index], nodes[index].bench.wakeToken(callA, "alice", "d\(below(3))")))
      if wakes.count > 4 { wakes.removeFirst() }
    case 55..<70:
      guard !wakes.isEmpty else { return }
      let id = nodes[index].bench.open()
      let hello = Hello(.wake(wakes[below(wakes.count)].token), device: .init(id: ""), caps: ["nodes"])
      nodes[index].bench.send(.hello(hello), on: id, id: number(1))
      if try !welcome(index, id, isWake: true) { try refused(index, id) }
    case 70..<85:
      guard !sockets.isEmpty else { return }
      let socket = sockets.remove(at: below(sockets.count))
      nodes[socket.node].bench.give(.closed(socket.client.connection, chance(10) ? .normal : nil))
    case 85..<88: restart(index)
    case 88..<89:
      nodes[index].isDraining = true
      nodes[index].bench.perform(.drain)
    case 89..<91: if nodes[index].isDraining { restart(index) }
    case 91..<94: nodes[index].bench.perform(.callDead(DeviceKey(user: "alice", device: "d\(below(3))"), callA))
    default: tell(index)
    }
    try checkSessions()
  }

  /// Each device has one session at a node, and the session one socket.
  mutating func checkSessions() throws {
    for index in nodes.indices {
      sockets.removeAll { $0.node == index && nodes[index].bench.closed($0.client.connection) != nil }
      let here = sockets.filter { $0.node == index }
      #expect(Set(here.map(\.client.device)).count == here.count, "seed \(seed): two sockets of a device at a node")
      #expect(nodes[index].bench.machine.connectedCount == here.count, "seed \(seed)")
      let machine = nodes[index].bench.machine
      #expect(machine.connectedCount + machine.resumableCount <= 3, "seed \(seed): two sessions of a device at a node")
    }
  }

  mutating func pass(_ duration: Duration) {
    now += duration
    for index in nodes.indices {
      nodes[index].bench.pass(duration)
      for socket in sockets where socket.node == index { nodes[index].bench.send(.ping, on: socket.client.connection) }
    }
  }
}

@Suite struct NodeSimulationTests {
  @Test(arguments: 1...25) func `devices that come back anywhere have one session at a node, and get no 4001`(seed: UInt64)
    throws
  {
    var world = World(seed: seed)
    for _ in 0..<200 {
      try world.step()
      world.pass(.milliseconds(Int64(world.below(200))))
    }
    #expect(world.welcomed > 20 && world.sentOn > 0, "seed \(seed)")
  }

  /// A token whose bytes a stranger may have changed.
  @Test(arguments: 1...20) func `a token with any bytes changed opens nothing anywhere`(seed: UInt64) throws {
    let random = RandomSource.seeded(seed)
    var home = Bench(node: "n2")
    let client = try home.login()
    let wake = home.wakeToken()
    for index in 0..<60 {
      var resume = Array(client.welcome.resumeToken.utf8)
      var woken = Array(wake.utf8)
      for _ in 0...Int(random.next() % 3) {
        resume[Int(random.next() % UInt64(resume.count - 1))] = UInt8(0x2d + random.next() % 77)
        woken[Int(random.next() % UInt64(woken.count - 1))] = UInt8(0x2d + random.next() % 77)
      }
      let texts = (String(decoding: resume, as: UTF8.self), String(decoding: woken, as: UTF8.self))
      var other = Bench(node: index % 2 == 0 ? "n1" : "n2", started: 1_690_000_000_000 + Int64(index % 3))
      other.perform(.nodes([home.seen()]))
      if texts.0 != client.welcome.resumeToken {
        #expect(other.resumeCode(client, lastSeq: 0, token: texts.0) == .authFailed, "seed \(seed): \(texts.0)")
      }
      if texts.1 != wake { #expect(other.wakeCode(texts.1) == .authFailed, "seed \(seed): \(texts.1)") }
      #expect(other.events == [])
    }
  }
}
