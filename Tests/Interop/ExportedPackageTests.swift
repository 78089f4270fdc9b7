import Foundation
import Testing

extension Interop {
  /// The app of Tests/Packages, which Scripts/export-check has built over the exported packages as a stranger's team would: by URL and
  /// version, in a package of its own with another GRDB and modules of our inner names.
  @Suite(
    .enabled(
      if: Surroundings.isRequired || (Surroundings.missing == nil && Surroundings.packages != nil),
      "run Scripts/export-check and Scripts/install test"), .serialized)
  struct ExportedPackageTests {
    @Test(.tags(.audio), arguments: ["phone-5", "phone-6"])
    func `an app with the exported client calls a telephone, in Swift 5 and in Swift 6, and both hear each other`(program: String)
      async throws
    {
      let folder = try #require(Surroundings.packages, "run Scripts/export-check")
      try await expectGoodAudio {
        let gateway = try await GatewayUnderTest()
        try Speech.write(Speech.telephone, gateway.folder + "/telephone.wav")
        let spoken = Speech.app.withUnsafeBytes { Data($0) }
        try spoken.write(to: URL(fileURLWithPath: gateway.folder + "/app.raw"))
        let audio = try await Peers.trunkAudio(gateway, ["--play", "telephone.wav", "--record", "trunk-heard.wav"])
        let carrier = try await Peers.callee(gateway, "answer", audio: audio.port)
        let phone = try Spawned(
          program, "\(folder)/\(program)",
          [
            "ws://127.0.0.1:\(gateway.app)/v1/connect", try await gateway.token("alice", "bot-1"), "+15557654321", "app.raw",
            "app-heard.raw",
          ], in: gateway.folder)
        #expect(try await phone.finish(within: 30) == 0, "\(phone.text)")
        #expect(try await carrier.finish(within: 10) == 0, "\(carrier.text.suffix(6_000))")
        #expect(try await audio.peer.finish(within: 10) == 0)
        let heard = try Data(contentsOf: URL(fileURLWithPath: gateway.folder + "/app-heard.raw"))
        try Speech.write(heard.withUnsafeBytes { Array($0.bindMemory(to: Int16.self)) }, gateway.folder + "/app-heard.wav")
        let faults =
          try Speech.faults(
            "telephone → app", said: Speech.telephone, heardIn: gateway.folder + "/app-heard.wav", delayWithin: -2_000...2_000)
          + Speech.faults("app → telephone", said: Speech.app, heardIn: gateway.folder + "/trunk-heard.wav")
        let record = try #require(try await gateway.records(1).first)
        #expect((record["end"] as? [String: Any])?["reason"] as? String == "localEnd")
        try await gateway.finish()
        return faults
      }
    }

    @Test func `a program with the exported SIP stack asks a stranger's server by OPTIONS`() async throws {
      let folder = try #require(Surroundings.packages, "run Scripts/export-check")
      let gateway = try await GatewayUnderTest()
      let server = try await Peers.callee(gateway, "options")
      let ping = try Spawned("sip-ping", "\(folder)/sip-ping", ["127.0.0.1:\(gateway.carrier)"], in: gateway.folder)
      #expect(try await ping.finish(within: 10) == 0, "\(ping.text)")
      #expect(ping.text == "200\n", "\(ping.text)\n\(server.text)")
      #expect(try await server.finish(within: 10) == 0, "\(server.text.suffix(6_000))")
      try await gateway.finish()
    }
  }
}

extension Surroundings {
  /// Where the app over the exported packages is built; nil until Scripts/export-check has.
  static let packages = [ProcessInfo.processInfo.environment["TRUNKLINE_APP"] ?? package + "/.build/packages/app/.build/debug"]
    .first {
      FileManager.default.isExecutableFile(atPath: $0 + "/phone-6")
    }
}
