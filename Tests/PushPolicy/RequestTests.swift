import Foundation
import Testing
import TrunklineBytes

@testable import JSONWebToken
@testable import PushPolicy

@Suite struct RequestTests {
  private func json(_ bytes: [UInt8]) throws -> [String: Any] {
    try #require(try JSONSerialization.jsonObject(with: Data(bytes)) as? [String: Any])
  }

  @Test func `SRV-2, SRV-4: an APNs request has Apple's path and headers, and the call in its body`() throws {
    var rig = try Rig()
    rig.wake()
    let request = try #require(rig.sent.first?.request)
    #expect(request.host == "api.push.apple.com" && request.port == 443)
    #expect(request.path == "/3/device/" + Rig.token)
    #expect(request.header("apns-topic") == "org.example.app.voip")
    #expect(request.header("apns-push-type") == "voip" && request.header("apns-priority") == "10")
    #expect(request.header("apns-expiration") == "0")
    #expect(request.header("apns-collapse-id") == nil)
    let body = try json(request.body)
    #expect((body["aps"] as? [String: Any])?.isEmpty == true)
    #expect(body["v"] as? Int == 1 && body["t"] as? String == "call")
    #expect(body["call"] as? String == Rig.push(1).call.description)
    #expect(body["exp"] as? Int64 == Rig.unixSeconds + 45)
    #expect(body["gw"] as? String == "wss://gw.example/v1/connect" && body["wake"] as? String == "wake-token")
    let from = try #require(body["from"] as? [String: Any])
    #expect(from["k"] as? String == "phone" && from["h"] as? String == "+15551234567" && from["n"] as? String == "Jane")
  }

  @Test func `the provider token names key and team, and is signed ES256`() throws {
    struct Content: Decodable { var iss: String; var iat: Int64 }
    var rig = try Rig()
    rig.wake()
    let bearer = try #require(rig.sent.first?.request.header("authorization"))
    let content = try Rig.keys().claims(of: String(bearer.dropFirst("bearer ".count)), as: Content.self)
    #expect(content.iss == "TEAM1" && content.iat == Rig.unixSeconds)
    let head = try #require(Base64URL.decode(bearer.dropFirst("bearer ".count).prefix { $0 != "." }.utf8))
    #expect(String(decoding: head, as: UTF8.self).contains(#""kid":"KEY1""#))
  }

  @Test func `a development token goes to the sandbox over a connection of its own`() throws {
    var rig = try Rig()
    rig.wake("d1", PushTarget(.apns, token: Rig.token, environment: .sandbox, topic: "org.example.app.voip"))
    rig.wake("d2")
    #expect(rig.sent.map(\.request.host) == ["api.sandbox.push.apple.com", "api.push.apple.com"])
    #expect(Set(rig.sent.map(\.request.connection)).count == 2)
  }

  @Test func `a sealed caller stands in place of the caller in clear text`() throws {
    var push = Rig.push(1)
    push.sealedCaller = "c2VhbGVk"
    var rig = try Rig()
    rig.feed(.wake(Rig.key("d1", 1), Rig.iPhone, push, deadline: Instant.zero + .seconds(45)))
    let body = try json(try #require(rig.sent.first?.request.body))
    #expect(body["enc"] as? String == "c2VhbGVk" && body["from"] == nil)
  }

  @Test func `a caller that could not be sealed is not told, in clear text least of all`() throws {
    var push = Rig.push(1)
    push.sealCaller(for: PushTarget(.apns, token: Rig.token, sealKey: [UInt8](repeating: 0, count: 32)), .seeded(1))
    var rig = try Rig()
    rig.feed(.wake(Rig.key("d1", 1), Rig.iPhone, push, deadline: Instant.zero + .seconds(45)))
    let body = try json(try #require(rig.sent.first?.request.body))
    #expect(body["enc"] == nil && body["from"] == nil && body["call"] as? String == push.call.description)
  }

  @Test func `SRV-4: a caller too long for 5120 bytes is cut, and ids stay`() throws {
    var push = Rig.push(1, name: String(repeating: "é", count: 4_000), handle: String(repeating: "9", count: 9_000))
    push.sealedCaller = String(repeating: "x", count: 6_000)
    var rig = try Rig()
    rig.feed(.wake(Rig.key("d1", 1), Rig.iPhone, push, deadline: Instant.zero + .seconds(45)))
    let request = try #require(rig.sent.first?.request)
    #expect(request.body.count <= 5_120)
    #expect(try json(request.body)["call"] as? String == push.call.description)
  }

  @Test(arguments: ["", "zz", "../../3/device", "0a\r\nx: y"])
  func `a token that is no hex is no path`(_ token: String) throws {
    var rig = try Rig()
    rig.wake("d1", PushTarget(.apns, token: token, topic: "t"))
    #expect(rig.sent.isEmpty && rig.reports.map(\.reason) == ["unusable"])
  }

  @Test func `RFC 8291 §5: the example comes out byte for byte`() throws {
    func bytes(_ text: String) throws -> [UInt8] { try #require(Base64URL.decode(text.utf8)) }
    let sealed = try WebPushEncryption.encrypt(
      Array("When I grow up, I want to be a watermelon".utf8),
      receiver: bytes("BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"),
      secret: bytes("BTBZMqHH6r4Tts7J_aSIgg"), salt: bytes("DGv6ra1nlYgDCS1FRnbzlw"),
      scalar: bytes("yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw"))
    #expect(
      try Base64URL.encode(#require(sealed))
        == "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A_yl95bQpu6"
        + "cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN")
  }

  @Test func `SRV-2: a browser's push is encrypted, urgent and short-lived, and names the call as its topic`() throws {
    var rig = try Rig(apns: false, webPush: true)
    rig.wake("b1", Self.browser("https://updates.push.services.mozilla.com/wpush/v2/abc?x=1"))
    let request = try #require(rig.sent.first?.request)
    #expect(request.host == "updates.push.services.mozilla.com" && request.path == "/wpush/v2/abc?x=1")
    #expect(request.header("ttl") == "30" && request.header("urgency") == "high")
    #expect(request.header("content-encoding") == "aes128gcm")
    #expect(request.header("topic")?.count == 32)
    #expect(
      request.header("authorization")?.hasPrefix("vapid t=") == true
        && request.header("authorization")?.hasSuffix(", k=BPub") == true)
    #expect(request.body.count > 86 && request.body.count <= 4_096)
    #expect(String(decoding: request.body, as: UTF8.self).contains("wake-token") == false)
  }

  @Test(
    arguments: [
      "http://updates.push.services.mozilla.com/x", "https://127.0.0.1/x", "https://169.254.169.254/latest",
      "https://example.org/x",
      "https://evil@updates.push.services.mozilla.com/x", "https://updates.push.services.mozilla.com:0/x",
      "https://notify.windows.com.evil.org/", "x",
    ])
  func `a subscription elsewhere than at a browser's service is not asked`(_ endpoint: String) throws {
    var rig = try Rig(apns: false, webPush: true)
    rig.wake("b1", Self.browser(endpoint))
    #expect(rig.sent.isEmpty && rig.reports.map(\.reason) == ["unusable"])
  }

  static func browser(_ endpoint: String) -> PushTarget {
    PushTarget(
      .webPush,
      token: """
        {"endpoint":"\(endpoint)","keys":{"p256dh":"BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4",\
        "auth":"BTBZMqHH6r4Tts7J_aSIgg"}}
        """)
  }
}
