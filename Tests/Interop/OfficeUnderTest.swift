import Foundation
import Glibc
import Testing

/// An office network, and outside of it a gateway and coturn, of which clients learn by `welcome`.
final class OfficeUnderTest {
  let network: OfficeNetwork
  let gateway: GatewayUnderTest
  private(set) var server: Spawned
  private let paths: [Spawned]
  private let arguments: [String]
  private let folder: String

  /// - Parameters:
  ///   - url: of the server, whose TLS is on 443 and all else on 3478.
  ///   - port: see `OfficeNetwork`.
  init(_ url: String, lettingThrough port: UInt16? = nil) async throws {
    folder = NSTemporaryDirectory() + "trunkline-office-\(UUID().uuidString.prefix(8))"
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    network = try await OfficeNetwork(in: folder, lettingThrough: port)
    let host = OfficeNetwork.world
    gateway = try await GatewayUnderTest(
      ["turn: { urls: [ \"\(url)\" ], secret_file: jwt.key }"], media: "[ \(host), 127.0.0.1 ]")
    let certificate = try Spawned(
      "openssl", "/usr/bin/openssl",
      [
        "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=turn.test", "-addext",
        "subjectAltName=IP:\(host)",
        "-keyout", "turn.key", "-out", "turn.pem",
      ], in: gateway.folder)
    guard try await certificate.finish(within: 20) == 0 else { throw Spawned.Failure(description: certificate.text) }
    let ports = try FreePorts.row(8)
    arguments = [
      "-n", "--listening-ip", host, "--relay-ip", host, "--tls-listening-port", "443", "--listening-port", "3478", "--min-port",
      "\(ports)", "--max-port", "\(ports + 7)", "--use-auth-secret", "--static-auth-secret", "0123456789abcdef0123456789abcdef",
      "--realm", "turn.test", "--cert", gateway.folder + "/turn.pem", "--pkey", gateway.folder + "/turn.key", "--no-cli",
      "--log-file",
      "stdout", "--pidfile", gateway.folder + "/turn.pid", "--userdb", gateway.folder + "/turn.db",
    ]
    server = try await Self.serve(arguments, in: gateway.folder)
    // The app port is on loopback at both ends: a page on loopback needs no TLS to use a microphone.
    let door = try Peers.python(
      "door", "tcp_path.py", ["--listen", "8080", "--address", host, "--to", "\(gateway.app)"], gateway)
    let path = try Peers.python(
      "path", "tcp_path.py", ["--listen", "8080", "--to", "8080", "--host", host], in: network, gateway)
    for peer in [door, path] { _ = try await peer.event("listening", within: 10) }
    paths = [path, door]
    try Speech.write(Speech.telephone, gateway.folder + "/telephone.wav")
    try Speech.write(Speech.app, gateway.folder + "/app.wav")
  }

  private static func serve(_ arguments: [String], in folder: String) async throws -> Spawned {
    let server = try Spawned("turnserver", "/usr/bin/turnserver", arguments, in: folder)
    guard await eventually(within: 10, { FreePorts.isTaken(443) }) else { throw Spawned.Failure(description: server.text) }
    return server
  }

  /// Kills the server: its allocations are lost without a notification.
  func killServer() async {
    server.signal(SIGKILL)
    _ = await eventually(within: 10) { [server] in !server.isRunning }
  }
  func restartServer() async throws { server = try await Self.serve(arguments, in: gateway.folder) }

  /// The SDK in the office, which trusts the server's certificate alone.
  func phone(_ arguments: [String]) async throws -> Spawned {
    let phone = try await command(
      ["--answer", "--calls", "1", "--play", "app.wav", "--record", "app-heard.wav"] + arguments)
    _ = try await phone.event("online", within: 15)
    return phone
  }

  /// The SDK's command in the office, with no other arguments than these.
  func command(_ arguments: [String]) async throws -> Spawned {
    let token = try await gateway.token("alice", "office")
    return try Spawned(
      "phone", "/sbin/ip",
      [
        "netns", "exec", network.inside, Surroundings.lab, "phone", "--url", "ws://127.0.0.1:8080/v1/connect", "--token", token,
        "--device", "office", "--events",
      ] + arguments, in: gateway.folder, environment: ["SSL_CERT_FILE": gateway.folder + "/turn.pem"])
  }

  /// Expects that both sides heard something.
  func expectSound() throws {
    for file in ["app", "trunk"] {
      let heard = try Speech.read(gateway.folder + "/\(file)-heard.wav")
      #expect(heard.count { abs(Int($0)) > 500 } > 4_000, "\(file): nothing is heard")
    }
  }

  func finish() async throws {
    for peer in paths + [server] {
      peer.signal(SIGTERM)
      _ = await eventually(within: 10) { !peer.isRunning }
    }
    try await gateway.finish()
  }

  deinit { try? FileManager.default.removeItem(atPath: folder) }
}
