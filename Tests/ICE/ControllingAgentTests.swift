import Testing
import TrunklineBytes
import TrunklineSTUN

@testable import TrunklineICE

let phoneAddress = address(10)
let gateAddress = address(20, 40_000)
let (phonePassword, gatePassword) = ("phonepasswordphonepassword", "gatepasswordgatepassword")

/// Our phone with its peer's description.
func phone(
  _ mode: ControllingAgent.NominationMode = .regular, remotes: [SocketAddress] = [gateAddress], seed: UInt64 = 1,
  from: [SocketAddress] = [phoneAddress]
) -> ControllingAgent {
  var agent = ControllingAgent(ufrag: "phon", password: phonePassword, mode: mode, random: .seeded(seed))
  for (index, local) in from.enumerated() { agent.addLocal(Candidate(local, preference: 60_000 - UInt16(index))) }
  agent.setRemote(ufrag: "gate", password: gatePassword)
  for (index, remote) in remotes.enumerated() { agent.addRemote(Candidate(remote, preference: 50_000 - UInt16(index))) }
  agent.endOfCandidates()
  return agent
}

func gateway() -> LiteAgent {
  var agent = LiteAgent(ufrag: "gate", password: gatePassword)
  agent.setRemote(ufrag: "phon", generation: 1)
  return agent
}

@Suite struct ControllingAgentTests {
  @Test func `a lite peer is checked, nominated and notified, in two round trips`() {
    var network = Simulation(.full(phone()), .lite(gateway()))
    network.run(until: seconds(1))
    let pair = CandidatePair(local: phoneAddress, remote: gateAddress)
    #expect(network.events[0].map(\.event) == [.nominated(pair)])
    #expect(network.events[0].first.map { $0.at <= Instant.zero + .milliseconds(80) } == true)
    #expect(network.agents[1].lite.nomination == LiteAgent.Nomination(remote: phoneAddress, generation: 1))
    #expect(network.agents[0].full.state == .connected && network.agents[0].full.nominatedPair == pair)
    #expect(network.agents[0].full.roundTrip == .milliseconds(40))
    #expect(network.agents[0].full.nominatedKinds.map { $0.local == .host && $0.remote == .host } == true)
    #expect(network.sent == 4)
  }

  @Test func `aggressive nomination needs one round trip`() {
    var network = Simulation(.full(phone(.aggressive)), .lite(gateway()))
    network.run(until: seconds(1))
    #expect(network.events[0].first.map { $0.at == Instant.zero + .milliseconds(40) } == true)
    #expect(network.agents[1].lite.nomination?.remote == phoneAddress)
  }

  @Test(arguments: 1...20)
  func `with 30 percent loss each way a pair is nominated within the five seconds of the gate`(_ seed: UInt64) {
    var network = Simulation(.full(phone(seed: seed)), .lite(gateway()), seed: seed)
    network.lossPercent = 30
    network.delay = .milliseconds(50)
    network.run(until: seconds(5))
    #expect(network.agents[0].full.state == .connected, "seed \(seed)")
    #expect(network.agents[1].lite.nomination?.remote == phoneAddress)
  }

  @Test func `a dead better address does not hold up the living one for long`() {
    var network = Simulation(.full(phone(remotes: [address(30), address(31), gateAddress])), .lite(gateway()))
    network.blocked = [address(30), address(31)]
    network.run(until: seconds(20))
    #expect(network.agents[0].full.nominatedPair?.remote == gateAddress)
    #expect(network.events[0].first.map { $0.at < Instant.zero + .milliseconds(400) } == true)
    #expect(network.events[0].count == 1)
  }

  @Test func `of two living pairs the better one is nominated, though it answers a little later`() {
    var network = Simulation(.full(phone(from: [phoneAddress, address(11)])), .lite(gateway()))
    network.run(until: seconds(2))
    #expect(network.agents[0].full.nominatedPair?.local == phoneAddress)
    #expect(network.agents[1].lite.nomination?.remote == phoneAddress)
  }

  @Test func `behind an address translation the peer sees and nominates the outer address`() {
    var network = Simulation(.full(phone()), .lite(gateway()))
    network.translation = [phoneAddress: address(99, 12_345)]
    network.run(until: seconds(1))
    #expect(network.agents[0].full.nominatedPair == CandidatePair(local: phoneAddress, remote: gateAddress))
    #expect(network.agents[1].lite.nomination?.remote == address(99, 12_345))
  }

  @Test func `no answer at all fails after all retransmissions, and only once`() {
    var network = Simulation(.full(phone()), .lite(gateway()))
    network.blocked = [gateAddress]
    network.run(until: seconds(60))
    #expect(network.events[0].map(\.event) == [.failed])
    #expect(network.sent == Limits.transmissions)
    #expect(network.agents[0].full.nextDeadline == .distantFuture)
  }

  @Test func `a wrong password never connects, and candidates to come are waited for no longer than 15 s`() {
    var agent = ControllingAgent(ufrag: "phon", password: phonePassword, random: .seeded(1))
    agent.addLocal(Candidate(phoneAddress))
    agent.setRemote(ufrag: "gate", password: "notthegatespassword")
    agent.addRemote(Candidate(gateAddress))
    var network = Simulation(.full(agent), .lite(gateway()))
    network.run(until: seconds(60))
    #expect(network.events[0].map(\.event) == [.failed])
    #expect(network.events[0].first?.at == seconds(15))
    #expect(network.verdicts.allSatisfy { $0 == .ignored(.wrongIntegrity) } && !network.verdicts.isEmpty)
  }

  @Test func `consent is asked for every 4 to 6 s, lost 30 s after the last answer, and comes back`() {
    var network = Simulation(.full(phone()), .lite(gateway()))
    network.run(until: seconds(60))
    #expect((4 + 2 * 10...4 + 2 * 15).contains(network.sent))
    #expect(network.agents[0].full.state == .connected)
    let last = network.agents[0].full.lastConsentAt
    network.blocked = [gateAddress]
    network.run(until: seconds(100))
    let pair = CandidatePair(local: phoneAddress, remote: gateAddress)
    #expect(network.events[0].last?.event == .consentLost(pair) && network.agents[0].full.state == .lost)
    #expect(network.events[0].last.map { $0.at - (last ?? .zero) } == .seconds(30))
    network.blocked = []
    network.run(until: seconds(110))
    #expect(network.events[0].last?.event == .consentRegained(pair) && network.agents[0].full.state == .connected)
  }

  @Test func `a peer that is probed is found again within half a second and a round trip`() {
    var network = Simulation(.full(phone()), .lite(gateway()))
    network.run(until: seconds(10))
    network.blocked = [gateAddress]
    network.run(until: seconds(12))
    network.agents[0].full.probe(at: seconds(12))
    let sent = network.sent
    network.run(until: seconds(22))
    // Five times a second, then twice, and no other check: there is no other pair.
    #expect((24...28).contains(network.sent - sent), "\(network.sent - sent) in 10 s")
    #expect(network.agents[0].full.state == .connected)
    network.blocked = []
    network.run(until: seconds(23))
    #expect(network.agents[0].full.lastConsentAt.map { $0 <= seconds(22) + .milliseconds(540) } == true)
    network.agents[0].full.endProbe()
    let after = network.sent
    network.run(until: seconds(43))
    #expect((2 * 3...2 * 6).contains(network.sent - after), "every 4 to 6 s again: \(network.sent - after)")
  }

  @Test func `consent nominates, so that a lite peer follows to another port`() {
    var network = Simulation(.full(phone()), .lite(gateway()))
    network.run(until: seconds(20))
    network.translation = [phoneAddress: address(13)]
    network.run(until: seconds(27))
    #expect(network.agents[1].lite.nomination?.remote == address(13))
    #expect(network.agents[0].full.state == .connected)
  }

  @Test func `a probe tries every other pair, and the first one to answer is used`() {
    let second = address(11)
    var network = Simulation(.full(phone(from: [phoneAddress, second])), .lite(gateway()))
    network.run(until: seconds(10))
    #expect(network.agents[0].full.nominatedPair?.local == phoneAddress)
    network.blocked = [phoneAddress]
    network.run(until: seconds(12))
    network.agents[0].full.probe(at: seconds(12))
    network.run(until: seconds(13))
    #expect(network.agents[0].full.nominatedPair == CandidatePair(local: second, remote: gateAddress))
    #expect(network.agents[1].lite.nomination?.remote == second)
  }

  @Test func `a restart keeps the old pair until the new one is nominated`() {
    var network = Simulation(.full(phone()), .lite(gateway()))
    network.run(until: seconds(10))
    network.agents[0].full.restart(ufrag: "pho2", password: "phonepasswordphonepassword2")
    #expect(network.agents[0].full.nominatedPair?.local == phoneAddress)
    network.run(until: seconds(12))  // the old pair's consent continues meanwhile
    network.agents[1].lite.restart(ufrag: "gat2", password: "gatepasswordgatepassword2", remoteUfrag: "pho2", generation: 2)
    network.agents[0].full.addLocal(Candidate(address(12)))
    network.agents[0].full.setRemote(ufrag: "gat2", password: "gatepasswordgatepassword2")
    network.agents[0].full.addRemote(Candidate(gateAddress))
    network.run(until: seconds(13))
    #expect(network.agents[0].full.nominatedPair == CandidatePair(local: address(12), remote: gateAddress))
    #expect(network.agents[1].lite.nomination == LiteAgent.Nomination(remote: address(12), generation: 2))
    network.run(until: seconds(60))
    #expect(network.agents[0].full.state == .connected)
    #expect(network.events[0].count == 2)
  }

  @Test func `two agents that both think they control settle it by tie-breaker and connect`() {
    for seed: UInt64 in 1...8 {
      var other = ControllingAgent(ufrag: "gate", password: gatePassword, random: .seeded(seed &+ 100))
      other.addLocal(Candidate(gateAddress))
      other.setRemote(ufrag: "phon", password: phonePassword)
      other.addRemote(Candidate(phoneAddress))
      var network = Simulation(.full(phone(seed: seed)), .full(other), seed: seed)
      network.lossPercent = 10
      network.run(until: seconds(20))
      let (a, b) = (network.agents[0].full, network.agents[1].full)
      #expect(a.state == .connected && b.state == .connected, "seed \(seed)")
      #expect(a.isControlling != b.isControlling)
      #expect(a.isControlling == (a.tieBreaker >= b.tieBreaker))
      #expect(a.nominatedPair?.remote == gateAddress && b.nominatedPair?.remote == phoneAddress)
    }
  }

  @Test func `a full peer whose candidates are unknown is learnt as peer-reflexive`() {
    var other = ControllingAgent(ufrag: "gate", password: gatePassword, random: .seeded(5))
    other.addLocal(Candidate(gateAddress))
    other.setRemote(ufrag: "phon", password: phonePassword)
    var network = Simulation(.full(phone()), .full(other))
    network.run(until: seconds(5))
    #expect(network.agents[1].full.nominatedPair == CandidatePair(local: gateAddress, remote: phoneAddress))
    #expect(network.agents[1].full.nominatedKinds?.remote == .peerReflexive)
    #expect(network.agents[0].full.state == .connected)
  }

  @Test func `loopback and other addresses, IPv4 and IPv6 are never paired`() {
    let six = SocketAddress(IPAddress(v6High: 0x2001_0db8_0000_0000, low: 9), 9)
    let agent = phone(
      remotes: [SocketAddress(.loopback, 4), six, gateAddress], from: [phoneAddress, SocketAddress(.loopback, 5)])
    let expected = [
      CandidatePair(local: SocketAddress(.loopback, 5), remote: SocketAddress(.loopback, 4)),
      CandidatePair(local: phoneAddress, remote: gateAddress),
    ]
    #expect(agent.pairs.map(\.pair) == expected)
  }

  @Test func `pairs come in the order of RFC 8445 and are bounded`() {
    let agent = phone(remotes: (0..<60).map { address(UInt8(100 + $0)) }, from: (0..<12).map { address(UInt8(1 + $0)) })
    #expect(agent.pairs.count == Limits.pairs && agent.remotes.count == Limits.remoteCandidates)
    #expect(zip(agent.pairs, agent.pairs.dropFirst()).allSatisfy { $0.priority >= $1.priority })
    #expect(Candidate(phoneAddress).priority == 126 << 24 | 65_535 << 8 | 255)
  }

  @Test func `mutated datagrams never trap and never connect`() {
    let random = RandomSource.seeded(77)
    var agent = phone()
    var output = ControllingAgent.Output()
    agent.handleTimeout(at: .zero, into: &output)
    var other = gateway()
    let seeds = output.datagrams.map(\.bytes) + output.datagrams.map { other.take($0.bytes, from: phoneAddress).reply }
    for round in 0..<20_000 {
      var bytes = seeds[round % seeds.count]
      for _ in 0...(random.next() % 3) {
        bytes[Int(random.next() % UInt64(bytes.count))] ^= UInt8(truncatingIfNeeded: random.next() % 255 + 1)
      }
      bytes.removeLast(random.next() % 4 == 0 ? 8 : 0)
      if random.next() % 2 == 0 {
        bytes[2] = 0
        bytes[3] = UInt8(truncatingIfNeeded: bytes.count - 20)
      }
      bytes.withUnsafeBytes { agent.handle($0, from: gateAddress, to: phoneAddress, at: .zero, into: &output) }
    }
    #expect(output.events.isEmpty)
  }
}
