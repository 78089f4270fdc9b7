import Foundation
import JSONWebToken
import PushPolicy
import Testing
import TrunklineBytes

@testable import Configuration

@Suite struct PushSettingsTests {
  /// Made for this test; protects nothing. Its public half was taken with `openssl ec -pubout`.
  static let p256 = """
    -----BEGIN PRIVATE KEY-----
    MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg1KnRB0wd1astiy4C
    wDATewjZvav+JIma5TUHrRXWi7+hRANCAATrVFCUOrNezLD1b4OfY4YDdiEyFNwR
    Ebf9D3cfu1s2bKbHbSdE3GUPFHrrUW8VvbmWRuRfOVmzFilEqlOytLOc
    -----END PRIVATE KEY-----

    """
  let start = "auth: { jwt: { key_file: jwt.key } }\npush:\n  gateway: wss://gw.example.com/v1/connect\n"

  private func folder(_ more: [String: String] = [:]) throws -> TemporaryFolder {
    try TemporaryFolder(
      ["jwt.key": TemporaryFolder.key, "a.p8": Self.p256, "cert.pem": "certificate", "fcm.json": "{}"].merging(more) { $1 })
  }

  @Test func `SRV-5: APNs by key takes the key, its id and the team, and a stand-in's address`() throws {
    let folder = try folder()
    let push = try #require(
      try folder.parse(
        start
          + "  ca: cert.pem\n  apns: { key_file: a.p8, key_id: KEY1, team_id: TEAM1, topic: org.example.voip, environment: sandbox, url: https://127.0.0.1:2197 }"
      ).push)
    #expect(push.gateway == "wss://gw.example.com/v1/connect" && push.tls == .init(authorities: folder.path + "/cert.pem"))
    let apns = try #require(push.providers[.apns] as? APNsProvider)
    guard case .key(let signer, "KEY1", "TEAM1") = apns.credentials else {
      Issue.record("\(apns.credentials)")
      return
    }
    let header = try Base64URL.decode(Array(signer.sign(["try": "it"]).utf8.prefix { $0 != UInt8(ascii: ".") })) ?? []
    #expect(String(decoding: header, as: UTF8.self).contains("\"kid\":\"KEY1\""))
    #expect(push.topic == "org.example.voip" && push.environment == .sandbox)
    #expect(apns.production == ("127.0.0.1", 2197) && apns.sandbox == apns.production)
    let two =
      try folder.parse(
        start
          + "  apns: { key_file: a.p8, key_id: K, team_id: T, url: { production: \"https://[::1]:1\", sandbox: https://apns.example } }"
      ).push?.providers[.apns] as? APNsProvider
    #expect(try #require(two).production == ("[::1]", 1) && #require(two).sandbox == ("apns.example", 443))
  }

  @Test func `SRV-8: a VoIP certificate stands in place of the key, and a renewed file is another certificate`() throws {
    let folder = try folder()
    let text = start + "  apns: { certificate: { cert: cert.pem, key: a.p8 } }"
    func connection() throws -> String? { try folder.parse(text).push?.providers[.apns]?.connection(.production) }
    let first = try #require(try connection())
    #expect(
      try folder.parse(text).push?.tls == .init(certificate: folder.path + "/cert.pem", key: folder.path + "/a.p8"))
    #expect(try connection() == first)
    try "another".write(toFile: folder.path + "/cert.pem", atomically: true, encoding: .utf8)
    #expect(try connection() != first)
  }

  @Test func `browsers subscribe with the public half of the key`() throws {
    let push = try folder().parse(
      start + "  webpush: { key_file: a.p8, subject: \"mailto:ops@example.com\", hosts: [ push.example.com ] }"
    ).push
    let web = try #require(push?.providers[.webPush] as? WebPushProvider)
    #expect(web.hosts == ["push.example.com"])
    #expect(web.publicKey == "BOtUUJQ6s17MsPVvg59jhgN2ITIU3BERt_0Pdx-7WzZspsdtJ0TcZQ8UeutRbxW9uZZG5F85WbMWKUSqU7K0s5w")
  }

  @Test(arguments: [
    (
      "  apns: { key_id: K, team_id: T }",
      "4:9: push.apns: key_file is missing: the .p8 that Apple gave you, or certificate: { cert: FILE, key: FILE }"
    ),
    ("  apns: { key_file: a.p8, key_id: K }", "4:9: push.apns: team_id is missing"),
    (
      "  apns: { key_file: none.p8, key_id: K, team_id: T }",
      "4:21: push.apns.key_file: cannot read DIR/none.p8: No such file or directory"
    ),
    (
      "  apns: { key_file: jwt.key, key_id: K, team_id: T }",
      "4:21: push.apns.key_file: no usable key: no PEM of a private key, public key or certificate"
    ),
    (
      "  apns: { key_file: a.p8, key_id: \"a b\", team_id: T }",
      "4:35: push.apns.key_id: expected the key's id, such as ABC123DEFG, got \"a b\""
    ),
    (
      "  apns: { key_file: a.p8, key_id: K, team_id: T, topic: org.example }",
      "4:57: push.apns.topic: expected the app's bundle identifier with .voip behind it, got \"org.example\""
    ),
    (
      "  apns: { key_file: a.p8, key_id: K, team_id: T, environment: test }",
      "4:63: push.apns.environment: expected production or sandbox, got \"test\""
    ),
    (
      "  apns: { key_file: a.p8, key_id: K, team_id: T, url: http://x }",
      "4:55: push.apns.url: expected an address such as https://127.0.0.1:2197, got \"http://x\""
    ),
    ("  apns: { certificate: { cert: cert.pem }, key_id: K }", "4:24: push.apns.certificate: key is missing"),
    ("  fcm: {}", "4:8: push.fcm: service_account is missing: the JSON file that Google gave you"),
    ("  fcm: { service_account: a.p8 }", "4:27: push.fcm.service_account: not the JSON of a service account"),
    (
      "  fcm: { service_account: fcm.json }",
      "4:27: push.fcm.service_account: the service account has no project_id, client_email, private_key"
    ),
    (
      "  webpush: { key_file: a.p8, subject: ops }",
      "4:39: push.webpush.subject: expected a contact such as mailto:ops@example.com or https://example.com, got \"ops\""
    ),
    ("  apn: {}", "4:3: push.apn: unknown key; did you mean apns? known here: gateway, apns, fcm, webpush, ca"),
  ])
  func `what a push service would refuse is found when the file is read`(text: String, problem: String) throws {
    let problems = try folder().problems(start + text)
    #expect(problems.contains("gateway.yaml:" + problem), "\(problems)")
  }

  @Test func `a gateway address must be given, and be one`() throws {
    let apns = "  apns: { key_file: a.p8, key_id: K, team_id: T }\n"
    #expect(
      try folder().problems("auth: { jwt: { key_file: jwt.key } }\npush:\n" + apns) == [
        "gateway.yaml:3:3: push: gateway is missing: the address that a woken app connects to, such as wss://phone.example.com/v1/connect"
      ])
    #expect(
      try folder().problems("auth: { jwt: { key_file: jwt.key } }\npush:\n  gateway: phone.example.com\n" + apns) == [
        "gateway.yaml:3:12: push.gateway: expected an address such as wss://phone.example.com/v1/connect, got \"phone.example.com\""
      ])
    #expect(try folder().problems(start) == ["gateway.yaml:3:3: push: needs apns, fcm or webpush"])
  }
}
