import Bytes
import ClientSockets
import Foundation
import Peers
import SpeechScore
import Synchronization
import Testing
import TrunklineCallKit

@testable import AppleStandIn

extension Interop {
  /// The SDK whole in this process, on the stand-in's CallKit and PushKit in real time; gateway, push service and carrier are processes of their own.
  @Suite(.enabled(if: Surroundings.missing == nil || Surroundings.isRequired, "\(Surroundings.missing ?? "")"), .serialized)
  struct TelephoneTests {
    @Test func `a locked telephone, its app killed: rung by one push, answered, heard both ways, in Recents`() async throws {
      try await expectGoodAudio { try await killedAndLocked(.strict) }
    }

    /// The app of the README as it stands, a process that the handset starts. Its backend is away: the push alone lets it in.
    @Test func `the quick start, killed and locked: a push starts its process, it rings, is answered, and the caller hears it`()
      async throws
    {
      let service = try await PushServiceUnderTest(.standIn)
      let gateway = try await service.gateway()
      let token = String(repeating: "5a", count: 32)
      let registered = try await service.killedApp(gateway, token: token, [])
      registered.signal(SIGKILL)
      let microphone = gateway.folder + "/microphone.raw"
      try Data(Speech.app.flatMap { [UInt8(truncatingIfNeeded: $0), UInt8(truncatingIfNeeded: $0 >> 8)] }).write(
        to: URL(fileURLWithPath: microphone))
      try """
      lock
      expect ringing within 20s
      tap answer
      expect active within 10s
      expect audio within 5s
      expect idle within 20s
      expect clean
      """.write(toFile: gateway.folder + "/script", atomically: true, encoding: .utf8)
      let quickStart = URL(fileURLWithPath: Surroundings.lab).deletingLastPathComponent().appendingPathComponent("quick-start")
        .path
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
      #expect(try await caller.finish(within: 20) == 0, "\(caller.text.suffix(2_000))\n\(handset.text)")
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
      let site = try await Site(gateway, .strict)
      let iphone = site.iphone
      try await site.register()
      let waiter = try PushWaiter(.sandbox(try #require(SocketAddress(service.apps)), token: await site.pushToken()))
      iphone.lock()
      iphone.kill()
      let trunk = try await Peers.trunk(gateway, ["--call", "+15551230001", "--talk", "3"])
      iphone.push(try await Self.payload(waiter))
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
      let site = try await Site(gateway, .strict)
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

    /// Of the next push.
    private static func payload(_ waiter: PushWaiter) async throws -> [String: Any] {
      let line = try #require(await Task.detached { waiter.next() }.value)
      let envelope = try #require(JSONSerialization.jsonObject(with: Data(line)) as? [String: Any])
      return try #require(envelope["payload"] as? [String: Any])
    }

    private func killedAndLocked(_ rules: SystemRules) async throws -> [String] {
      let service = try await PushServiceUnderTest(.standIn)
      let gateway = try await service.gateway()
      let site = try await Site(gateway, rules)
      let iphone = site.iphone
      try await site.register()
      let waiter = try PushWaiter(.sandbox(try #require(SocketAddress(service.apps)), token: await site.pushToken()))
      iphone.lock()
      iphone.kill()
      try Speech.write(Speech.telephone, gateway.folder + "/telephone.wav")
      let audio = try await Peers.trunkAudio(gateway, ["--play", "telephone.wav", "--record", "trunk-heard.wav"])
      let caller = try Peers.caller(gateway, "call", audio: audio.port, ["-d", "8000"])
      iphone.push(try await Self.payload(waiter))
      #expect(await eventually(within: 5) { iphone.screen.incoming != nil }, "\(iphone.log)")
      iphone.tap(.answer)
      #expect(await eventually(within: 10) { iphone.isAudioActive == (rules.activationTime != nil) }, "\(iphone.log)")
      #expect(try await caller.finish(within: 25) == 0, "\(caller.text.suffix(2_000))\n\(iphone.log)")
      #expect(await eventually(within: 5) { iphone.screen.calls.isEmpty })
      #expect(try await audio.peer.finish(within: 10) == 0)
      try Speech.write(site.audio.takeHeard().samples, gateway.folder + "/app-heard.wav")
      #expect(iphone.violations == [] && iphone.recents.count == 1, "\(iphone.log)")
      let record = try #require(try await gateway.records(1).first)
      #expect((record["end"] as? [String: Any])?["reason"] as? String == "remoteHangup" && record["device"] as? String == "cell")
      #expect((record["ring"] as? [String: Any])?["reportMs"] is Int, "\(record)")
      iphone.kill()
      let faults =
        try Speech.faults("telephone → app", said: Speech.telephone, heardIn: gateway.folder + "/app-heard.wav")
        + Speech.faults("app → telephone", said: Speech.app, heardIn: gateway.folder + "/trunk-heard.wav")
      try await gateway.finish()
      try await service.stop()
      return faults
    }
  }
}

/// A telephone with the SDK's app, whose microphone and loudspeaker are samples.
@MainActor private final class Site {
  let iphone: StandInPhone
  let audio = FileAudio(Speech.app)
  private let phone = Running()
  private let start: @Sendable () -> Any

  /// The app's phone of the process that runs now. Weak: the process owns it.
  private final class Running: Sendable {
    private struct Box: @unchecked Sendable { weak var phone: Phone? }  // a weak reference is read and written whole
    private let box = Mutex(Box())
    var value: Phone? {
      get { box.withLock { $0.phone } }
      set { box.withLock { $0.phone = newValue } }
    }
  }

  init(_ gateway: GatewayUnderTest, _ rules: SystemRules) async throws {
    iphone = StandInPhone(rules, clock: .real)
    let (url, token) = ("ws://127.0.0.1:\(gateway.app)/v1/connect", try await gateway.token("alice", "cell"))
    let (phone, audio) = (phone, audio)
    let isMain = DispatchSpecificKey<Bool>()
    DispatchQueue.main.setSpecific(key: isMain, value: true)
    start = {
      let make: @MainActor () -> Phone = {
        var settings = CallKitSystem.Settings()
        settings.topic = "org.example.phone.voip"
        let made = Phone(
          url, device: "cell", system: CallKitSystem(settings), audio: audio, sockets: WebSockets(), isBackground: true
        ) { token }
        phone.value = made
        return made
      }
      // the system starts a process on a thread of its own
      if DispatchQueue.getSpecific(key: isMain) != nil { return MainActor.assumeIsolated(make) }
      return DispatchQueue.main.sync { MainActor.assumeIsolated(make) }
    }
  }

  /// The app is opened once: it logs in and says where it can be pushed to.
  func register() async throws {
    iphone.launch(start)
    let phone = try #require(phone.value)
    for await event in phone.events {
      guard case .registered(let refusal) = event else { continue }
      #expect(refusal == nil)
      return
    }
  }

  func pushToken() -> String {
    let token = iphone.access.withLock { iphone.model.token }
    return token.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
  }
}
