import Testing
import TrunklineBytes
import TrunklineSIP

@testable import TrunklineSIPDialogs

/// Two user agents over a network with loss: one call, one end, nothing left.
@Suite struct LossTests {
  private let out = LegID.outbound(1)

  private func start(_ network: inout LossyNetwork) {
    let trunk = TrunkPeer(name: "peer", domain: "203.0.113.7:5060", flow: network.flow(of: 0))
    network.schedule(0, afterMs: 0, .invite(out, OutboundInvite(trunk: trunk, to: "+15551230001", from: "+1555", sdp: offer)))
  }

  /// What must hold of every run, however it went.
  private func check(_ network: LossyNetwork, _ rested: Bool, _ comment: Comment) {
    #expect(rested, comment)
    for agent in 0...1 {
      let names = network.names(agent)
      #expect(network.isEmpty(agent), "\(comment), agent \(agent): \(names)")
      #expect(names.filter { $0 == "invite" }.count <= 1, "\(comment): two calls: \(names)")
      let legs = Set(network.log[agent].compactMap(\.event.leg))
      #expect(names.filter { $0 == "closed" }.count == legs.count, "\(comment), agent \(agent): \(names)")
      for leg in legs {
        let own = network.log[agent].filter { $0.event.leg == leg }.map { $0.event.name }
        #expect(own.last == "closed", "\(comment): events after the end: \(own)")
        let ends = own.filter { ["cancelled", "bye", "ackTimedOut"].contains($0) || $0.hasPrefix("failed") }
        #expect(ends.count <= 1, "\(comment): two ends: \(own)")
        #expect(own.filter { $0 == "answered" || $0.hasPrefix("failed") }.count <= 1, "\(comment): two results: \(own)")
        #expect(own.filter { $0 == "ack" }.count <= 1, "\(comment): \(own)")
      }
    }
  }

  @Test func `calls with 30 percent loss both ways have one end each and leave nothing`() {
    var answered = 0
    for seed in 1...150 as ClosedRange<UInt64> {
      var network = LossyNetwork(seed: seed)
      var plan = SplitMix64(seed: seed)
      let (ring, pick, talk) = (Int(plan.next() % 3_000), Int(plan.next() % 6_000), Int(plan.next() % 20_000))
      let hangsUp = Int(plan.next() % 2)
      let out = self.out
      network.react = { agent, event in
        switch event {
        case .inviteReceived(let leg, _):
          return [(ring, .respondProvisional(leg, code: 180, reason: nil, sdp: nil)), (ring + pick, .answer(leg, sdp: answer))]
        case .acknowledged(let leg, _) where hangsUp == 1: return [(talk, .bye(leg, .q850(16)))]
        case .answered where hangsUp == 0: return [(talk, .bye(out, .q850(16)))]
        case .answered: return [(60_000, .bye(out, nil))]
        default: return []
        }
      }
      start(&network)
      let rested = network.run()
      check(network, rested, "seed \(seed)")
      if network.names(0).contains("answered") { answered += 1 }
    }
    #expect(answered > 130, "only \(answered) of 150 calls came through")
  }

  @Test func `CANCEL in every step around the 200 leaves both ends agreed`() {
    var outcomes: Set<String> = []
    for step in 0..<120 {
      for loss in [0, 30] {
        var network = LossyNetwork(seed: UInt64(step * 2 + loss), loss: loss, delay: 20...40)
        network.react = { _, event in
          guard case .inviteReceived(let leg, _) = event else { return [] }
          return [(0, .respondProvisional(leg, code: 180, reason: nil, sdp: nil)), (150, .answer(leg, sdp: answer))]
        }
        start(&network)
        network.schedule(0, afterMs: step * 2, .cancel(out, nil))
        let rested = network.run()
        check(network, rested, "step \(step) loss \(loss)")
        let caller = network.names(0).first { $0 == "answered" || $0.hasPrefix("failed") } ?? "none"
        let callee = network.names(1).first { ["cancelled", "bye", "ackTimedOut"].contains($0) } ?? "none"
        if loss == 0 { outcomes.insert("\(caller)/\(callee)") }
        #expect(caller != "none")
        #expect(
          callee != "none" || !network.names(1).contains("invite"), "step \(step) loss \(loss): the callee's call has no end")
      }
    }
    #expect(outcomes == ["failed 487/cancelled", "failed 487/bye", "answered/bye"], "\(outcomes)")
  }

  @Test func `BYE from both sides in every step around each other closes both legs`() {
    for step in 0..<80 {
      for loss in [0, 30] {
        var network = LossyNetwork(seed: UInt64(9_000 + step * 2 + loss), loss: loss, delay: 20...40)
        let out = self.out
        network.react = { _, event in
          switch event {
          case .inviteReceived(let leg, _): [(100, .answer(leg, sdp: answer)), (200 + step * 3, .bye(leg, .q850(16)))]
          case .answered: [(160, .bye(out, .q850(16)))]
          default: []
          }
        }
        start(&network)
        let rested = network.run()
        check(network, rested, "step \(step) loss \(loss)")
      }
    }
  }

  @Test func `re-INVITEs and pings under loss end with the call`() {
    for seed in 1...60 as ClosedRange<UInt64> {
      var network = LossyNetwork(seed: seed)
      network.react = { agent, event in
        switch event {
        case .inviteReceived(let leg, _): [(50, .answer(leg, sdp: answer))]
        case .acknowledged(let leg, _): [(100, .ping(leg)), (9_000, .ping(leg)), (50_000, .bye(leg, nil))]
        case .answered(let leg, _): [(200, .ping(leg)), (50_010, .bye(leg, nil))]
        default: []
        }
      }
      start(&network)
      let rested = network.run()
      check(network, rested, "seed \(seed)")
    }
  }

  @Test func `a peer that dies leaves nothing behind on our side`() {
    for dieAfter in stride(from: 0, to: 3_000, by: 100) {
      var network = LossyNetwork(seed: UInt64(dieAfter), loss: 0, delay: 20...20)
      let out = self.out
      network.react = { _, event in
        switch event {
        case .inviteReceived(let leg, _): [(1_000, .answer(leg, sdp: answer)), (60_000, .bye(leg, nil))]
        case .answered: [(2_000, .bye(out, nil))]
        default: []
        }
      }
      start(&network)
      network.schedule(0, afterMs: 60_000, .cancel(out, nil))
      _ = network.run(limit: .milliseconds(dieAfter))
      network.loss = 100
      let rested = network.run()
      check(network, rested, "dead after \(dieAfter) ms")
    }
  }
}
