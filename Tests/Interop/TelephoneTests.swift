import Foundation
import Peers
import SpeechScore
import Synchronization
import Testing
import TrunklineBytes
import TrunklineCallKit
import TrunklineClient

@testable import AppleStandIn

extension Interop {
  /// The whole SDK in this process, on the stand-in's CallKit and PushKit in real time; gateway, push service and carrier are
  /// separate processes.
  @Suite(
    .enabled(if: Surroundings.missing == nil || Surroundings.isRequired, "\(Surroundings.missing ?? "")"),
    .serialized)
  struct TelephoneTests {
    /// When the system activates the app's audio after the answer; nil: never.
    @Test(.tags(.audio), arguments: [.milliseconds(50), .milliseconds(600), nil] as [Duration?])
    func `a locked telephone, its app killed: rung by one push, answered, heard both ways, in Recents`(activation: Duration?)
      async throws
    {
      var rules = SystemRules.strict
      rules.activationTime = activation
      try await expectGoodAudio { [rules] in try await killedAndLocked(rules) }
    }

    /// The README's app, unchanged, in a process that the handset starts. Its backend is down: the push alone admits it. With
    /// `restart` the keychain is closed until the first unlock: the app does not know its own device id.
    @Test(.tags(.audio), arguments: ["lock", "restart"])
    func `the quick start, killed and locked: a push starts its process, it rings, is answered, and the caller hears it`(
      order: String
    ) async throws {
      let service = try await PushServiceUnderTest(.standIn)
      let gateway = try await service.gateway()
      let token = String(repeating: "5a", count: 32)
      let registered = try await service.killedApp(gateway, token: token, [])
      registered.signal(SIGKILL)
      let microphone = gateway.folder + "/microphone.raw"
      try Data(Speech.app.flatMap { [UInt8(truncatingIfNeeded: $0), UInt8(truncatingIfNeeded: $0 >> 8)] }).write(
        to: URL(fileURLWithPath: microphone))
      try """
      \(order)
      expect ringing within 20s
      tap answer
      expect active within 10s
      expect audio within 5s
      expect idle within 20s
      expect clean
      """.write(toFile: gateway.folder + "/script", atomically: true, encoding: .utf8)
      let quickStart = Surroundings.quickStart
      // it has logged in before
      let secrets = gateway.folder + "/secrets"
      #expect(FileSecrets(folder: secrets).write("device-id", Array("cell".utf8)))
      let handset = try Spawned(
        "handset", Surroundings.lab,
        [
          "handset", "--pushes", service.apps, "--token", token, "--script", gateway.folder + "/script", "--events", "--app",
          quickStart,
        ],
        in: gateway.folder, environment: ["PHONE_MICROPHONE": microphone, "PHONE_SECRETS": secrets])
      let audio = try await Peers.trunkAudio(gateway, ["--record", "trunk-heard.wav"])
      let caller = try Peers.caller(gateway, "call", audio: audio.port, ["-d", "8000"])
      #expect(
        await eventually(within: 20) { (try? gateway.metric(#"trunkline_calls{state="connected"}"#)) == 1 }, "\(handset.text)")
      #expect(try await caller.finish(within: 20) == 0, "\(caller.text.suffix(6_000))\n\(handset.text)")
      #expect(try await handset.finish(within: 20) == 0, "\(handset.text)")
      #expect(try await audio.peer.finish(within: 10) == 0)
      let heard = try Speech.read(gateway.folder + "/trunk-heard.wav")
      #expect(heard.count { abs(Int($0)) > 300 } > 16_000, "\(handset.text)")
      let record = try #require(try await gateway.records(1).first)
      #expect((record["end"] as? [String: Any])?["reason"] as? String == "remoteHangup" && record["device"] as? String == "cell")
      try await gateway.finish()
      try await service.stop()
    }

    @Test func `declined on the lock screen while the app is starting: the caller hears busy, and no screen is left`()
      async throws
    {
      let service = try await PushServiceUnderTest(.standIn)
      let gateway = try await service.gateway()
      let site = try await TelephoneUnderTest(gateway, .strict)
      let iphone = site.iphone
      try await site.register()
      let waiter = try await site.pushes(at: service.apps)
      iphone.lock()
      iphone.kill()
      let trunk = try await Peers.trunk(gateway, ["--call", "+15551230001", "--talk", "3"])
      iphone.push(try await waiter.payload())
      #expect(await eventually(within: 5) { iphone.screen.incoming != nil }, "\(iphone.log)")
      iphone.tap(.decline)
      #expect(try await trunk.finish(within: 20) != 0)
      #expect(
        try await gateway.records(1).first?["end"].flatMap { ($0 as? [String: Any])?["reason"] as? String } == "declined",
        "\(trunk.text)")
      #expect(await eventually(within: 5) { iphone.screen.incoming == nil && iphone.screen.calls.isEmpty }, "\(iphone.log)")
      #expect(iphone.violations == [])
      iphone.kill()
      try await gateway.finish()
      try await service.stop()
    }

    @Test func `an app that is killed in a call and opened again: the other side is let go, and the record says why`()
      async throws
    {
      let service = try await PushServiceUnderTest(.standIn)
      let gateway = try await service.gateway()
      let site = try await TelephoneUnderTest(gateway, .strict)
      let iphone = site.iphone
      try await site.register()
      let trunk = try await Peers.trunk(gateway, ["--call", "+15551230001", "--talk", "20"])
      #expect(await eventually(within: 5) { iphone.screen.incoming != nil }, "\(iphone.log)")
      iphone.tap(.answer)
      #expect(await eventually(within: 10) { iphone.isAudioActive }, "\(iphone.log)")
      iphone.kill()
      try await site.register()
      _ = try await trunk.finish(within: 15)
      #expect(
        try await gateway.records(1).first?["end"].flatMap { ($0 as? [String: Any])?["reason"] as? String } == "appRestart",
        "\(trunk.text)")
      #expect(iphone.screen.calls.isEmpty && iphone.violations == [])
      iphone.kill()
      try await gateway.finish()
      try await service.stop()
    }

    private func killedAndLocked(_ rules: SystemRules) async throws -> [String] {
      let service = try await PushServiceUnderTest(.standIn)
      let gateway = try await service.gateway()
      let site = try await TelephoneUnderTest(gateway, rules)
      let iphone = site.iphone
      try await site.register()
      let waiter = try await site.pushes(at: service.apps)
      iphone.lock()
      iphone.kill()
      try Speech.write(Speech.telephone, gateway.folder + "/telephone.wav")
      let audio = try await Peers.trunkAudio(gateway, ["--play", "telephone.wav", "--record", "trunk-heard.wav"])
      let caller = try Peers.caller(gateway, "call", audio: audio.port, ["-d", "8000"])
      iphone.push(try await waiter.payload())
      #expect(await eventually(within: 5) { iphone.screen.incoming != nil }, "\(iphone.log)")
      iphone.tap(.answer)
      #expect(await eventually(within: 10) { iphone.isAudioActive == (rules.activationTime != nil) }, "\(iphone.log)")
      #expect(try await caller.finish(within: 25) == 0, "\(caller.text.suffix(6_000))\n\(iphone.log)")
      #expect(await eventually(within: 5) { iphone.screen.calls.isEmpty })
      #expect(try await audio.peer.finish(within: 10) == 0)
      try Speech.write(site.audio.drainReceived().samples, gateway.folder + "/app-heard.wav")
      #expect(iphone.violations == [] && iphone.recents.count == 1, "\(iphone.log)")
      let record = try #require(try await gateway.records(1).first)
      #expect((record["end"] as? [String: Any])?["reason"] as? String == "remoteHangup" && record["device"] as? String == "cell")
      #expect((record["ring"] as? [String: Any])?["reportMs"] is Int, "\(record)")
      iphone.kill()
      let faults =
        try Speech.faults("telephone → app", said: Speech.telephone, heardIn: gateway.folder + "/app-heard.wav")
        // an app without a microphone yet sends nothing: its speech may be that much later than the answer
        + Speech.faults(
          "app → telephone", said: Speech.app, heardIn: gateway.folder + "/trunk-heard.wav",
          delayWithin: -2_000...(400 + ((rules.activationTime ?? .seconds(1)) / .milliseconds(1))))
      try await gateway.finish()
      try await service.stop()
      return faults
    }
  }
}
