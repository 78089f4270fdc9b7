import Foundation
import Testing

extension Interop {
  /// Groups of calls between users: aiortc, Chromium and baresip at the ends.
  @Suite(
    .tags(.audio),
    .enabled(
      if: Surroundings.isRequired
        || (Surroundings.missing == nil && Surroundings.chromium != nil && Surroundings.baresip != nil),
      "no chromium, no baresip or no .venv: run Scripts/install test"), .serialized)
  struct UserGroupTests {
    private static let users = ["alice": "+15551230001", "bob": "+15551230002", "carol": "+15551230003"]
    private static let app = Array(Speech.fromFirstWord(Speech.app).prefix(40_000))
    private static let other = Array(Speech.fromFirstWord(Speech.telephone).prefix(40_000))

    /// A gateway with the speech files: `app.wav` for the user that merges, `other.wav` for the others. A second of silence
    /// follows the words, so that "played" means that they have arrived.
    private func gateway(media: String = "[ 127.0.0.1 ]") async throws -> GatewayUnderTest {
      let gateway = try await GatewayUnderTest(users: Self.users, media: media)
      let silence = [Int16](repeating: 0, count: 8_000)
      try Speech.write(Self.app + silence, gateway.folder + "/app.wav")
      try Speech.write(Self.other + silence, gateway.folder + "/other.wav")
      return gateway
    }

    private func played(_ phone: Spawned, _ count: Int) async -> Bool {
      await eventually(within: 20) { phone.events.count { $0["event"] as? String == "played" } == count }
    }

    private func groups(_ phone: Spawned) async throws {
      phone.type("group")
      #expect(try await phone.event("grouped")["ok"] as? Bool == true, "\(phone.text.suffix(6_000))")
    }

    /// The last `count` scores of the passages of `said` in `heard`, which may have up to `before` earlier ones; a wrong number
    /// of passages goes to `faults`.
    private func scores(
      _ what: String, _ said: String, _ heard: String, _ count: Int, before: Int = 0, _ gateway: GatewayUnderTest,
      _ faults: inout [String]
    ) async throws -> [Double] {
      let scores = try await Peers.passages(gateway.folder + "/" + said, in: gateway.folder + "/" + heard, gateway).map(\.pesq)
      print("PESQ \(what): \(scores)")
      guard (count...count + before).contains(scores.count) else {
        faults.append("\(what): heard \(scores.count) times, not \(count)")
        return [Double](repeating: 4.5, count: count)
      }
      return scores.suffix(count)
    }

    /// Each side speaks this often in the group, and the better score counts: a stall of the machine under all these processes is
    /// audible, too.
    private static let rounds = 2

    private static func worse(_ what: String, _ alone: Double, _ grouped: ArraySlice<Double>) -> [String] {
      let best = grouped.max() ?? 1
      return best < alone - 0.2 ? ["\(what): \(alone) between two, \(best) in the group"] : []
    }

    @Test func `a user merges calls of two other users: one at a time, all hear each other as well as before (PESQ)`()
      async throws
    {
      try await expectGoodAudio {
        let gateway = try await gateway()
        let alice = try await Peers.phone(
          gateway, seconds: 180, ["--answer-after", "0", "--play", "app.wav", "--record", gateway.folder + "/alice-%d.wav"])
        var others: [Spawned] = []
        for (index, user) in ["bob", "carol"].enumerated() {
          let phone = try await Peers.phone(
            gateway, user: user, device: user, seconds: 180, ["--play", "other.wav", "--record", "\(user).wav", "--calls", "1"])
          others.append(phone)
          phone.type("call +15551230001")
          _ = try await phone.event("call.connected")
          #expect(await played(phone, 1), "\(phone.text.suffix(6_000))")
          #expect(await played(alice, index + 1), "\(alice.text.suffix(6_000))")
        }
        try await groups(alice)
        for round in 1...Self.rounds {
          alice.type("say")
          #expect(await played(alice, 2 + 2 * round), "\(alice.text.suffix(6_000))")
          for phone in others {
            phone.type("say")
            #expect(await played(phone, 1 + round), "\(phone.text.suffix(6_000))")
          }
        }
        for phone in others {
          phone.type("end")
          #expect(try await phone.finish(within: 10) == 0, "\(phone.text.suffix(6_000))")
        }
        _ = await eventually(within: 5) { alice.events.count { $0["event"] as? String == "ended" } == 2 }
        alice.type("quit")
        _ = try await alice.finish(within: 5)
        let records = try await gateway.records(4)
        #expect(records.count { ($0["times"] as? [String: Any])?["grouped"] != nil } == 2)

        var faults: [String] = []
        for (index, user) in ["bob", "carol"].enumerated() {
          let own = try await scores("\(user) → alice", "other.wav", "alice-\(index + 1).wav", 1 + Self.rounds, gateway, &faults)
          let theirs = try await scores("alice → \(user)", "app.wav", "\(user).wav", 1 + Self.rounds, gateway, &faults)
          let across = try await scores("the other → \(user)", "other.wav", "\(user).wav", Self.rounds, gateway, &faults)
          faults += Self.worse("\(user) → alice", own[0], own.dropFirst())
          faults += Self.worse("alice → \(user)", theirs[0], theirs.dropFirst())
          faults += Self.worse("the other → \(user)", own[0], across[...])
        }
        try await gateway.finish()
        return faults
      }
    }

    @Test func `a user merges a user's call and a carrier's: Chromium and baresip hear each other and not themselves (PESQ)`()
      async throws
    {
      try await expectGoodAudio {
        let gateway = try await gateway(media: "[ 127.0.0.1, auto ]")
        let alice = try await Peers.phone(
          gateway, seconds: 180, ["--answer-after", "0", "--play", "app.wav", "--record", gateway.folder + "/alice-%d.wav"])
        let bob = try await SpeakingPage(gateway, user: "bob", says: Self.other)
        try await bob.page.evaluate(
          "document.getElementById('number').value = '+15551230001'; document.getElementById('dial').click()")
        try await bob.page.wait("heard.length === 1")
        // the page may miss the beginning of the first passage
        #expect(await played(alice, 1), "\(alice.text.suffix(6_000))")
        try await bob.listen(to: 0) { alice.type("say") }
        try await bob.say()
        let baresip = try Baresip(
          gateway, user: "+15557770001", codec: "PCMU", says: Baresip.silence, console: try FreePorts.udp(),
          ["-e", "/dial sip:+15551230001@127.0.0.1:\(gateway.sip)"])
        #expect(await played(alice, 3), "\(alice.text.suffix(6_000))\n\(baresip.text.suffix(6_000))")
        try await groups(alice)
        for _ in 0..<Self.rounds {
          try await bob.listen(to: 0) { alice.type("say") }
          try await bob.say()
          try await bob.listen(to: 0) { try baresip.say(gateway.folder + "/other.wav") }
        }
        let heard = try await bob.heard(0)
        try await bob.page.click("hangup")
        _ = try await alice.event("ended")
        alice.type("end")
        _ = try await gateway.records(3)
        alice.type("quit")
        _ = try await alice.finish(within: 5)
        try await bob.page.close()
        try await baresip.quit()
        try Speech.write(try Speech.read(heard), gateway.folder + "/bob.wav")
        try Speech.write(try Speech.read(try baresip.heard()), gateway.folder + "/baresip.wav")

        var faults: [String] = []
        let both = 1 + Self.rounds
        let fromBob = try await scores("Chromium → alice", "other.wav", "alice-1.wav", both, gateway, &faults)
        let toBob = try await scores("alice → Chromium", "app.wav", "bob.wav", both, before: 1, gateway, &faults)
        let fromCarrier = try await scores("baresip → alice", "other.wav", "alice-2.wav", Self.rounds, gateway, &faults)
        let toCarrier = try await scores("alice → baresip", "app.wav", "baresip.wav", both, gateway, &faults)
        let carrierToBob = try await scores("baresip → Chromium", "other.wav", "bob.wav", Self.rounds, gateway, &faults)
        let bobToCarrier = try await scores("Chromium → baresip", "other.wav", "baresip.wav", Self.rounds, gateway, &faults)
        faults += Self.worse("Chromium → alice", fromBob[0], fromBob.dropFirst())
        faults += Self.worse("alice → Chromium", toBob[0], toBob.dropFirst())
        faults += Self.worse("alice → baresip", toCarrier[0], toCarrier.dropFirst())
        faults += Self.worse("baresip → Chromium", fromCarrier.max() ?? 4.5, carrierToBob[...])
        // G.711 limits the carrier's side: no score there exceeds that of the app's own words
        faults += Self.worse("Chromium → baresip", min(fromBob[0], toCarrier[0]), bobToCarrier[...])
        try await gateway.finish()
        return faults
      }
    }
  }
}
