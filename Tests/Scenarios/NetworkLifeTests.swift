import Foundation
import Testing
import Trunking
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineSIPDialogs

@testable import CallFlow
@testable import CallModel

/// Hours of a network's life: names, servers, connections, addresses and this machine fail and recover in any order, with calls
/// meanwhile. `TRUNKLINE_LIVES` sets how many lives (60), `TRUNKLINE_SEED` the first one (1); a failure names its seed.
@Suite struct NetworkLifeTests {
  private static func number(_ name: String, or usual: UInt64) -> UInt64 {
    ProcessInfo.processInfo.environment[name].flatMap { UInt64($0) } ?? usual
  }

  /// How long a trunk may still be down after the last fault: the longest pause between two REGISTERs (300 s and a quarter), the
  /// longest between two queries for a name (60 s), and a request that was under way (32 s).
  private static let bound = Duration.seconds(375 + 60 + 32)

  @Test func `whatever the network does, each call has one record, and the trunks are back in time`() throws {
    let first = Self.number("TRUNKLINE_SEED", or: 1)
    let lives = Self.number("TRUNKLINE_LIVES", or: 60)
    var (calls, connected) = (0, 0)
    var told: [String: Int] = [:]
    for seed in first..<(first + lives) {
      let (world, network) = try live(seed)
      calls += world.records.count
      connected += world.records.count { $0.times[CallStage.connected.rawValue] != nil }
      told.merge(network.told, uniquingKeysWith: +)
    }
    guard lives >= 60 else { return }
    // the lives must be hard enough to prove something
    let kinds = ["registration failed", "probes lost", "probes answered", "broken connection"]
    #expect(
      connected > calls / 4 && connected < calls && kinds.allSatisfy { told[$0] != nil }, "\(connected) of \(calls), \(told)")
  }

  private static func routing(_ routing: inout Routing) {
    var carrier = Routing.Trunk(name: "carrier")
    carrier.settings = TrunkSettings(
      name: "carrier", domain: "carrier.example", server: ServerURI(host: "carrier.example"),
      registration: .init(user: "gateway", expires: 300))
    var stream = Routing.Trunk(name: "stream")
    stream.settings = TrunkSettings(
      name: "stream", domain: "stream.example", server: ServerURI(host: "stream.example", transport: .tcp), probe: .init())
    routing.trunks = [carrier, stream]
    routing.inbound = [.init(trunk: "carrier", target: .users), .init(trunk: "stream", target: .users)]
    routing.outbound = [.init(prefix: "+1", trunk: "carrier"), .init(prefix: "+49", trunk: "stream")]
  }

  private func live(_ seed: UInt64) throws -> (World, NetworkLife) {
    let flag = NetworkLife.Flag()
    let world = World(seed: seed, network: NetworkLife.network(flag)) { configuration, routing in
      configuration.bounds.callsPerUser = 8
      Self.routing(&routing)
    }
    let network = NetworkLife(world, flag)
    let phone = world.app("phone") { $0.answersAfter = .seconds(2) }
    world.run(.seconds(5))
    var random = SplitMix64(seed: seed &* 7_919)
    var number: UInt64 = 0
    for _ in 0..<24 {
      step(&random, world, network, phone, &number)
      world.run(.milliseconds(Int(random.next() % 240_000)))
    }
    // all faults end
    while let last = network.faults.values.max() { world.run(last - world.now + .milliseconds(1)) }
    world.run(Self.bound)
    for status in world.machine.trunkStatuses(at: world.now) {
      #expect(status.up, "seed \(seed): \(status.trunk) is still down: \(status)")
    }
    callBothWays(world, phone, seed, &number)
    for summary in world.machine.summaries { world.give(.hangUp(summary.call)) }
    world.run(.seconds(60))
    // the registration is removed, and no name is queried any longer
    var routing = world.machine.routing
    routing.trunks = routing.trunks.map { Routing.Trunk(name: $0.name) }
    world.give(.routing(routing))
    world.carrier.giveUpUnanswered()
    // a session whose end was lost ends with its timer (RFC 4028), as does the one of a lost BYE
    world.run(.seconds(2_000))
    let before = world.records.count
    Invariants.check(world)
    checkCarrier(world, seed)
    checkPace(network, seed)
    #expect(world.records.count == before, "seed \(seed)")
    return (world, network)
  }

  private func step(
    _ random: inout SplitMix64, _ world: World, _ network: NetworkLife, _ phone: App, _ number: inout UInt64
  ) {
    func pick<T>(_ items: [T]) -> T { items[Int(random.next() % UInt64(items.count))] }
    let short = pick([Duration.seconds(1), .seconds(4), .seconds(9), .seconds(40)])
    let long = pick([Duration.seconds(3), .seconds(20), .seconds(120), .seconds(900)])
    let hold = Duration.milliseconds(Int(random.next() % 300_000))
    switch random.next() % 16 {
    case 0: network.begin(.fails(pick(DNSQuestion.Kind.allCases)), for: long)
    case 1: network.begin(.drops(pick(DNSQuestion.Kind.allCases)), for: long)
    case 2: for kind in DNSQuestion.Kind.allCases { network.begin(.drops(kind), for: long) }
    case 3:
      network.timeToLive = pick([.zero, .seconds(5), .seconds(600), .seconds(1 << 31)])
      world.after(.seconds(90)) { [unowned network] in network.timeToLive = .seconds(60) }
    case 4, 5: network.forget()
    case 6: network.begin(.silentSends, for: short)
    case 7: network.begin(.toldSends, for: short)
    case 8: network.begin(.away(pick([NetworkLife.first.ip, NetworkLife.second.ip])), for: long)
    case 9: network.begin(.noAddress, for: short)
    case 10: network.begin(.refuses(pick([403, 500, 503])), for: long)
    case 11, 12, 13:
      let leg = world.carrier.call(over: pick([.udp, .tcp]))
      let isOurs = random.next() % 2 == 0
      world.after(hold) { [unowned world] in
        let call = world.machine.summaries.first { $0.direction == .incoming }
        if isOurs, let call { world.give(.hangUp(call.call)) } else { world.carrier.giveUp(leg) }
      }
    default:
      number += 1
      let call = Identifier(high: 0xca11, low: number)
      phone.start(call, to: pick(["+15557654321", "+493012345"]))
      world.after(hold) { [unowned phone] in phone.end(call) }
    }
  }

  /// A call over each trunk, in each direction, is connected.
  private func callBothWays(_ world: World, _ phone: App, _ seed: UInt64, _ number: inout UInt64) {
    for summary in world.machine.summaries { world.give(.hangUp(summary.call)) }
    world.run(.seconds(40))
    for (transport, dialled) in [(TransportProtocol.udp, "+15557654321"), (.tcp, "+493012345")] {
      let leg = world.carrier.call(over: transport)
      // a connection that was forgotten costs each side 6 s
      world.run(.seconds(20))
      #expect(world.carrier.final(leg) == 200, "seed \(seed): no call from the carrier over \(transport)")
      world.carrier.hangUp(leg)
      number += 1
      let call = Identifier(high: 0xca11, low: number)
      phone.start(call, to: dialled)
      world.run(.seconds(20))
      #expect(phone.received(call).contains("call.connected"), "seed \(seed): no call by \(transport): \(phone.received(call))")
      phone.end(call)
      world.run(.seconds(20))
    }
  }

  /// The far side has one end for each call, and none is left.
  private func checkCarrier(_ world: World, _ seed: UInt64) {
    var ends: [LegID: Int] = [:]
    for case .legClosed(let leg) in world.carrier.events { ends[leg, default: 0] += 1 }
    let open = world.carrier.events.filter { event in event.leg.map { ends[$0] == nil } ?? false }
    #expect(world.carrier.agent.statistics.legs == 0, "seed \(seed): the carrier still has calls: \(open)")
    #expect(ends.values.allSatisfy { $0 == 1 }, "seed \(seed): a call of the carrier ended twice")
  }

  /// No query is repeated within a second of its answer, nor within 2 s of one that failed; at most ten REGISTERs are sent in any
  /// minute; a keep-alive (double CRLF) is sent each 25 s.
  private func checkPace(_ network: NetworkLife, _ seed: UInt64) {
    for (question, times) in network.asked {
      for (earlier, later) in zip(times, times.dropFirst()) {
        let pause = later.at - earlier.answered
        #expect(pause >= .seconds(earlier.hasFailed ? 2 : 1), "seed \(seed): \(question) again after \(pause)")
      }
    }
    for (index, begin) in network.registers.enumerated() {
      let count = network.registers[index...].prefix { $0 - begin < .seconds(60) }.count
      #expect(count <= 10, "seed \(seed): \(count) REGISTERs in a minute")
    }
    for (earlier, later) in zip(network.keptAlive, network.keptAlive.dropFirst()) {
      #expect(later - earlier >= .seconds(25), "seed \(seed): empty lines after \(later - earlier)")
    }
  }
}
