import Foundation
import Testing

extension Interop {
  /// Our carrier and our phones, one session each.
  @Suite(.enabled(if: Surroundings.missing == nil || Surroundings.isRequired, "\(Surroundings.missing ?? "")"), .serialized)
  struct RepeatedCallTests {
    @Test func `a call 0.3 s after the last one on the same session has media, 20 of 20`() async throws {
      let count = 20
      let gateway = try await GatewayUnderTest()
      // Both sides speak from their first packet: half a second is enough to be heard.
      try Speech.write(Speech.fromFirstWord(Speech.telephone), gateway.folder + "/telephone.wav")
      try Speech.write(Speech.fromFirstWord(Speech.app), gateway.folder + "/app.wav")
      let phone = try await Peers.ownPhone(gateway, ["--answer", "--calls", "\(count)", "--play", "app.wav"])
      let trunk = try await Peers.trunk(
        gateway, ["--call", "+15551230001", "--calls", "\(count)", "--gap", "0.3", "--talk", "0.5", "--play", "telephone.wav"])
      #expect(try await trunk.finish(within: 90) == 0, "\(trunk.text.suffix(3_000))")
      #expect(try await phone.finish(within: 10) == 0, "\(phone.text.suffix(3_000))")

      #expect(trunk.fields("answered", of: "ended") == [String](repeating: "true", count: count))
      #expect(trunk.events.count { $0["event"] as? String == "firstAudio" } == count, "the carrier heard the app each time")
      #expect(phone.events.count { $0["event"] as? String == "firstAudio" } == count, "the app heard the carrier each time")
      #expect(phone.events.count { $0["event"] as? String == "online" } == 1, "one session for all")
      let records = try await gateway.records(count)
      #expect(records.allSatisfy { ($0["end"] as? [String: Any])?["reason"] as? String == "remoteHangup" })
      try await gateway.finish()
    }

    @Test func `several devices of one user ring together and the first answer wins (SRV-1, INV)`() async throws {
      let gateway = try await GatewayUnderTest()
      let desk = try await Peers.ownPhone(gateway, device: "desk", ["--answer", "--answer-after", "0.4", "--calls", "1"])
      let pocket = try await Peers.ownPhone(gateway, device: "pocket", ["--answer", "--answer-after", "0.4", "--calls", "1"])
      let kitchen = try await Peers.ownPhone(gateway, device: "kitchen", ["--calls", "1"])
      let phones = [desk, pocket, kitchen]
      let trunk = try await Peers.trunk(gateway, ["--call", "+15551230001", "--talk", "1.5"])
      for phone in phones { _ = try await phone.event("ringing") }
      #expect(try await trunk.finish(within: 20) == 0, "\(trunk.text)")
      for phone in phones { try await phone.finish(within: 10) }

      let won = phones.filter { $0.fields("connected", of: "ended") == ["true"] }
      #expect(won.count == 1, "\(phones.map(\.text))")
      for phone in phones where !won.contains(where: { $0 === phone }) {
        #expect(phone.fields("reason", of: "ended") == ["answeredElsewhere"], "\(phone.text)")
      }
      #expect(won.first?.events.contains { $0["event"] as? String == "firstAudio" } == true, "the winner heard the caller")
      #expect(trunk.events.contains { $0["event"] as? String == "firstAudio" }, "the caller heard the winner")
      _ = try await gateway.records(1)
      try await gateway.finish()
    }
  }
}
