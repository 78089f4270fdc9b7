import Testing
import TrunklineBytes

@testable import TrunklineICE

/// An agent at one end of the simulated network.
enum Agent {
  case full(ControllingAgent)
  case lite(LiteAgent)

  var full: ControllingAgent {
    get {
      guard case .full(let agent) = self else { fatalError("not a full agent") }
      return agent
    }
    set { self = .full(newValue) }
  }
  var lite: LiteAgent {
    get {
      guard case .lite(let agent) = self else { fatalError("not a lite agent") }
      return agent
    }
    set { self = .lite(newValue) }
  }
}

/// Two agents on virtual time with a delay, seeded loss, blocked addresses and an optional address translation before agent 0.
struct Simulation {
  var agents: [Agent]
  var now = Instant.zero
  var delay = Duration.milliseconds(20)
  var lossPercent: UInt64 = 0
  /// Datagrams to or from these addresses vanish.
  var blocked: Set<SocketAddress> = []
  /// Agent 0's address as the other side sees it.
  var translation: [SocketAddress: SocketAddress] = [:]
  var events: [[(at: Instant, event: ControllingAgent.Event)]] = [[], []]
  var verdicts: [LiteAgent.Verdict] = []
  var sent = 0
  let random: RandomSource
  private var inFlight: [(at: Instant, to: Int, source: SocketAddress, target: SocketAddress, bytes: [UInt8])] = []

  init(_ first: Agent, _ second: Agent, seed: UInt64 = 1) {
    agents = [first, second]
    random = .seeded(seed)
  }

  mutating func run(until end: Instant) {
    while true {
      for index in agents.indices { timeout(index) }
      var next = inFlight.map(\.at).min() ?? .distantFuture
      for case .full(let agent) in agents { next = min(next, agent.nextDeadline) }
      guard next <= end else { break }
      now = next
      while let index = inFlight.firstIndex(where: { $0.at <= now }) { deliver(inFlight.remove(at: index)) }
    }
    now = end
  }

  private mutating func timeout(_ index: Int) {
    guard case .full(var agent) = agents[index] else { return }
    var output = ControllingAgent.Output()
    agent.handleTimeout(at: now, into: &output)
    // a deadline that stays in the past stops or spins the loop that waits for it
    #expect(agent.nextDeadline > now)
    agents[index] = .full(agent)
    take(output, index)
  }

  private mutating func take(_ output: ControllingAgent.Output, _ index: Int) {
    for event in output.events { events[index].append((now, event)) }
    for datagram in output.datagrams { post(datagram.bytes, from: index, datagram.pair.local, datagram.pair.remote) }
  }

  mutating func post(_ bytes: [UInt8], from index: Int, _ local: SocketAddress, _ remote: SocketAddress) {
    sent += 1
    guard !blocked.contains(local), !blocked.contains(remote), random.next() % 100 >= lossPercent else { return }
    let source = index == 0 ? translation[local] ?? local : local
    let target = index == 1 ? translation.first { $0.value == remote }?.key ?? remote : remote
    inFlight.append((now + delay, 1 - index, source, target, bytes))
  }

  private mutating func deliver(_ packet: (at: Instant, to: Int, source: SocketAddress, target: SocketAddress, bytes: [UInt8])) {
    switch agents[packet.to] {
    case .full(var agent):
      var output = ControllingAgent.Output()
      packet.bytes.withUnsafeBytes { agent.handle($0, from: packet.source, to: packet.target, at: now, into: &output) }
      agents[packet.to] = .full(agent)
      take(output, packet.to)
    case .lite(var agent):
      let (verdict, reply) = agent.take(packet.bytes, from: packet.source, at: now)
      agents[packet.to] = .lite(agent)
      verdicts.append(verdict)
      if !reply.isEmpty { post(reply, from: packet.to, packet.target, packet.source) }
    }
  }
}
