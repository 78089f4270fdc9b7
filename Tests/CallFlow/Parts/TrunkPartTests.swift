import Testing
import Trunking
import TrunklineBytes
import TrunklineSIPDialogs

@testable import CallFlow
@testable import CallModel

@Suite struct TrunkCapacityTests {
  private let limited = makeTrunk { ($0.maximumCalls, $0.callsPerSecond) = (2, 4) }

  @Test func `a trunk is full with its last call, and accepts one more when one ends`() {
    var capacity = TrunkCapacity()
    for _ in 0..<2 { capacity.begin("carrier") }
    #expect(capacity.consume(limited, at: .zero) == .trunkLimit && capacity.consume(makeTrunk("other"), at: .zero) == nil)
    #expect(capacity.consume(limited, isEmergency: true, at: .zero) == nil)
    capacity.end("carrier")
    #expect(capacity.consume(limited, at: .zero) == nil && capacity.calls(of: "carrier") == 1)
  }

  @Test func `an end without a call changes nothing`() {
    var capacity = TrunkCapacity()
    capacity.end("carrier")
    capacity.begin("carrier")
    capacity.end("carrier")
    capacity.end("carrier")
    #expect(capacity.names.isEmpty && capacity.calls(of: "carrier") == 0)
    capacity.begin("carrier")
    #expect(capacity.names == ["carrier"] && capacity.calls(of: "carrier") == 1)
  }

  @Test func `a refused call does not count in the rate`() {
    var capacity = TrunkCapacity()
    capacity.disable("carrier")
    for _ in 0..<9 { holds(capacity.consume(limited, at: .zero) == .trunkDisabled) }
    #expect(capacity.consume(limited, isEmergency: true, at: .zero) == .trunkDisabled)
    capacity.enable("carrier")
    for _ in 0..<4 { holds(capacity.consume(limited, at: .zero) == nil) }
    #expect(capacity.consume(limited, at: .zero) == .trunkRate && capacity.consume(limited, at: seconds(1)) == nil)
  }

  @Test func `nodes share a rate, each has one call a second at least, and calls of this second stay counted`() {
    var capacity = TrunkCapacity()
    capacity.share(among: 2, [limited])
    for _ in 0..<2 { holds(capacity.consume(limited, at: .zero) == nil) }
    #expect(capacity.consume(limited, at: .zero) == .trunkRate)
    capacity.share(among: 1, [limited])
    capacity.share(among: 1, [limited])
    #expect(capacity.consume(limited, at: .zero) == .trunkRate)
    capacity.share(among: 100, [limited])
    #expect(capacity.consume(limited, at: seconds(9)) == nil && capacity.consume(limited, at: seconds(9)) == .trunkRate)
  }

  @Test func `a trunk that leaves the configuration is enabled and unused when it returns, but its calls count`() {
    var capacity = TrunkCapacity()
    capacity.begin("carrier")
    capacity.disable("carrier")
    capacity.configure([limited])
    #expect(capacity.isDisabled("carrier"))
    capacity.configure([])
    #expect(!capacity.isDisabled("carrier") && capacity.names == ["carrier"])
    for _ in 0..<4 { holds(capacity.consume(limited, at: .zero) == nil) }
    capacity.configure([])
    #expect(capacity.consume(limited, at: .zero) == nil)
  }

  @Test func `a new rate counts from the next call on`() {
    var capacity = TrunkCapacity()
    holds(capacity.consume(limited, at: .zero) == nil)
    let slower = makeTrunk { $0.callsPerSecond = 1 }
    capacity.configure([slower])
    #expect(capacity.consume(slower, at: .zero) == nil && capacity.consume(slower, at: .zero) == .trunkRate)
    #expect(capacity.consume(makeTrunk(), at: .zero) == nil)
  }
}

@Suite struct TrunkHealthTests {
  private let address = SocketAddress(.loopback, 5060)

  private func located() -> Routing.Trunk {
    makeTrunk {
      $0.peer = nil
      $0.settings = TrunkSettings(name: "carrier", domain: "192.0.2.1", server: ServerURI(host: "192.0.2.1"))
    }
  }

  private func health() -> TrunkHealth {
    let network = TrunkMachine.Network(transports: [.udp], families: [.v4]) { transport, remote in
      Flow(transport: transport, local: SocketAddress(.loopback, 5060), remote: remote)
    }
    return TrunkHealth(network, random: .seeded(1), sharesDuties: false)
  }

  @Test func `without a network each trunk has its peer, and is usable whatever is reported`() {
    var health = TrunkHealth(nil, random: .seeded(1), sharesDuties: false)
    var step = Step.at(1)
    #expect(!health.isConfigured && health.configure(Routing(trunks: [makeTrunk()]), &step).isEmpty && health.isConfigured)
    for _ in 0..<20 { holds(health.callFinished("carrier", byFault: true, &step).isEmpty) }
    health.callStarted("carrier", at: step.now)
    health.serverFailed(address, retryAfter: nil, at: step.now)
    #expect(health.isUsable("carrier", at: step.now) && health.candidate(makeTrunk(), at: step.now)?.isRegistered == true)
    #expect(health.located(located(), at: step.now) != nil && health.candidate(located(), at: step.now) == nil)
    #expect(health.nextDeadline == nil && !health.isUnregistering && health.troubles.isEmpty && step.output.actions.isEmpty)
  }

  @Test func `a trunk with servers is a candidate once it is configured, and is not while calls fail by its fault`() {
    var health = health()
    var step = Step.at(1)
    #expect(health.candidate(located(), at: step.now) == nil && health.located(located(), at: step.now) == nil)
    holds(health.configure(Routing(trunks: [located()]), &step) == ["carrier"], "it was located")
    #expect(health.candidate(located(), at: step.now)?.trunk.peer != nil && !step.output.actions.isEmpty)
    var changed: [String] = []
    for _ in 0..<20 { changed += health.callFinished("carrier", byFault: true, &step) }
    #expect(changed == ["carrier"] && !health.isUsable("carrier", at: step.now))
    #expect(health.candidate(located(), at: step.now) == nil && health.located(located(), at: step.now) != nil)
    holds(health.callFinished("carrier", byFault: false, &step) == ["carrier"])
    #expect(health.candidate(located(), at: step.now) != nil)
  }

  @Test func `calls of an unknown trunk have no effect`() {
    var health = health()
    var step = Step.at(1)
    health.callStarted("unknown", at: step.now)
    health.callUndecided("unknown", at: step.now)
    health.callRefused("unknown", code: 503, at: step.now)
    health.requestUnanswered("unknown", method: "INVITE", .noRoute, at: step.now)
    #expect(health.callFinished("unknown", byFault: true, &step).isEmpty && step.output.actions.isEmpty)
    #expect(!health.isUsable("unknown", at: step.now))
  }

  @Test func `a trunk is reported when it becomes up or down, and first of all after it was removed`() {
    var health = TrunkHealth(nil, random: .seeded(1), sharesDuties: false)
    var (step, down) = (Step.at(1), TrunkStatus(trunk: "carrier"))
    down.mark(.disabled)
    let up = TrunkStatus(trunk: "carrier")
    let reports = [up, up, down, down, up].map { health.report($0) }
    #expect(reports == [true, false, true, false, true])
    _ = health.configure(Routing(trunks: [makeTrunk()]), &step)
    holds(!health.report(up))
    _ = health.configure(Routing(trunks: []), &step)
    holds(health.report(up))
  }
}
