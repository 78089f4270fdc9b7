import Foundation
import Glibc
import Synchronization
import Testing
import TrunklineBytes
import TrunklinePlatform

/// A real gateway, `trunkline serve`, on free loopback ports with its own folder, and what it wrote.
final class GatewayUnderTest: @unchecked Sendable {
  let folder: String
  /// Where the test's peers reach it.
  let host: String
  let sip: UInt16
  let app: UInt16
  let admin: UInt16
  let carrier: UInt16
  let trunkPorts: UInt16
  private(set) var process: Spawned
  private let binary: String
  private let namespace: String?
  /// What `get` says to the admin port.
  private let bearer: String?
  /// Components of `/readyz` that need not be ready at the start.
  private let unready: Set<String>
  /// Call-IDs of the INVITEs that `Peers.caller` sent, for `Accounting`.
  let invites = Mutex<Set<String>>([])

  /// `more` replaces or adds top-level lines of the configuration by key: "timers: …".
  /// `ports`: of a `listen:` of the test's own; `carrier`: of a `trunks:`.
  /// `network`: the gateway runs behind its translator, and `more` has the `listen:` for that.
  /// `binary`: another build of the gateway than the one beside the tests.
  init(
    _ more: [String] = [], users: [String: String] = ["alice": "+15551230001", "bob": "+15551230002"], trunk: String = "",
    media: String = "[ 127.0.0.1 ]", binary: String = Surroundings.trunkline,
    ports: (sip: UInt16, app: UInt16, admin: UInt16)? = nil,
    carrier carrierPort: UInt16? = nil, network: TranslatedNetwork? = nil, bearer: String? = nil, unready: Set<String> = []
  ) async throws {
    self.unready = unready.union(["trunks"])
    self.bearer = bearer ?? network.map { _ in TranslatedNetwork.token }
    (host, namespace) = (network == nil ? "127.0.0.1" : TranslatedNetwork.outside, network?.inside)
    self.binary = binary
    folder = FileManager.default.temporaryDirectory.appendingPathComponent("trunkline-\(UUID().uuidString.prefix(8))").path
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    sip = try ports?.sip ?? FreePorts.both()
    app = try ports?.app ?? FreePorts.tcp()
    admin = try ports?.admin ?? FreePorts.tcp()
    carrier = try carrierPort ?? FreePorts.both()
    trunkPorts = try FreePorts.row(60)
    try "0123456789abcdef0123456789abcdef\n".write(toFile: folder + "/jwt.key", atomically: true, encoding: .utf8)
    try "s3cret\n".write(toFile: folder + "/password", atomically: true, encoding: .utf8)
    var lines = [
      "listen: { sip: { udp: 127.0.0.1:\(sip), tcp: 127.0.0.1:\(sip) }, app: { address: 127.0.0.1:\(app) }, admin: 127.0.0.1:\(admin) }",
      "media: { addresses: \(media), threads: 2, app_port: \(trunkPorts + 58), trunk_ports: \(trunkPorts)-\(trunkPorts + 57) }",
      "auth: { jwt: { key_file: jwt.key } }",
      "trunks: [ { name: carrier, peers: [127.0.0.0/8], uri: \"sip:127.0.0.1:\(carrier)\"\(trunk.isEmpty ? "" : ", " + trunk) } ]",
      "users: [ \(users.sorted { $0.key < $1.key }.map { "{ id: \($0.key), numbers: [\"\($0.value)\"] }" }.joined(separator: ", ")) ]",
      "routes: { inbound: [ { trunk: carrier, to: users } ], outbound: [ { prefix: \"+\", trunk: carrier } ] }",
      "log: { level: debug }",
    ]
    for line in more {
      let key = line.prefix { $0 != ":" }
      lines.removeAll { $0.prefix { $0 != ":" } == key }
      lines.append(line)
    }
    try (lines.joined(separator: "\n") + "\n").write(toFile: folder + "/gateway.yaml", atomically: true, encoding: .utf8)
    process = try Self.spawn(folder, binary, in: namespace)
    JudgedCalls.add(self)
    try await waitUntilReady()
  }

  deinit { try? FileManager.default.removeItem(atPath: folder) }

  private static func spawn(_ folder: String, _ binary: String, in namespace: String?) throws -> Spawned {
    let serve = ["serve", "--config", folder + "/gateway.yaml"]
    guard let namespace else { return try Spawned("gateway", binary, serve, in: folder) }
    return try Spawned("gateway", "/sbin/ip", ["netns", "exec", namespace, binary] + serve, in: folder)
  }

  private func waitUntilReady() async throws {
    let ready = await eventually(within: 15) { self.isReadyButForTrunks || !self.process.isRunning }
    guard ready, process.isRunning else { throw Spawned.Failure(description: "the gateway is not ready:\n\(process.text)") }
  }

  /// Calls can come: a carrier of the test's that is not there yet does not matter.
  private var isReadyButForTrunks: Bool {
    guard let page = try? get("/readyz"), let json = try? JSONSerialization.jsonObject(with: Data(page.body.utf8)),
      let components = (json as? [String: Any])?["components"] as? [[String: Any]],
      components.contains(where: { $0["name"] as? String == "calls" })
    else { return false }
    return components.allSatisfy { $0["ready"] as? Bool == true || unready.contains($0["name"] as? String ?? "") }
  }

  /// Starts it again in the same folder, after it was killed.
  func restart() async throws {
    process = try Self.spawn(folder, binary, in: namespace)
    try await waitUntilReady()
  }

  func token(_ user: String, _ device: String, accounts: [String] = []) async throws -> String {
    let command = try Spawned(
      "token", Surroundings.trunkline,
      ["token", "--user", user, "--device", device, "--config", folder + "/gateway.yaml"]
        + accounts.flatMap { ["--account", $0] },
      in: folder)
    guard try await command.finish(within: 10) == 0 else { throw Spawned.Failure(description: command.text) }
    return command.text.trimmingCharacters(in: .whitespacesAndNewlines)
  }

  /// A GET of the admin endpoint.
  func get(_ path: String) throws -> (status: Int, body: String) {
    let headers = bearer.map { ["Authorization: Bearer \($0)"] } ?? []
    return try HTTP.request("GET", path, host: host, port: admin, headers: headers)
  }

  /// The value of a metric line, by its name with labels as printed; nil if there is none.
  func metric(_ name: String) throws -> Double? {
    for line in try get("/metrics").body.split(separator: "\n") where line.hasPrefix(name + " ") {
      return Double(line.split(separator: " ").last ?? "")
    }
    return nil
  }

  /// The sum of all samples of a family, or of those that contain `part`.
  func sum(_ family: String, _ part: String = "") throws -> Double {
    try get("/metrics").body.split(separator: "\n").filter {
      ($0.hasPrefix(family + "{") || $0.hasPrefix(family + " ")) && (part.isEmpty || $0.contains(part))
    }
    .compactMap { Double($0.split(separator: " ").last ?? "") }.reduce(0, +)
  }

  var records: [[String: Any]] {
    let text = (try? String(contentsOfFile: folder + "/calls.jsonl", encoding: .utf8)) ?? ""
    return text.split(separator: "\n").compactMap { try? JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any] }
  }

  /// The records once there are `count`.
  func records(_ count: Int, within seconds: Double = 5) async throws -> [[String: Any]] {
    guard await eventually(within: seconds, { self.records.count >= count }) else {
      throw Spawned.Failure(description: "\(records.count) records instead of \(count)\n\(process.text.suffix(6_000))")
    }
    return records
  }

  /// Every INVITE is a call or a counted refusal, every call has one record, nothing was answered without media and every gauge is back.
  /// Then the gateway ends by SIGTERM.
  func finish(_ location: SourceLocation = #_sourceLocation) async throws {
    _ = await eventually(within: 6) { try self.sum("trunkline_calls") == 0 && self.sum("trunkline_media_sessions") == 0 }
    _ = await eventually(within: 3) {
      let started = try self.sum("trunkline_calls_started_total")
      return Double(self.records.count) >= started
    }
    let started = try sum("trunkline_calls_started_total")
    #expect(Double(records.count) == started, "one record per call", sourceLocation: location)
    #expect(Set(records.compactMap { $0["call"] as? String }).count == records.count, "no call twice", sourceLocation: location)
    #expect(try metric("trunkline_answered_without_media_total") == 0, sourceLocation: location)
    #expect(try sum("trunkline_calls") == 0, "every call is over", sourceLocation: location)
    #expect(try sum("trunkline_media_sessions") == 0, "every media session is closed", sourceLocation: location)
    try joinInvites(location)
    process.signal(SIGTERM)
    let status = try await process.finish(within: 10)
    #expect(status == 0, "the gateway drained: \(process.text.suffix(3_000))", sourceLocation: location)
  }
}

/// One plain HTTP/1.1 request on loopback; the server closes, or Content-Length ends it.
enum HTTP {
  static func request(
    _ method: String, _ path: String, host: String = "127.0.0.1", port: UInt16, headers: [String] = [], body: String = ""
  ) throws -> (status: Int, body: String) {
    let fd = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    defer { close(fd) }
    var limit = timeval(tv_sec: 30, tv_usec: 0)
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
    guard let address = IPAddress(host), SocketAddress(address, port).withSockaddr({ connect(fd, $0, $1) }) == 0 else {
      throw Spawned.Failure(description: "cannot connect to \(port)")
    }
    let head =
      (["\(method) \(path) HTTP/1.1", "Host: \(host):\(port)", "Connection: close", "Content-Length: \(body.utf8.count)"]
      + headers).joined(separator: "\r\n")
    let text = head + "\r\n\r\n" + body
    guard text.withCString({ send(fd, $0, text.utf8.count, Int32(MSG_NOSIGNAL)) }) == text.utf8.count else {
      throw Spawned.Failure(description: "cannot send to \(port)")
    }
    var all: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 65_536)
    while true {
      let count = recv(fd, &chunk, chunk.count, 0)
      guard count > 0 else { break }
      all += chunk[..<count]
      if let length = contentLength(all), all.count >= length { break }
    }
    let answer = String(decoding: all, as: UTF8.self)
    let status = answer.split(separator: " ").dropFirst().first.flatMap { Int($0) }
    guard let status, let end = answer.range(of: "\r\n\r\n") else {
      throw Spawned.Failure(description: "no HTTP answer from \(port)")
    }
    return (status, String(answer[end.upperBound...]))
  }

  private static func contentLength(_ bytes: [UInt8]) -> Int? {
    let text = String(decoding: bytes, as: UTF8.self)
    guard let end = text.range(of: "\r\n\r\n") else { return nil }
    for line in text[..<end.lowerBound].split(separator: "\r\n") where line.lowercased().hasPrefix("content-length:") {
      return Int(line.dropFirst(15).trimmingCharacters(in: .whitespaces)).map { $0 + text[..<end.upperBound].utf8.count }
    }
    return nil
  }
}
