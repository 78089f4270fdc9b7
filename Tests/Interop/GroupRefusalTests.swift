import Foundation
import Testing

extension Interop {
  /// Invalid requests of aiortc about groups and translations, and the groups that operators and events report. sipp is the
  /// carrier.
  @Suite(
    .enabled(if: Surroundings.missing == nil || Surroundings.isRequired, "\(Surroundings.missing ?? "")"),
    .serialized)
  struct GroupRefusalTests {
    /// The answer to a request about the call of this number: "ok", or the code of its error.
    private func asks(_ phone: Spawned, _ type: String, _ call: Int, _ body: String) async throws -> String {
      let before = phone.events.count { $0["event"] as? String == "reply" }
      phone.type("ask \(type) \(call) \(body)")
      #expect(await eventually(within: 10) { phone.events.count { $0["event"] as? String == "reply" } > before }, "\(phone.text)")
      let reply = try #require(phone.events.last { $0["event"] as? String == "reply" })
      return reply["ok"] as? Bool == true ? "ok" : reply["code"] as? String ?? "?"
    }

    private func connected(_ phone: Spawned, _ count: Int) async -> Bool {
      await eventually(within: 10) { phone.events.count { $0["event"] as? String == "call.connected" } == count }
    }

    /// `group` of each live call, by the call's id.
    private func listed(_ gateway: GatewayUnderTest) throws -> [String: Set<String>] {
      let page = try JSONSerialization.jsonObject(with: Data(try gateway.get("/v1/calls").body.utf8)) as? [String: Any]
      let calls = page?["calls"] as? [[String: Any]] ?? []
      return Dictionary(
        calls.compactMap { row in (row["call"] as? String).map { ($0, Set(row["group"] as? [String] ?? [])) } }
      ) { $1 }
    }

    /// The journal's group events: kind and number of the other calls.
    private func told(_ gateway: GatewayUnderTest) throws -> [String] {
      let text = try gateway.get("/v1/events?limit=1000&kinds=call.grouped,call.ungrouped").body
      let page = try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any]
      return (page?["events"] as? [[String: Any]] ?? []).map { event in
        let others = ((event["data"] as? [String: Any])?["group"] as? [String])?.count
        return (event["type"] as? String ?? "").replacing("trunkline.call.", with: "") + (others.map { " \($0)" } ?? "")
      }
    }

    @Test func `held, ringing, ended, another's, too many, twice: invalid requests are refused and change nothing`() async throws
    {
      let gateway = try await GatewayUnderTest(["events: {}"])
      let alice = try await Peers.phone(gateway, [])
      let bob = try await Peers.phone(gateway, user: "bob", device: "b1", ["--answer-after", "0"])
      // one call of bob, two of alice, and one that rings
      let other = try Peers.caller(gateway, "call_until_bye", to: "+15551230002")
      #expect(await connected(bob, 1), "\(bob.text)")
      let his = try #require(try await bob.event("call.connected")["call"] as? String)
      var callers: [Spawned] = []
      func call(answered: Bool = true) async throws {
        let count = alice.events.count { $0["event"] as? String == "prepared" }
        callers.append(try Peers.caller(gateway, "call_until_bye"))
        #expect(
          await eventually(within: 10) { alice.events.count { $0["event"] as? String == "prepared" } > count }, "\(alice.text)")
        guard answered else { return }
        let before = alice.events.count { $0["event"] as? String == "call.connected" }
        alice.type("answer")
        #expect(await connected(alice, before + 1), "\(alice.text.suffix(6_000))")
      }
      try await call()
      try await call()
      try await call(answered: false)
      let ids = alice.events.filter { $0["event"] as? String == "call.offer" }.compactMap { $0["call"] as? String }
      try #require(ids.count == 3)

      for (index, body, code) in [
        (1, "{\"with\":\"@3\"}", "badState"), (3, "{\"with\":\"@1\"}", "badState"), (1, "{\"with\":\"\(his)\"}", "badState"),
        (1, "{\"with\":\"00000000-0000-4000-8000-000000000000\"}", "badState"), (1, "{\"with\":\"@1\"}", "badRequest"),
        (1, "{\"with\":\"nonsense\"}", "badRequest"), (1, "{\"with\":7}", "badRequest"), (1, "{\"with\":[\"@2\"]}", "badRequest"),
        (1, "{}", "ok"),
      ] { #expect(try await asks(alice, "call.group", index, body) == code, "\(index) \(body)") }
      #expect(try listed(gateway).values.allSatisfy(\.isEmpty), "nothing came of it")
      #expect(try told(gateway).isEmpty)

      // a held call may be in a group, and the request is safe to repeat
      #expect(try await asks(alice, "call.hold", 1, "{\"on\":true}") == "ok")
      for _ in 0..<2 { #expect(try await asks(alice, "call.group", 1, "{\"with\":\"@2\"}") == "ok") }
      #expect(try listed(gateway).filter { !$0.value.isEmpty } == [ids[0]: [ids[1]], ids[1]: [ids[0]]])
      #expect(await eventually(within: 5) { try told(gateway) == ["grouped 1", "grouped 1"] })

      // up to five, and not a sixth
      alice.type("reject")
      #expect(await eventually(within: 5) { try listed(gateway)[ids[2]] == nil })
      #expect(try await asks(alice, "call.group", 1, "{\"with\":\"@3\"}") == "badState", "it is over")
      #expect(try await asks(alice, "call.group", 3, "{\"with\":\"@1\"}") == "gone")
      for _ in 0..<4 { try await call() }
      for number in 4...6 { #expect(try await asks(alice, "call.group", number, "{\"with\":\"@1\"}") == "ok", "\(number)") }
      let five = try listed(gateway)
      #expect(five.values.count { $0.count == 4 } == 5)
      #expect(try await asks(alice, "call.group", 7, "{\"with\":\"@1\"}") == "tooMany")
      #expect(try await asks(alice, "call.group", 1, "{\"with\":\"@7\"}") == "tooMany")
      #expect(try listed(gateway) == five)

      // one call leaves; the ends of all the others dissolve the group
      #expect(try await asks(alice, "call.group", 2, "{\"with\":null}") == "ok")
      let four = try listed(gateway)
      #expect(four[ids[1]] == [] && four[ids[0]]?.count == 3)
      for number in 1...7 where number != 3 { _ = try await asks(alice, "call.end", number, "{}") }
      bob.type("end")
      #expect(try await other.finish(within: 10) == 0, "\(other.text.suffix(1_000))")
      for caller in callers.enumerated() where caller.offset != 2 {
        #expect(try await caller.element.finish(within: 10) == 0, "\(caller.element.text.suffix(1_000))")
      }
      _ = try await gateway.records(8)
      #expect(
        await eventually(within: 5) { try told(gateway).last == "ungrouped" && told(gateway).count { $0 == "grouped 4" } == 5 })
      for phone in [alice, bob] {
        phone.type("quit")
        _ = try await phone.finish(within: 5)
      }
      try await gateway.finish()
    }

    @Test(.tags(.audio))
    func `a device that translates: its mute silences its microphone only, until the translation is over (MID-3, MID-4)`()
      async throws
    {
      try await expectGoodAudio { try await translated() }
    }

    private func translated() async throws -> [String] {
      let gateway = try await GatewayUnderTest()
      let words = Array(Speech.fromFirstWord(Speech.app).prefix(24_000))
      try Speech.write(words, gateway.folder + "/said.wav")
      try Speech.write(words + [Int16](repeating: 0, count: 8_000), gateway.folder + "/app.wav")
      let alice = try await Peers.phone(gateway, ["--play", "app.wav"])
      func played(_ count: Int) async -> Bool {
        await eventually(within: 15) { alice.events.count { $0["event"] as? String == "played" } == count }
      }
      let audio = try await Peers.trunkAudio(gateway, ["--record", "trunk-heard.wav", "--seconds", "120"])
      let caller = try Peers.caller(gateway, "call_until_bye", audio: audio.port)
      _ = try await alice.event("prepared")
      let translation = "{\"on\":true,\"local\":\"en\",\"remote\":\"de\",\"engine\":\"default\"}"
      #expect(try await asks(alice, "call.translate", 1, translation) == "badState", "it rings")
      alice.type("answer")
      _ = try await alice.event("call.connected")
      #expect(await played(1), "\(alice.text)")
      for bad in [
        "{}", "{\"on\":1}", "{\"on\":true,\"local\":\"\(String(repeating: "x", count: 36))\"}", "{\"on\":true,\"remote\":[]}",
      ] {
        #expect(try await asks(alice, "call.translate", 1, bad) == "badRequest", "\(bad)")
      }
      for _ in 0..<2 { #expect(try await asks(alice, "call.translate", 1, translation) == "ok") }
      #expect(try await asks(alice, "call.mute", 1, "{\"on\":true,\"mode\":\"input\"}") == "ok")
      alice.type("say")
      #expect(await played(2), "the second is the translation: heard")
      #expect(try await asks(alice, "call.translate", 1, "{\"on\":false}") == "ok")
      alice.type("say")
      #expect(await played(3), "the third is nothing but a muted microphone")
      // the earlier mute remains, but speech during a translation is the translation
      #expect(try await asks(alice, "call.translate", 1, translation) == "ok")
      alice.type("say")
      #expect(await played(4))
      #expect(try await asks(alice, "call.translate", 1, "{\"on\":false}") == "ok")
      #expect(try await asks(alice, "call.mute", 1, "{\"on\":false}") == "ok")
      alice.type("say")
      #expect(await played(5))
      alice.type("end")
      #expect(try await caller.finish(within: 10) == 0, "\(caller.text.suffix(1_000))")
      _ = try await audio.peer.event("done", within: 15)
      alice.type("quit")
      _ = try await alice.finish(within: 5)
      let times = try #require(try await gateway.records(1).first?["times"] as? [String: Any])
      #expect(times["translating"] != nil && times["translated"] != nil, "\(times)")

      let heard = try await Peers.passages(gateway.folder + "/said.wav", in: gateway.folder + "/trunk-heard.wav", gateway)
      let gaps = zip(heard.dropFirst(), heard).map { $0.at - $1.at }
      try await gateway.finish()
      // four of five; between the second and the fourth one was not played
      return heard.count == 4 && gaps.max() == gaps[1] && gaps[1] > 6 ? [] : ["heard at \(heard)"]
    }
  }
}
