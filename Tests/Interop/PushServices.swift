import Foundation
import Testing

/// A push service and what a gateway's configuration needs for it: our stand-in, or a foreign HTTP/2 server.
final class PushServiceUnderTest {
  enum Kind: String, CaseIterable { case standIn = "trunkline-lab push-sandbox", h2 = "hyper h2 (Python)" }
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

  /// - Parameter clients: only clients with a certificate of `certificates.py`'s authority are let in.
  init(_ kind: Kind, answers: String = "real", clients: Bool = false) async throws {
    self.kind = kind
    folder = FileManager.default.temporaryDirectory.appendingPathComponent("trunkline-push-\(UUID().uuidString.prefix(8))").path
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    try Self.key.write(toFile: folder + "/AuthKey.p8", atomically: true, encoding: .utf8)
    ports = (try FreePorts.both(), try FreePorts.tcp(), try FreePorts.tcp())
    guard let python = Surroundings.python else { throw Spawned.Failure(description: Surroundings.missing ?? "") }
    if clients {
      let maker = Surroundings.sources + "/peers/certificates.py"
      let made = try Spawned("certificates", python, ["-B", maker, folder], in: folder)
      guard try await made.finish(within: 20) == 0 else { throw Spawned.Failure(description: made.text) }
    }
    switch kind {
    case .standIn:
      (apnsPort, appsPort) = (try FreePorts.tcp(), try FreePorts.tcp())
      process = try Spawned(
        "sandbox", Surroundings.lab,
        [
          "push-sandbox", "--listen", "127.0.0.1:\(apnsPort)", "--apps", "127.0.0.1:\(appsPort)", "--certificate", "cert.pem",
          "--key", "AuthKey.p8", "--answers", answers,
        ] + (clients ? ["--clients", "clients.pem"] : []), in: folder)
      guard await eventually(within: 10, { self.process.text.contains("push sandbox:") }) else {
        throw Spawned.Failure(description: process.text)
      }
    case .h2:
      appsPort = 0
      let script = URL(fileURLWithPath: Surroundings.sources).deletingLastPathComponent().appendingPathComponent(
        "OutgoingHTTP/push_peer.py"
      ).path
      let arguments = ["-B", script, folder, folder + "/AuthKey.p8"] + (clients ? [folder + "/clients.pem"] : [])
      let peer = try Spawned("push-peer", python, arguments, in: folder)
      process = peer
      guard await eventually(within: 15, { peer.text.contains("\n") }), let port = UInt16(peer.text.prefix { $0 != "\n" }) else {
        throw Spawned.Failure(description: peer.text)
      }
      apnsPort = port
    }
  }

  /// The port that the gateway pushes to.
  var port: UInt16 { apnsPort }
  /// The address at which apps wait for pushes.
  var apps: String { "127.0.0.1:\(appsPort)" }

  deinit { try? FileManager.default.removeItem(atPath: folder) }

  /// How the gateway pushes here.
  enum Way: Equatable {
    case apns, fcm, webPush
    /// APNs with this client's certificate of `certificates.py`.
    case certificate(String)
  }

  /// A gateway that pushes here.
  func gateway(_ more: [String] = [], over way: Way = .apns, media: String = "[ 127.0.0.1 ]") async throws -> GatewayUnderTest {
    try await GatewayUnderTest([try await section(way)] + more, media: media, ports: ports)
  }

  /// `push:` of its configuration.
  func section(_ way: Way) async throws -> String {
    let url = "https://127.0.0.1:\(apnsPort)"
    let service: String
    switch way {
    case .apns: service = "apns: { key_file: \(folder)/AuthKey.p8, key_id: KEY1, team_id: TEAM1, url: \"\(url)\" }"
    case .certificate(let name):
      service = "apns: { certificate: { cert: \(folder)/\(name).pem, key: \(folder)/\(name).key }, url: \"\(url)\" }"
    case .webPush:
      service =
        "webpush: { key_file: \(folder)/AuthKey.p8, subject: \"mailto:ops@example.com\", hosts: [ \"127.0.0.1:\(apnsPort)\" ] }"
    case .fcm:
      let made = try Spawned("openssl", "/usr/bin/env", ["openssl", "genrsa", "-out", "rsa.pem", "2048"], in: folder)
      try await made.finish(within: 20)
      let account = [
        "project_id": "p1", "client_email": "gateway@p1.example", "token_uri": url + "/token",
        "private_key": try String(contentsOfFile: folder + "/rsa.pem", encoding: .utf8),
      ]
      try JSONSerialization.data(withJSONObject: account).write(to: URL(fileURLWithPath: folder + "/firebase.json"))
      service = "fcm: { service_account: \(folder)/firebase.json, url: \"\(url)\" }"
    }
    return "push: { gateway: \"ws://127.0.0.1:\(ports.app)/v1/connect\", ca: \(folder)/cert.pem, \(service) }"
  }

  /// The push token of a device; h2 chooses its answer by the token's beginning.
  private static func token(_ device: String) -> String {
    let hex = device.utf8.map { String($0, radix: 16) }.joined()
    return "200" + hex + String(repeating: "0", count: 61 - hex.count)
  }

  /// Our app, which registered and was then killed. `token`: another registration than the device's own.
  func killedApp(
    _ gateway: GatewayUnderTest, user: String = "alice", device: String = "cell", token: String? = nil, _ arguments: [String]
  ) async throws -> Spawned {
    let phone = try Spawned(
      "killed-\(device)", Surroundings.lab,
      [
        "phone", "--answer", "--wait-for-push", kind == .standIn ? "127.0.0.1:\(appsPort)" : "-", "--push-token",
        token ?? Self.token(device), "--url", "ws://127.0.0.1:\(gateway.app)/v1/connect", "--token",
        try await gateway.token(user, device), "--device", device, "--events",
      ] + arguments, in: gateway.folder)
    _ = try await phone.event("waiting")
    return phone
  }

  /// The same with aiortc, which prints every message.
  func killedPhone(
    _ gateway: GatewayUnderTest, user: String = "alice", device: String = "cell", accounts: [String] = [], _ arguments: [String]
  ) async throws -> Spawned {
    let phone = try Peers.python(
      "killed-\(device)", "app_phone.py",
      [
        "--url", "ws://127.0.0.1:\(gateway.app)/v1/connect", "--token",
        try await gateway.token(user, device, accounts: accounts), "--device", device, "--host", "127.0.0.1", "--register",
        Self.token(device), "--trace", "--wait-for-push",
        kind == .standIn ? "127.0.0.1:\(appsPort)" : "-",
      ] + arguments, gateway)
    _ = try await phone.event("waiting", within: 20)
    return phone
  }

  /// What the service has printed.
  var text: String { process.text }
  /// The requests that the service received.
  var requests: [[String: Any]] { process.events }

  /// Of h2: the `kid` of each request's provider token, and the connection of the request.
  var keysAndConnections: [(key: String, connection: Int)] {
    process.events.map { request in
      let bearer = (request["headers"] as? [String: String])?["authorization"]?.split(separator: " ").last ?? ""
      var head = String(bearer.prefix { $0 != "." }).replacing("-", with: "+").replacing("_", with: "/")
      while head.count % 4 != 0 { head += "=" }
      let json = Data(base64Encoded: head).flatMap { try? JSONSerialization.jsonObject(with: $0) as? [String: String] }
      return (json?["kid"] ?? "", request["connection"] as? Int ?? 0)
    }
  }

  /// The payload of the next push that the service accepted; the stand-in hands it to the app itself.
  func nextPush(within seconds: Double = 5) async throws -> [String: Any] {
    let index = handedOver
    guard kind == .h2, await eventually(within: seconds, { self.process.events.count > index }) else {
      throw Spawned.Failure(description: "no push came: \(process.text)")
    }
    handedOver += 1
    let body = process.events[index]["body"] as? String ?? ""
    return try JSONSerialization.jsonObject(with: Data(body.utf8)) as? [String: Any] ?? [:]
  }

  /// Carries the next push from the service to the app, where the service does not do so itself.
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
