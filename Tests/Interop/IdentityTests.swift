import Foundation
import Testing

extension Interop {
  /// STIR/SHAKEN and privacy through a real gateway, with a verifier of the standard library.
  @Suite(.enabled(if: Surroundings.missing == nil || Surroundings.isRequired, "\(Surroundings.missing ?? "")"), .serialized)
  struct IdentityTests {
    @Test func `a caller's Identity is shown as the verifier has it, and a hidden number nowhere`() async throws {
      let folder = try NameServer.folder()
      defer { try? FileManager.default.removeItem(atPath: folder) }
      let script = URL(fileURLWithPath: Surroundings.sources).deletingLastPathComponent().path + "/OutgoingHTTP/verifier_peer.py"
      let verifier = try Spawned("verifier", try #require(Surroundings.python), ["-B", "-u", script, "A"], in: folder)
      #expect(await eventually(within: 10) { verifier.text.contains("\n") })
      let port = try #require(verifier.text.split(separator: "\n").first.flatMap { UInt16($0) })
      let gateway = try await GatewayUnderTest(["verifier: \"http://127.0.0.1:\(port)/check\""])
      let phone = try await Peers.phone(gateway, ["--answer-after", "0.1", "--calls", "2"])
      let trunk = try RawTrunk(gateway)
      let signed = "eyJh.eyJi.c2ln;info=<https://cert.example/a.cer>;alg=ES256;ppt=shaken"
      for isPrivate in [false, true] {
        var first = trunk.request("INVITE", sdp: RawTrunk.offer()).with("Identity", signed)
        if isPrivate { first = first.with("Privacy", "id") }
        let answer = try #require(trunk.ask(first))
        #expect(answer.code == 200)
        let offer = try await phone.event("call.offer") {
          (($0["from"] as? [String: Any])?["h"] as? String == "anonymous") == isPrivate
        }
        let pstn = try #require(offer["pstn"] as? [String: Any])
        #expect(pstn["attest"] as? String == "A" && pstn["privacy"] as? Bool == isPrivate)
        #expect((pstn["identity"] as? [String]) == (isPrivate ? nil : [signed]))
        #expect(trunk.ask(trunk.request("BYE", sequence: 2, in: first, answer))?.code == 200)
      }
      try await phone.finish(within: 10)
      #expect(try await gateway.records(2).map { $0["from"] as? String } == ["15550009999", "anonymous"])
      #expect(try gateway.sum("trunkline_identity_checks_total", "result=\"attested\"") == 2)
      try await gateway.finish()
    }
  }
}
