import Testing
import TrunklineBytes
import TrunklineSIP

@testable import TrunklineSIPDialogs

/// Two user agents that use all they have: reliable responses, offers from both ends, refreshes, digits and REFERs, with loss and
/// in every order. Each call has one end, and nothing is left.
@Suite struct FeatureLossTests {
  private let out = LegID.outbound(1)

  private func network(_ seed: UInt64, loss: Int, delay: ClosedRange<Int> = 5...60) -> LossyNetwork {
    var network = LossyNetwork(seed: seed, loss: loss, delay: delay)
    let rules = TrunkRules(reliability: .required, sessionTimer: .init(seconds: 90), allowsTransfer: true)
    var unused = UserAgent.Output()
    for agent in 0...1 { network.agents[agent].handle(.rules(["peer": rules]), at: network.now, into: &unused) }
    let trunk = TrunkPeer(name: "peer", domain: "203.0.113.7:5060", flow: network.flow(of: 0))
    network.schedule(0, afterMs: 0, .invite(out, OutboundInvite(trunk: trunk, to: "+15551230001", from: "+1555", sdp: offer)))
    return network
  }

  private func check(_ network: LossyNetwork, _ rested: Bool, _ comment: Comment) {
    #expect(rested, comment)
    for agent in 0...1 {
      let names = network.names(agent)
      #expect(network.isEmpty(agent), "\(comment), agent \(agent): \(names)")
      #expect(names.count { $0 == "invite" } <= 1, "\(comment): two calls")
      for leg in Set(network.log[agent].compactMap(\.event.leg)) {
        let own = network.log[agent].filter { $0.event.leg == leg }.map { $0.event.name }
        #expect(own.last == "closed" && own.count { $0 == "closed" } == 1, "\(comment), agent \(agent): \(own)")
        let ends = own.count {
          ["cancelled", "bye", "ackTimedOut", "expired", "provisionalTimedOut"].contains($0) || $0.hasPrefix("failed")
            || $0.hasPrefix("refreshFailed")
        }
        #expect(ends <= 1, "\(comment), agent \(agent): two ends: \(own)")
      }
    }
  }

  /// What both ends do by themselves: answer offers, make them when asked, follow REFERs.
  private static func habits(_ event: UserAgent.Event) -> [(afterMs: Int, command: UserAgent.Command)] {
    switch event {
    case .reinviteReceived(let leg, _): [(0, .answerReinvite(leg, sdp: answer))]
    case .offerWanted(let leg): [(0, .offer(leg, sdp: offer))]
    case .referReceived(let leg, _):
      [(0, .acceptRefer(leg)), (400, .notifyRefer(leg, code: 180)), (900, .notifyRefer(leg, code: 486))]
    default: []
    }
  }

  @Test func `calls that use everything end once under 30 percent loss both ways and leave nothing`() {
    var answered = 0
    for seed in 1...60 as ClosedRange<UInt64> {
      var network = network(seed, loss: 30)
      var plan = SplitMix64(seed: seed)
      let times = (0..<6).map { _ in Int(plan.next() % 20_000) }
      let out = self.out
      network.react = { _, event in
        switch event {
        case .inviteReceived(let leg, _):
          return [
            (50, .respondProvisional(leg, code: 180, reason: nil, sdp: nil)),
            (900, .respondProvisional(leg, code: 183, reason: nil, sdp: answer)),
            (1_000, .answer(leg, sdp: answer)),
          ]
        case .acknowledged(let leg, _):
          return [
            (times[0], .modify(leg)), (times[1], .sendDigit(leg, "5", milliseconds: 160)),
            (times[2], .refer(leg, to: "sip:1@x", replaces: nil)),
            (160_000, .bye(leg, nil)),
          ]
        case .answered:
          return [(times[3], .modify(out)), (times[4], .modify(out)), (times[5], .sendDigit(out, "#", milliseconds: 160))]
        default: return Self.habits(event)
        }
      }
      let rested = network.run(limit: .seconds(900))
      check(network, rested, "seed \(seed)")
      if network.names(0).contains("answered") { answered += 1 }
    }
    #expect(answered > 45, "only \(answered) of 60 calls came through")
  }

  @Test func `re-INVITEs from both ends in every step around each other both get through`() {
    for step in stride(from: 0, through: 200, by: 4) {
      var network = network(UInt64(step) + 7, loss: 0, delay: 20...40)
      let out = self.out
      network.react = { _, event in
        switch event {
        case .inviteReceived(let leg, _):
          [(100, .answer(leg, sdp: answer)), (1_000 + step, .modify(leg)), (40_000, .bye(leg, nil))]
        case .answered: [(900, .modify(out))]
        default: Self.habits(event)
        }
      }
      let rested = network.run()
      check(network, rested, "step \(step)")
      for agent in 0...1 {
        #expect(network.names(agent).contains("offerAnswered+sdp"), "step \(step), agent \(agent): \(network.names(agent))")
        #expect(!network.names(agent).contains { $0.hasPrefix("offerRefused") }, "step \(step): \(network.names(agent))")
      }
    }
  }

  @Test
  func `UPDATE in the early dialog, PRACK, 200 and CANCEL in every step around each other, with loss and glare: one end each`() {
    var (offers, glares) = (0, 0)
    for step in stride(from: 0, through: 300, by: 6) {
      for (loss, cancels, isGlare) in [
        (0, false, false), (0, true, false), (0, false, true), (30, false, true), (30, true, true),
      ] {
        var network = network(UInt64(step * 7 + loss) + 4_000, loss: loss, delay: 20...40)
        let out = self.out
        network.react = { _, event in
          switch event {
          case .inviteReceived(let leg, _):
            [
              (0, .respondProvisional(leg, code: 183, reason: nil, sdp: answer)), (200, .answer(leg, sdp: answer)),
              (30_000, .bye(leg, nil)),
              (80_000, .bye(leg, nil)),
            ]
          default: Self.habits(event)
          }
        }
        network.scheduleUpdate(0, afterMs: 50 + step)
        if isGlare { network.scheduleUpdate(1, afterMs: 50 + step) }
        if cancels { network.schedule(0, afterMs: 200, .cancel(out, nil)) }
        let rested = network.run(limit: .seconds(900))
        check(network, rested, "step \(step), loss \(loss), cancel \(cancels), glare \(isGlare)")
        offers += network.names(1).count { $0.hasPrefix("reinvite") }
        glares += network.names(0).count { $0.hasPrefix("reinvite") }
        if loss == 0, !cancels { #expect(network.names(0).contains { $0.hasPrefix("answered") }, "step \(step)") }
      }
    }
    #expect(offers > 100 && glares > 50, "\(offers) and \(glares) offers came through")
  }

  @Test func `the 200, the PRACK and a CANCEL in every step around each other: one end each`() {
    for step in stride(from: 0, through: 240, by: 4) {
      for loss in [0, 30] {
        var network = network(UInt64(step * 2 + loss) + 900, loss: loss, delay: 20...40)
        let out = self.out
        network.react = { _, event in
          switch event {
          case .inviteReceived(let leg, _):
            [
              (0, .respondProvisional(leg, code: 183, reason: nil, sdp: answer)), (60 + step / 2, .answer(leg, sdp: answer)),
              (30_000, .bye(leg, nil)), (80_000, .bye(leg, nil)),
            ]
          default: Self.habits(event)
          }
        }
        network.schedule(0, afterMs: step, .cancel(out, nil))
        network.schedule(0, afterMs: 120_000, .bye(out, nil))
        let rested = network.run(limit: .seconds(900))
        check(network, rested, "step \(step) loss \(loss)")
      }
    }
  }

  @Test func `REFER, hold and BYE in every step around each other: one end each`() {
    for step in stride(from: 0, through: 160, by: 4) {
      for loss in [0, 30] {
        var network = network(UInt64(step * 2 + loss) + 5_000, loss: loss, delay: 20...40)
        let out = self.out
        network.react = { _, event in
          switch event {
          case .inviteReceived(let leg, _): [(100, .answer(leg, sdp: answer)), (90_000, .bye(leg, nil))]
          case .acknowledged(let leg, _): [(100, .modify(leg)), (100 + step, .refer(leg, to: "sip:1@x", replaces: nil))]
          case .answered: [(150 + step / 2, .modify(out)), (220, .bye(out, .q850(16)))]
          default: Self.habits(event)
          }
        }
        let rested = network.run(limit: .seconds(900))
        check(network, rested, "step \(step) loss \(loss)")
      }
    }
  }

  @Test func `a peer that dies while anything is open leaves nothing behind`() {
    for dieAfter in stride(from: 0, to: 3_000, by: 150) {
      var network = network(UInt64(dieAfter) + 77, loss: 0, delay: 20...20)
      let out = self.out
      network.react = { _, event in
        switch event {
        case .inviteReceived(let leg, _):
          [
            (100, .respondProvisional(leg, code: 183, reason: nil, sdp: answer)), (500, .answer(leg, sdp: answer)),
            (60_000, .bye(leg, nil)),
          ]
        case .acknowledged(let leg, _): [(200, .modify(leg)), (700, .refer(leg, to: "sip:1@x", replaces: nil))]
        case .answered: [(600, .modify(out)), (1_200, .sendDigit(out, "1", milliseconds: 100)), (60_000, .bye(out, nil))]
        default: Self.habits(event)
        }
      }
      network.schedule(0, afterMs: 60_000, .cancel(out, nil))
      _ = network.run(limit: .milliseconds(dieAfter))
      network.loss = 100
      let rested = network.run(limit: .seconds(900))
      check(network, rested, "dead after \(dieAfter) ms")
    }
  }
}
