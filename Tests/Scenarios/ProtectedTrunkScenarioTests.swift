import CallFlow
import CallModel
import Testing
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineMediaSession
import TrunklineSDP
import TrunklineSIPDialogs

/// SRTP with keys in the description (RFC 4568), as each trunk has it.
@Suite struct ProtectedTrunkScenarioTests {
  private static let key = "WVNfX19zZW1jdGwgKCkgewkyMjA7fQp9CnVubGVz"
  private static func sdp(_ transport: String, _ crypto: String?) -> String {
    Carrier.sdp().replacing("RTP/AVP", with: transport) + (crypto.map { "a=crypto:\($0)\r\n" } ?? "")
  }
  private static let protected = sdp("RTP/SAVP", "1 AES_CM_128_HMAC_SHA1_80 inline:\(key)|2^31")

  private func world(_ rule: Routing.Trunk.SRTPRule, inClear: Bool = true) -> World {
    World { _, routing in
      routing.trunks[0].srtp = rule
      routing.trunks[0].sendsKeysInClear = inClear
    }
  }

  @Test(arguments: [
    (Routing.Trunk.SRTPRule.off, true, protected, 488), (.off, true, Carrier.sdp(), 200), (.optional, true, protected, 200),
    (.optional, true, Carrier.sdp(), 200), (.required, true, protected, 200), (.required, true, Carrier.sdp(), 488),
    (.required, true, sdp("RTP/SAVP", nil), 488),
    (.required, true, sdp("RTP/SAVP", "1 AES_CM_128_HMAC_SHA1_80 inline:\(key) KDR=2"), 488),
    (.required, false, protected, 488), (.optional, false, protected, 488), (.optional, false, Carrier.sdp(), 200),
  ])
  func `a trunk's offers: off takes no SRTP, required nothing else, and keys come over TLS unless told`(
    _ rule: Routing.Trunk.SRTPRule, _ inClear: Bool, _ offer: String, _ code: Int
  ) throws {
    let world = world(rule, inClear: inClear)
    world.app("phone") { $0.answersAfter = .milliseconds(100) }
    let leg = world.carrier.call(sdp: offer)
    world.run(.seconds(1))
    #expect(world.carrier.final(leg) == code)
    if code == 200 {
      let isProtected = offer.contains("SAVP")
      #expect((world.media.trunks.last?.protection != nil) == isProtected)
      #expect((world.carrier.answered(leg)?.contains("a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:") == true) == isProtected)
      world.carrier.hangUp(leg)
    }
    world.run(.seconds(1))
    Invariants.check(world)
  }

  @Test func `a re-INVITE with a new key gets a new key, one without a change keeps both`() throws {
    let world = world(.required)
    world.app("phone") { $0.answersAfter = .milliseconds(100) }
    let leg = world.carrier.call(sdp: Self.protected)
    world.run(.seconds(1))
    let first = try #require(world.media.trunks.last?.protection)
    for (key, changes) in [(Self.key, false), (String(Self.key.reversed()), true)] {
      let settings = world.media.trunks.count
      world.carrier.offers = Self.sdp("RTP/SAVP", "1 AES_CM_128_HMAC_SHA1_80 inline:\(key)|2^31")
      world.carrier.handle(.command(.modify(leg)))
      world.run(.seconds(1))
      #expect((world.media.trunks.count > settings) == changes)
      let now = try #require(world.media.trunks.last?.protection)
      #expect((now.theirs != first.theirs) == changes && (now.ours != first.ours) == changes)
    }
    world.carrier.hangUp(leg)
    world.run(.seconds(1))
    Invariants.check(world)
  }

  @Test func `an outgoing call offers SAVP where SRTP is required, and ends by codec where the answer has none`() throws {
    let call = Identifier(high: 0xca11, low: 1)
    for (answer, isGood) in [
      (Self.sdp("RTP/SAVP", "3 AES_CM_128_HMAC_SHA1_80 inline:\(Self.key)"), true), (Carrier.sdp(), false),
    ] {
      let world = world(.required)
      world.carrier.answerSDP = answer
      let phone = world.app("phone")
      phone.start(call)
      world.run(.seconds(2))
      let offer = try #require(world.carrier.offered)
      #expect(offer.contains("RTP/SAVP") && offer.contains("a=crypto:1 AEAD_AES_128_GCM inline:"))
      #expect(phone.received(call).last == (isGood ? "call.connected" : "call.ended codec"))
      if isGood, let leg = world.carrier.inboundLeg { world.carrier.hangUp(leg) }
      world.run(.seconds(1))
      Invariants.check(world)
    }
  }
}
