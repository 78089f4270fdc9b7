import AppSessions
import JSONWebToken
import PushPolicy
import Testing
import TrunklineAppProtocol
import TrunklineBytes

@testable import Devices

/// Malformed, oversized and too many: a clear error, and nothing has changed.
@Suite struct BadRegistrationTests {
  @Test(arguments: [
    (DevicePut.Push(kind: .apnsVoIP, token: "", topic: "a.voip"), DeviceError.token(.apns, .empty)),
    (.init(kind: .apnsVoIP, token: "xyz0xyz0", topic: "a.voip"), .token(.apns, .malformed)),
    (.init(kind: .apnsVoIP, token: token("ab") + "0", topic: "a.voip"), .token(.apns, .malformed)),
    (.init(kind: .apnsVoIP, token: "abcd", topic: "a.voip"), .token(.apns, .malformed)),
    (.init(kind: .apnsVoIP, token: "<740f4707 bebcf74f>", topic: "a.voip"), .token(.apns, .malformed)),
    (.init(kind: .apnsVoIP, token: String(repeating: "ab", count: 101), topic: "a.voip"), .token(.apns, .tooLong(limit: 200))),
    (.init(kind: .apnsVoIP, token: token("ab")), .token(.apns, .topicMissing)),
    (.init(kind: .apnsVoIP, token: token("ab"), topic: "org.example.app"), .token(.apns, .topicMalformed)),
    (.init(kind: .apnsVoIP, token: token("ab"), topic: ".voip"), .token(.apns, .topicMalformed)),
    (.init(kind: .apnsVoIP, token: token("ab"), topic: "a\r\nx: y.voip"), .token(.apns, .topicMalformed)),
    (
      .init(kind: .apnsVoIP, token: token("ab"), topic: String(repeating: "a", count: 251) + ".voip"),
      .token(.apns, .topicTooLong(limit: 255))
    ),
    (.init(kind: .apnsVoIP, token: token("ab"), env: "staging", topic: "a.voip"), .environment("staging")),
    (.init(kind: .apnsVoIP, token: token("ab"), topic: "a.voip", sealKey: "no key"), .token(.apns, .sealKey)),
    (.init(kind: .apnsVoIP, token: token("ab"), topic: "a.voip", sealKey: ""), .token(.apns, .sealKey)),
    // 31 bytes; a point of small order
    (.init(kind: .fcm, token: "f", sealKey: String(repeating: "A", count: 42)), .token(.fcm, .sealKey)),
    (.init(kind: .fcm, token: "f", sealKey: String(repeating: "A", count: 43)), .token(.fcm, .sealKey)),
    (.init(kind: .fcm, token: "with space"), .token(.fcm, .malformed)),
    (.init(kind: .fcm, token: String(repeating: "x", count: 1_025)), .token(.fcm, .tooLong(limit: 1_024))),
    (.init(kind: .webpush, token: "https://push.example/1"), .token(.webPush, .malformed)),
    (
      .init(kind: .webpush, token: #"{"endpoint":"http://push.example/1","keys":{"p256dh":"AA","auth":"AA"}}"#),
      .token(.webPush, .malformed)
    ),
    (
      .init(kind: .webpush, token: #"{"endpoint":"https://push.example/1","keys":{"p256dh":"AA"}}"#), .token(.webPush, .malformed)
    ),
    (.init(kind: .webpush, token: String(repeating: "x", count: 2_049)), .token(.webPush, .tooLong(limit: 2_048))),
  ])
  func `TOK-5: a registration that cannot work is refused and the old one stays`(push: DevicePut.Push, error: DeviceError) throws
  {
    var rig = Rig()
    let phone = key("alice", "phone")
    try rig.put(phone, apns("ab"))
    let before = rig.registry.all
    #expect(throws: error) { try rig.registry.put(DevicePut(push: push, prefs: .init(dnd: true)), by: phone, at: rig.now + 1) }
    #expect(rig.registry.all == before)
    #expect(error.failure.code == .badRequest)
    let text = try #require(error.failure.msg)
    #expect(text.hasPrefix("push.") && (push.token.count < 4 || !text.contains(push.token)), "the reason without the token")
  }

  @Test func `TOK-5: a browser's subscription and a long FCM token are taken`() throws {
    var rig = Rig()
    let subscription = Self.subscription("https://push.example/1")
    try rig.put(key("alice", "web"), .init(kind: .webpush, token: subscription))
    try rig.put(key("alice", "android"), .init(kind: .fcm, token: String(repeating: "x", count: 1_024)))
    #expect(rig.tokens("alice").count == 2)
  }

  /// With the keys of RFC 8291 §5.
  private static func subscription(
    _ endpoint: String,
    p256dh: String = "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4",
    auth: String = "BTBZMqHH6r4Tts7J_aSIgg=="
  ) -> String {
    #"{"endpoint":"\#(endpoint)","expirationTime":null,"keys":{"p256dh":"\#(p256dh)","auth":"\#(auth)"}}"#
  }

  @Test(arguments: [
    subscription("https://push.example/1", p256dh: "BAAA"), subscription("https://push.example/1", auth: "AAAA"),
    subscription("https://push.example/1", p256dh: "B" + String(repeating: "A", count: 86)),
  ])
  func `a subscription that nothing can be encrypted for is refused`(token: String) throws {
    var rig = Rig()
    #expect(throws: DeviceError.token(.webPush, .malformed)) {
      try rig.put(key("alice", "web"), .init(kind: .webpush, token: token))
    }
  }

  @Test func `a kind that is no service is refused, and the answer names those that are`() {
    var rig = Rig()
    #expect(throws: DeviceError.kind("pigeon")) {
      try rig.put(key("alice", "loft"), .init(kind: .init(rawValue: "pigeon"), token: "t"))
    }
    #expect(DeviceError.kind("pigeon").failure.code == .badRequest)
    #expect(DeviceError.kind("pigeon").text.contains("apns-voip, fcm, webpush"))
  }

  @Test func `a registration that this gateway would never push to is refused, whatever its form`() throws {
    var rig = Rig()
    let web = key("alice", "web")
    let signer = try TokenSigner(keys: try KeySet(.HS256, keyFile: [UInt8](repeating: 7, count: 32)))
    let provider = WebPushProvider(
      signer: signer, publicKey: "B", subject: "mailto:a@example", hosts: ["push.example", "*.push.example", "push.example:8443"])
    rig.registry.defaults.providers = PushProviders([provider])
    for push in [apns("ab"), .init(kind: .fcm, token: "f")] {
      let service: PushService = push.kind == .fcm ? .fcm : .apns
      #expect(throws: DeviceError.token(service, .notConfigured)) { try rig.put(web, push) }
    }
    for host in [
      "127.0.0.1", "10.0.0.1", "169.254.169.254", "localhost", "push.example.evil", "evilpush.example", "2130706433",
      "push.example.", "push.example:22", "eu.push.example:8443",
    ] {
      #expect(throws: DeviceError.token(.webPush, .host), "\(host)") {
        try rig.put(web, .init(kind: .webpush, token: Self.subscription("https://\(host)/1")))
      }
    }
    #expect(rig.registry.all.isEmpty && rig.stored.isEmpty)
    #expect(DeviceError.token(.fcm, .notConfigured).failure.code == .badRequest)
    #expect(DeviceError.token(.webPush, .host).failure.code == .badRequest)
    for host in ["push.example", "PUSH.example:8443", "eu.push.example"] {
      try rig.put(web, .init(kind: .webpush, token: Self.subscription("https://\(host)/1")))
    }
    rig.registry.defaults.providers = PushProviders()
    #expect(throws: DeviceError.token(.webPush, .notConfigured)) {
      try rig.put(web, .init(kind: .webpush, token: Self.subscription("https://push.example/1")))
    }
    try rig.put(web, prefs: .init(dnd: true))
  }

  @Test func `TOK-5: a user's seventeenth device is refused while the sixteen are in use`() throws {
    var rig = Rig()
    for number in 0..<Limits.devicesPerUser { try rig.put(key("alice", "d\(number)"), .init(kind: .fcm, token: "t\(number)")) }
    #expect(throws: DeviceError.tooManyDevices(limit: 16)) { try rig.put(key("alice", "new"), .init(kind: .fcm, token: "new")) }
    #expect(rig.registry.count == 16)
    try rig.put(key("alice", "d3"), .init(kind: .fcm, token: "t3b"))
    try rig.put(key("bob", "d0"), .init(kind: .fcm, token: "b"))
    // One whose app is gone makes room at once, one long unseen as well.
    rig.take(rig.registry.tokenMismatch(PushTarget(.fcm, token: "t5")))
    try rig.put(key("alice", "new"), .init(kind: .fcm, token: "new"))
    #expect(rig.tokens("alice")["d5"] == nil && rig.tokens("alice").count == 16)
    rig.now += Limits.staleMilliseconds + 100_000
    try rig.put(key("alice", "newer"), .init(kind: .fcm, token: "newer"))
    #expect(rig.tokens("alice")["d0"] == nil && rig.tokens("alice").count == 16 && rig.stored.count == 17)
  }

  @Test func `TOK-5: one device registers for at most four apps or services`() throws {
    var rig = Rig()
    for number in 0..<4 { try rig.put(key("alice", "phone"), apns("0\(number)", topic: "app\(number).voip")) }
    #expect(throws: DeviceError.tooManyBindings(limit: 4)) { try rig.put(key("alice", "phone"), apns("77", topic: "app9.voip")) }
    #expect(rig.registry[key("alice", "phone")]?.bindings.count == 4)
    try rig.put(key("alice", "phone"), apns("88", topic: "app2.voip"))
    #expect(rig.tokens("alice") == ["phone": token("88")])
  }

  @Test func `any order of registrations, moves and losses leaves each token with one owner and the store equal`() throws {
    for seed in 0..<UInt64(40) {
      var random = SplitMix64(seed: seed)
      var rig = Rig()
      for _ in 0..<120 {
        let who = key(["a", "b", "c"].randomElement(using: &random)!, ["1", "2", "3"].randomElement(using: &random)!)
        let push = DevicePut.Push(kind: .fcm, token: "t\(Int.random(in: 0..<6, using: &random))")
        let step = Int.random(in: 0..<8, using: &random)
        rig.now += 1
        switch step {
        case 0...3: try? rig.put(who, push)
        case 4: try? rig.put(who, prefs: .init(dnd: Bool.random(using: &random)))
        case 5: rig.take(rig.registry.delete(who))
        case 6:
          rig.take(
            rig.registry.unregistered(
              PushTarget(.fcm, token: push.token), before: Bool.random(using: &random) ? nil : rig.now - 2))
        default:
          let revokes = Bool.random(using: &random)
          rig.take(
            (try? revokes ? rig.registry.revoke(user: who.user, device: who.device, at: rig.now) : rig.registry.allow(who)) ?? [])
        }
        let tokens = rig.registry.all.flatMap { $0.bindings.map(\.target.token.exposed) }
        try #require(Set(tokens).count == tokens.count, "seed \(seed)")
        try #require(Set(rig.stored.values) == Set(rig.registry.all), "seed \(seed)")
      }
    }
  }
}
