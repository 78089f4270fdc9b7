import Foundation
import Glibc
import Testing
import TrunklineBytes
import TrunklineCallKit

extension Interop {
  /// `Examples/SamplePhone`, built as the package that it is, beside the release gateway: its model on the stand-in's CallKit, and alone.
  @Suite(
    .enabled(if: Surroundings.sample != nil, "needs TRUNKLINE_BINARY, a release build with Examples/SamplePhone beside it"),
    .serialized)
  struct SamplePhoneTests {
    @Test func `the sample as a telephone: a push starts it, its own button answers, and its Recents has the call`() async throws
    {
      let sample = try #require(Surroundings.sample)
      let service = try await PushServiceUnderTest(.standIn)
      let gateway = try await service.gateway()
      let token = String(repeating: "5a", count: 32)
      let registered = try await service.killedApp(gateway, token: token, [])
      registered.signal(SIGKILL)
      let secrets = gateway.folder + "/secrets"
      #expect(FileSecrets(folder: secrets).write("device-id", Array("cell".utf8)))
      let handset = try Spawned(
        "handset", Surroundings.lab,
        [
          "handset", "--pushes", service.apps, "--token", token, "--events", "--app", sample, "--answer", "--gateway",
          "ws://127.0.0.1:\(gateway.app)/v1/connect", "--folder", gateway.folder + "/sample",
        ], in: gateway.folder, environment: ["PHONE_SECRETS": secrets])
      _ = await eventually(within: 5) { handset.text.contains("APPLE_STAND_IN=") }
      let trunk = try await Peers.trunk(gateway, ["--call", "+15551230001", "--talk", "2"])
      #expect(try await trunk.finish(within: 20) == 0, "\(trunk.text)\n\(handset.text)")
      #expect(await eventually(within: 5) { self.recents(gateway).count == 1 }, "\(handset.text)")
      let recent = try #require(recents(gateway).first)
      #expect(recent["number"] as? String == "+15557770001" && recent["isMissed"] as? Bool == false, "\(recent)")
      #expect((recent["seconds"] as? Int ?? 0) >= 1, "\(recent)")
      #expect(handset.text.contains("from +15557770001 connected"), "\(handset.text)")
      #expect(!handset.text.contains("violation"), "\(handset.text)")
      handset.signal(SIGTERM)
      #expect(try await handset.finish(within: 10) == 0, "\(handset.text)")
      try await gateway.finish()
      try await service.stop()
    }

    @Test func `the sample alone: calls out, holds, resumes and hangs up by what is typed`() async throws {
      let gateway = try await GatewayUnderTest()
      try (try await gateway.token("alice", "desk")).write(
        toFile: gateway.folder + "/alice.jwt", atomically: true, encoding: .utf8)
      let trunk = try await Peers.trunk(gateway, ["--calls", "1"])
      let phone = try Spawned(
        "sample", try #require(Surroundings.sample),
        [
          "--alone", "--device", "desk", "--token", "alice.jwt", "--gateway", "ws://127.0.0.1:\(gateway.app)/v1/connect",
          "--folder", gateway.folder + "/sample", "--call", "+1 555 765 4321",
        ], in: gateway.folder)
      func expect(_ text: String) async {
        #expect(await eventually(within: 10) { phone.text.contains(text) }, "no \"\(text)\" in:\n\(phone.text)\n\(trunk.text)")
      }
      await expect("phone: online")
      await expect("to +15557654321 connected")
      phone.type("hold on")
      await expect("to +15557654321 on hold held")
      phone.type("hold off")
      #expect(await eventually(within: 10) { phone.text.matches(of: /connected\n/).count == 2 }, "\(phone.text)")
      phone.type("end")
      await expect("recent: to +15557654321 ended")
      #expect(try await trunk.finish(within: 10) == 0, "\(trunk.text)")
      phone.type("fly")
      await expect("unknown command fly")
      phone.type("quit")
      #expect(try await phone.finish(within: 5) == 0, "\(phone.text)")
      try await gateway.finish()
    }

    private func recents(_ gateway: GatewayUnderTest) -> [[String: Any]] {
      guard let data = FileManager.default.contents(atPath: gateway.folder + "/sample/recents.json") else { return [] }
      return (try? JSONSerialization.jsonObject(with: data) as? [[String: Any]]) ?? []
    }
  }
}

extension Surroundings {
  /// The sample phone beside the release build of the suite.
  static let sample = binaries.map { $0 + "/sample-phone" }.flatMap {
    FileManager.default.isExecutableFile(atPath: $0) ? $0 : nil
  }
}
