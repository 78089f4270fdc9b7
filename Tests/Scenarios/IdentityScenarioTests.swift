import CallFlow
import CallModel
import Testing
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineSIPDialogs

/// Who calls, and which party learns it: STIR/SHAKEN (RFC 8224), privacy (RFC 3323), asserted identity (RFC 3325).
@Suite struct IdentityScenarioTests {
  private static let signed = "eyJh.eyJi.c2ln;info=<https://cert.example/a.cer>;alg=ES256;ppt=shaken"

  private func world(trusts: Bool = false, _ adjust: (inout Routing) -> Void = { _ in }) -> World {
    World { configuration, routing in
      configuration.verifiesIdentity = true
      routing.trunks[0].rules.trustsIdentity = trusts
      adjust(&routing)
    }
  }

  @Test func `the verifier's word is shown, its silence for a second is none, and no call fails for either`() throws {
    for (answer, delay, shown) in [("A", 200, "A"), (nil, 200, nil), ("X", 200, nil), ("A", 5_000, nil)]
      as [(String?, Int, String?)]
    {
      let world = world()
      world.verifier = { _ in (answer, .milliseconds(delay)) }
      let phone = world.app("phone") { $0.answersAfter = .milliseconds(300) }
      let leg = world.carrier.call(headers: [
        ("Identity", Self.signed), ("Identity", "nonsense"), ("Date", "Sat, 13 Nov 2010 23:29:00 GMT"),
      ])
      world.run(.milliseconds(150))
      #expect(phone.offers.isEmpty)
      world.run(.seconds(3))
      let offer = try #require(phone.offers.first)
      #expect(offer.pstn?.attest == shown && offer.pstn?.identity == [Self.signed, "nonsense"])
      #expect(world.questions.first?.identities == [Self.signed] && world.questions.first?.from == "+15550000042")
      #expect(world.questions.first?.to == World.number && world.questions.first?.date == "Sat, 13 Nov 2010 23:29:00 GMT")
      #expect(world.carrier.final(leg) == 200)
      world.carrier.hangUp(leg)
      world.run(.seconds(1))
      Invariants.check(world)
    }
  }

  @Test func `what is malformed or of another type is carried, and no verifier is asked`() throws {
    for value in ["nonsense", "eyJh.eyJi.c2ln;info=<https://c>;ppt=div"] {
      let world = world()
      let phone = world.app("phone") { $0.answersAfter = .milliseconds(100) }
      let leg = world.carrier.call(headers: [("Identity", value)])
      world.run(.seconds(1))
      #expect(world.questions.isEmpty && phone.offers.first?.pstn?.identity == [value] && phone.offers.first?.pstn?.attest == nil)
      world.carrier.hangUp(leg)
      world.run(.seconds(1))
      Invariants.check(world)
    }
  }

  @Test func `CANCEL while the verifier is queried: one end, and the device is never notified of the call`() throws {
    let world = world()
    world.verifier = { _ in ("A", .milliseconds(400)) }
    let phone = world.app("phone")
    let leg = world.carrier.call(headers: [("Identity", Self.signed)])
    world.run(.milliseconds(100))
    world.carrier.cancel(leg)
    // a device that connects meanwhile receives nothing either
    let tablet = world.app("tablet")
    world.run(.seconds(2))
    #expect(world.carrier.final(leg) == 487 && phone.offers.isEmpty && tablet.offers.isEmpty)
    Invariants.check(world)
  }

  @Test func `a withheld number is shown to no app and kept in no record, unless the trunk says so`() throws {
    for (records, expected) in [(false, "anonymous"), (true, "+15550000042")] {
      let world = world(trusts: true) { $0.trunks[0].recordsPrivateNumbers = records }
      let phone = world.app("phone") { $0.answersAfter = .milliseconds(100) }
      let leg = world.carrier.call(isPrivate: true, headers: [("Identity", Self.signed)])
      world.run(.seconds(3))
      let offer = try #require(phone.offers.first)
      #expect(offer.from.h == "anonymous" && offer.from.n == nil && offer.pstn?.privacy == true && offer.pstn?.identity == nil)
      world.carrier.hangUp(leg)
      world.run(.seconds(1))
      #expect(world.records.first?.from == expected)
      Invariants.check(world)
    }
  }

  @Test func `a user who withholds the number: the trunk learns it by the header it may have, the called party does not`() throws
  {
    let call = Identifier(high: 0xca11, low: 1)
    for (trusts, header) in [(true, "P-Asserted-Identity"), (false, "P-Preferred-Identity")] {
      for isPrivate in [true, false] {
        let world = world(trusts: trusts)
        let phone = world.app("phone")
        phone.start(call, privacy: isPrivate, identity: [Self.signed])
        world.run(.seconds(1))
        let invite = try #require(world.invites.last)
        #expect(invite.contains("\r\n\(header): <sip:+15551230001@"))
        #expect(invite.contains(trusts ? "P-Preferred" : "P-Asserted") == false)
        #expect(invite.contains("\r\nPrivacy: id\r\n") == isPrivate)
        #expect(invite.contains("\r\nFrom: \"Anonymous\" <sip:anonymous@anonymous.invalid>;tag=") == isPrivate)
        #expect(invite.contains("\r\nIdentity: \(Self.signed)\r\n"))
        phone.end(call)
        world.run(.seconds(1))
        #expect(world.records.first?.from == World.number)
        Invariants.check(world)
      }
    }
  }

  @Test func `an app's Identity that is none is refused`() throws {
    let world = world()
    let phone = world.app("phone")
    phone.start(Identifier(high: 0xca11, low: 1), identity: ["x\r\nEvil: 1"])
    phone.start(Identifier(high: 0xca11, low: 2), identity: Array(repeating: Self.signed, count: 5))
    world.run(.seconds(1))
    #expect(phone.errors == [.badRequest, .badRequest] && world.invites.isEmpty)
    Invariants.check(world)
  }
}
