import Foundation
import Testing

/// A push service and what a gateway needs to know of it: our stand-in, or an HTTP/2 server that nobody here wrote.
final class PushServiceUnderTest {
  enum Kind: String, CaseIterable { case standIn = "trunkline push-sandbox", h2 = "hyper h2 (Python)" }
  let kind: Kind
  let folder: String
  let ports: (sip: UInt16, app: UInt16, admin: UInt16)
  private let process: Spawned
  private let apnsPort: UInt16
  private let appsPort: UInt16
  private var handedOver = 0

  /// Made for tests; protects nothing.
  private static let key = """
    -----BEGIN PRIVATE KEY-----
    MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg1KnRB0wd1astiy4C
    wDATewjZvav+JIma5TUHrRXWi7+hRANCAATrVFCUOrNezLD1b4OfY4YDdiEyFNwR
    Ebf9D3cfu1s2bKbHbSdE3GUPFHrrUW8VvbmWRuRfOVmzFilEqlOytLOc
    -----END PRIVATE KEY-----

    """

  init(_ kind: Kind, answers: String = "real") async throws {
    self.kind = kind
    folder = FileManager.default.temporaryDirectory.appendingPathComponent("trunkline-push-\(UUID().uuidString.prefix(8))").path
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    try Self.key.write(toFile: folder + "/AuthKey.p8", atomically: true, encoding: .utf8)
    ports = (try FreePorts.both(), try FreePorts.tcp(), try FreePorts.tcp())
    switch kind {
    case .standIn:
      (apnsPort, appsPort) = (try FreePorts.tcp(), try FreePorts.tcp())
      process = try Spawned(
        "sandbox", Surroundings.trunkline,
        [
          "push-sandbox", "--listen", "127.0.0.1:\(apnsPort)", "--apps", "127.0.0.1:\(appsPort)", "--certificate", "cert.pem",
          "--key",
          "AuthKey.p8", "--answers", answers,
        ], in: folder)
      guard await eventually(within: 10, { self.process.text.contains("push sandbox:") }) else {
        throw Spawned.Failure(description: process.text)
      }
    case .h2:
      guard let python = Surroundings.python else { throw Spawned.Failure(description: Surroundings.missing ?? "") }
      appsPort = 0
      let script = URL(fileURLWithPath: Surroundings.sources).deletingLastPathComponent().appendingPathComponent(
        "PushSender/push_peer.py"
      ).path
      let peer = try Spawned("push-peer", python, ["-B", script, folder, folder + "/AuthKey.p8"], in: folder)
      process = peer
      guard await eventually(within: 15, { peer.text.contains("\n") }), let port = UInt16(peer.text.prefix { $0 != "\n" }) else {
        throw Spawned.Failure(description: peer.text)
      }
      apnsPort = port
    }
  }

  deinit { try? FileManager.default.removeItem(atPath: folder) }

  /// A gateway that pushes here, over APNs or over FCM.
  func gateway(_ more: [String] = [], overFCM: Bool = false) async throws -> GatewayUnderTest {
    let place = "https://127.0.0.1:\(apnsPort)"
    var service = "apns: { key_file: \(folder)/AuthKey.p8, key_id: KEY1, team_id: TEAM1, url: \"\(place)\" }"
    if overFCM {
      let made = try Spawned("openssl", "/usr/bin/env", ["openssl", "genrsa", "-out", "rsa.pem", "2048"], in: folder)
      try await made.finish(within: 20)
      let account = [
        "project_id": "p1", "client_email": "gateway@p1.example", "token_uri": place + "/token",
        "private_key": try String(contentsOfFile: folder + "/rsa.pem", encoding: .utf8),
      ]
      try JSONSerialization.data(withJSONObject: account).write(to: URL(fileURLWithPath: folder + "/firebase.json"))
      service = "fcm: { service_account: \(folder)/firebase.json, url: \"\(place)\" }"
    }
    let push = "push: { gateway: \"ws://127.0.0.1:\(ports.app)/v1/connect\", ca: \(folder)/cert.pem, \(service) }"
    return try await GatewayUnderTest([push] + more, ports: ports)
  }

  /// An app that has registered and was then killed. h2 answers what the token begins with.
  func killedApp(_ gateway: GatewayUnderTest, user: String = "alice", device: String = "cell", _ arguments: [String]) async throws
    -> Spawned
  {
    let phone = try Spawned(
      "killed-\(device)", Surroundings.trunkline,
      [
        "phone", "--answer", "--wait-for-push", kind == .standIn ? "127.0.0.1:\(appsPort)" : "-", "--push-token",
        "200" + String(repeating: "ab", count: 30) + "0", "--url", "ws://127.0.0.1:\(gateway.app)/v1/connect", "--token",
        try await gateway.token(user, device), "--device", device, "--events",
      ] + arguments, in: gateway.folder)
    _ = try await phone.event("waiting")
    return phone
  }

  /// Of h2: the `kid` that each request's provider token was signed with, and the connection it came on.
  var keysAndConnections: [(key: String, connection: Int)] {
    process.events.map { request in
      let bearer = (request["headers"] as? [String: String])?["authorization"]?.split(separator: " ").last ?? ""
      var head = String(bearer.prefix { $0 != "." }).replacing("-", with: "+").replacing("_", with: "/")
      while head.count % 4 != 0 { head += "=" }
      let json = Data(base64Encoded: head).flatMap { try? JSONSerialization.jsonObject(with: $0) as? [String: String] }
      return (json?["kid"] ?? "", request["connection"] as? Int ?? 0)
    }
  }

  /// The next push that the service took, as its payload; the stand-in hands it to the app itself.
  func nextPush(within seconds: Double = 5) async throws -> [String: Any] {
    let index = handedOver
    guard kind == .h2, await eventually(within: seconds, { self.process.events.count > index }) else {
      throw Spawned.Failure(description: "no push came: \(process.text)")
    }
    handedOver += 1
    let body = process.events[index]["body"] as? String ?? ""
    return try JSONSerialization.jsonObject(with: Data(body.utf8)) as? [String: Any] ?? [:]
  }

  /// Carries the next push from the service to the app, where the service does not do it.
  func deliver(to app: Spawned) async throws {
    guard kind == .h2 else { return }
    app.type(String(decoding: try JSONSerialization.data(withJSONObject: try await nextPush()), as: UTF8.self))
  }

  func stop() async throws {
    process.closeInput()
    if kind == .standIn { process.signal(SIGTERM) }
    try await process.finish(within: 10)
  }
}
