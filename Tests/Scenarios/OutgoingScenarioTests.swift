import CallFlow
import Testing
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineMediaSession

private let call = Identifier(high: 0xca11, low: 1)

@Suite struct OutgoingScenarioTests {
  @Test func `sequence 6: the INVITE follows the app's media, progress and connection are told (OUT-3, OUT-4)`() throws {
    let world = World()
    world.carrier.answers = [(.milliseconds(20), 180), (.milliseconds(40), 183), (.milliseconds(500), 200)]
    let phone = world.app("phone")
    phone.start(call)
    world.run(.milliseconds(50))
    #expect(world.sentINVITEs.isEmpty)
    world.run(.seconds(2))
    #expect(
      phone.received(call) == [
        "call.progress trying", "call.progress ringing", "call.progress early", "call.update", "call.connected",
      ])
    let leg = try #require(world.carrier.inboundLeg)
    world.carrier.hangUp(leg)
    world.run(.seconds(1))
    #expect(phone.received(call).last == "call.ended remoteHangup")
    Invariants.check(world)
    let record = try #require(world.records.first)
    #expect(try #require(record.times["mediaReady"]) <= #require(record.times["inviteSent"]))
  }

  @Test(arguments: [
    (486, "busy"), (603, "declined"), (404, "notFound"), (480, "unanswered"), (503, "trunkFailed"), (500, "trunkFailed"),
  ])
  func `sequence 6: the carrier refuses`(code: Int, reason: String) throws {
    let world = World()
    world.carrier.answers = [(.milliseconds(20), 180), (.milliseconds(300), code)]
    let phone = world.app("phone")
    phone.start(call)
    world.run(.seconds(2))
    #expect(phone.received(call).last == "call.ended \(reason)")
    Invariants.check(world)
    #expect(world.records.first?.end.sip == code)
  }

  @Test func `no media: no INVITE, mediaFailed after 5 s`() throws {
    for plan in [MediaPlan(ice: nil), MediaPlan(dtls: nil), MediaPlan(failure: .fingerprintMismatch)] {
      let world = World()
      let phone = world.app("phone") { $0.media = plan }
      phone.start(call)
      world.run(.seconds(6))
      #expect(phone.received(call) == ["call.ended mediaFailed"])
      #expect(world.sentINVITEs.isEmpty)
      Invariants.check(world)
    }
  }

  @Test func `a silent carrier: 32 s, then unanswered`() throws {
    let world = World()
    let phone = world.app("phone")
    world.carrier.loses = { _ in true }
    phone.start(call)
    world.run(.seconds(40))
    #expect(phone.received(call).last == "call.ended unanswered")
    Invariants.check(world)
  }

  @Test func `call-end at every moment: no INVITE, CANCEL or BYE, and one record`() throws {
    for milliseconds in stride(from: 0, through: 700, by: 7) {
      let world = World()
      let phone = world.app("phone")
      phone.start(call)
      world.run(.milliseconds(milliseconds))
      phone.send(.callEnd(CallEnd()), call: call)
      world.run(.seconds(40))
      #expect(phone.received(call).last == "call.ended localEnd", "after \(milliseconds) ms")
      #expect(world.records.first?.end.reason == .localEnd)
      if let leg = world.carrier.inboundLeg { #expect(world.carrier.wasCancelled(leg) || world.carrier.heardBye(leg)) }
      Invariants.check(world)
    }
  }
}
