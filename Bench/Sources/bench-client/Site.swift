import BenchKit
import Foundation
import Glibc

/// A release gateway, the stand-in of APNs, and one registered telephone whose app was killed: all on loopback, in a folder of their own.
final class Site {
  static let number = "+15551230001"
  private static let pushToken = String(repeating: "5a", count: 32)
  /// Made for benches; protects nothing.
  private static let key = """
    -----BEGIN PRIVATE KEY-----
    MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg1KnRB0wd1astiy4C
    wDATewjZvav+JIma5TUHrRXWi7+hRANCAATrVFCUOrNezLD1b4OfY4YDdiEyFNwR
    Ebf9D3cfu1s2bKbHbSdE3GUPFHrrUW8VvbmWRuRfOVmzFilEqlOytLOc
    -----END PRIVATE KEY-----

    """

  let folder: URL
  let url: String
  private let ports: [UInt16]
  /// Where pages and sockets connect.
  var appPort: UInt16 { ports[1] }
  private let gateway: Spawned
  private let sandbox: Spawned
  private var carriers = 0

  init() throws {
    folder = FileManager.default.temporaryDirectory.appendingPathComponent("trunkline-client-\(UUID().uuidString.prefix(8))")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    ports = try FreePorts.udp(6)
    url = "ws://127.0.0.1:\(ports[1])/v1/connect"
    try Data("0123456789abcdef0123456789abcdef\n".utf8).write(to: folder.appendingPathComponent("jwt.key"))
    try Data(Self.key.utf8).write(to: folder.appendingPathComponent("AuthKey.p8"))
    sandbox = try Spawned(
      "sandbox", Gateway.lab,
      [
        "push-sandbox", "--listen", "127.0.0.1:\(ports[4])", "--apps", "127.0.0.1:\(ports[5])", "--certificate", "cert.pem",
        "--key",
        "AuthKey.p8",
      ], in: folder)
    _ = try sandbox.line("push sandbox:", within: 10)
    try Data(Self.configuration(ports, url).utf8).write(to: folder.appendingPathComponent("gateway.yaml"))
    gateway = try Spawned("gateway", Gateway.binary, ["serve", "--config", "gateway.yaml"], in: folder)
  }

  private static func configuration(_ ports: [UInt16], _ url: String) -> String {
    """
    listen: { sip: { udp: 127.0.0.1:\(ports[0]) }, app: { address: 127.0.0.1:\(ports[1]) }, admin: 127.0.0.1:\(ports[2]) }
    media: { addresses: [ 127.0.0.1 ], threads: 1, app_port: \(ports[3]), trunk_ports: 22000-22199 }
    limits: { calls: 100, calls_per_user: 100 }
    auth: { jwt: { key_file: jwt.key } }
    trunks: [ { name: carrier, peers: [ 127.0.0.0/8 ], uri: "sip:127.0.0.1:9" } ]
    users: [ { id: alice, numbers: [ "\(number)" ] } ]
    routes: { inbound: [ { trunk: carrier, to: users } ] }
    push:
      gateway: "\(url)"
      ca: cert.pem
      apns: { key_file: AuthKey.p8, key_id: KEY1, team_id: TEAM1, url: "https://127.0.0.1:\(ports[4])" }
    log: { level: error }

    """
  }

  func waitUntilReady() throws {
    let deadline = Date(timeIntervalSinceNow: 15)
    while Date() < deadline, gateway.isRunning {
      if Gateway.isReady(admin: ports[2]) { return }
      usleep(10_000)
    }
    throw BenchError(text: "the gateway did not become ready")
  }

  func end() {
    gateway.end()
    gateway.end(SIGKILL)
    sandbox.end()
    try? FileManager.default.removeItem(at: folder)
  }

  func token(device: String) throws -> String {
    let command = try Spawned(
      "token", Gateway.binary, ["token", "--user", "alice", "--device", device, "--config", "gateway.yaml"], in: folder)
    return try command.line(".", within: 10).trimmingCharacters(in: .whitespaces)
  }

  /// The app has logged in once and said where it can be pushed to; then it was killed.
  func register() throws {
    let phone = try Spawned(
      "registered", Gateway.lab,
      [
        "phone", "--answer", "--wait-for-push", "127.0.0.1:\(ports[5])", "--push-token", Self.pushToken, "--url", url, "--token",
        try token(device: "cell"), "--device", "cell", "--events",
      ], in: folder)
    _ = try phone.line("waiting", within: 10)
    phone.end(SIGKILL)
  }

  /// A carrier of its own for one call.
  func carrier(talk seconds: Double) throws -> Spawned {
    carriers += 1
    let port = try FreePorts.udp(1)[0]
    return try Spawned(
      "carrier-\(carriers)", Gateway.lab,
      [
        "trunk", "--gateway", "127.0.0.1:\(ports[0])", "--listen", "127.0.0.1:\(port)", "--events", "--repeat", "--call",
        Self.number,
        "--talk", "\(seconds)",
      ], in: folder)
  }

  func app(_ plan: AppProcess.Plan) throws -> Spawned {
    let json = String(decoding: try JSONEncoder().encode(plan), as: UTF8.self)
    let program = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath().path
    return try Spawned("app", program, [AppProcess.option, json], in: folder)
  }

  func pushes() throws -> PushListener { try PushListener(ports[5], Self.pushToken) }
}

/// What APNs keeps open to a telephone: hands on each push's payload.
final class PushListener {
  private let fd: Int32
  private var rest: [UInt8] = []

  init(_ port: UInt16, _ token: String) throws {
    fd = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    var address = loopbackAddress(port)
    let isConnected = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(fd, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
      }
    }
    var limit = timeval(tv_sec: 10, tv_usec: 0)
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
    let line = Array("{\"token\":\"\(token)\"}\n".utf8)
    guard isConnected, send(fd, line, line.count, Int32(MSG_NOSIGNAL)) == line.count else {
      throw BenchError(text: "the push sandbox does not listen")
    }
  }

  deinit { close(fd) }

  func next() throws -> String {
    while true {
      if let end = rest.firstIndex(of: 10) {
        let line = Data(rest[..<end])
        rest.removeSubrange(...end)
        guard let values = try? JSONSerialization.jsonObject(with: line) as? [String: Any], let payload = values["payload"] else {
          continue
        }
        return String(decoding: try JSONSerialization.data(withJSONObject: payload), as: UTF8.self)
      }
      var bytes = [UInt8](repeating: 0, count: 4_096)
      let count = recv(fd, &bytes, bytes.count, 0)
      guard count > 0 else { throw BenchError(text: "no push came") }
      rest += bytes[..<count]
    }
  }
}
