import Testing
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineSIP

@testable import TrunklineSIPDialogs

extension Carrier {
  /// An UPDATE with an offer in the early dialog of the gateway's INVITE, sent again like any request.
  fileprivate func sendUpdate() {
    guard let leg = agent.legs.all.first, !leg.dialog.remoteTag.isEmpty else { return }
    guard let dialog = agent.legs[leg.id]?.value.nextRequest(fork: nil) else { return }
    let content = RequestContent(body: Self.sdp(port: 6_500), refreshesTarget: true)
    let (bytes, _) = agent.request(
      .update, in: dialog, sequence: dialog.localSequence, branch: "z9hG4bKearly", base: leg.flow, content)
    for ms in [0, 500, 1_500, 3_500, 7_500] {
      world.after(.milliseconds(ms)) { [self] in if !loses(bytes) { deliver(bytes) } }
    }
  }
}

@Suite struct EarlyUpdateScenarioTests {
  @Test func `UPDATE of the carrier before the 200, around it and the app's end, with loss: one record, no leg left`() throws {
    let call = Identifier(high: 0xca11, low: 1)
    var moved = 0
    for loss in [0, 30] as [UInt64] {
      for step in stride(from: 0, through: 400, by: 25) {
        for ends in [false, true] {
          let world = World(seed: UInt64(step) + loss) { _, routing in
            routing.trunks[0].rules = TrunkRules(reliability: .required)
          }
          var random = SplitMix64(seed: UInt64(step) + loss + (ends ? 1_000 : 0))
          world.carrier.answers = [(.milliseconds(20), 183), (.milliseconds(300), 200)]
          let phone = world.app("phone")
          world.carrier.loses = { _ in random.next() % 100 < loss }
          world.loses = { _ in random.next() % 100 < loss }
          phone.start(call)
          world.after(.milliseconds(120 + step)) { world.carrier.sendUpdate() }
          if ends { world.after(.milliseconds(320)) { phone.end(call) } }
          world.run(.seconds(40))
          phone.end(call)
          world.run(.seconds(120))
          world.carrier.loses = { _ in false }
          world.loses = { _ in false }
          world.run(.seconds(120))
          if world.media.trunks.contains(where: { $0.remote.port == 6_500 }) { moved += 1 }
          #expect(world.records.count == 1, "loss \(loss), step \(step), ends \(ends)")
          Invariants.check(world)
        }
      }
    }
    #expect(moved > 20, "\(moved) UPDATEs moved the media")
  }
}
