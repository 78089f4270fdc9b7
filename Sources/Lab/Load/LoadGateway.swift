import CommandSupport
import Configuration
import Foundation
import Peers
import TrunklineBytes
import TrunklinePlatform

/// A gateway that a load run starts: `trunkline serve` with its own folder, users and ports, bound to one core if there are two.
final class LoadGateway {
  let settings: Settings
  let pid: Int32
  private let process = Process()
  private let folder: URL
  private let stop: LoadStop

  /// - Parameters:
  ///   - calls: number of users and trunk ports.
  ///   - core: the core for its threads; nil: any.
  ///   - isSecure: apps connect over TLS, with a certificate that `openssl` makes.
  ///   - stop: stops it while it runs.
  ///   - descriptors: number that the load opens for each call; the gateway has the same limit.
  init(
    calls: Int, core: Int32?, isSecure: Bool = false, isWide: Bool = false, descriptors: Int = Descriptors.perCall,
    _ stop: LoadStop
  ) throws {
    self.stop = stop
    try Descriptors.allow(calls * descriptors)
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("trunkline-load-\(UUID().uuidString.prefix(8))")
    self.folder = folder
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    var isReady = false
    defer { if !isReady { try? FileManager.default.removeItem(at: folder) } }
    let file = folder.appendingPathComponent("gateway.yaml")
    try "0123456789abcdef0123456789abcdef\n".write(
      to: folder.appendingPathComponent("jwt.key"), atomically: true, encoding: .utf8)
    if isSecure { try Self.makeCertificate(in: folder) }
    try Self.configuration(calls, folder, isSecure: isSecure, isWide: isWide).write(to: file, atomically: true, encoding: .utf8)
    settings = try SettingsSource.load(file.path)
    process.executableURL = try Binaries.gateway()
    process.arguments = ["serve", "--config", file.path]
    process.currentDirectoryURL = folder
    process.standardInput = FileHandle.nullDevice
    process.standardOutput = FileHandle.nullDevice
    let log = folder.appendingPathComponent("log")
    _ = FileManager.default.createFile(atPath: log.path, contents: nil)
    process.standardError = try FileHandle(forWritingTo: log)
    // A child starts on the core of the thread that starts it.
    let own = Cores.allowed
    if let core { Cores.bind(to: [core]) }
    defer { Cores.bind(to: own) }
    try process.run()
    pid = process.processIdentifier
    stop.onAbandon { [pid, folder] in Self.abandon(pid, folder) }
    let admin = AdminClient(address: settings.listen.admin, token: nil)
    let deadline = Date(timeIntervalSinceNow: 15)
    while Date() < deadline, process.isRunning {
      if let answer = try? admin.request("GET", path: "/readyz"), answer.status == 200 {
        isReady = true
        return
      }
      usleep(50_000)
    }
    let why = ((try? String(contentsOf: log, encoding: .utf8)) ?? "").split(separator: "\n").suffix(3).joined(separator: "\n")
    end()
    throw LoadFailure(description: "the gateway of the load did not become ready" + (why.isEmpty ? "" : ":\n" + why))
  }

  private static func makeCertificate(in folder: URL) throws {
    let openssl = Process()
    openssl.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    openssl.arguments =
      ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
      + ["-subj", "/CN=localhost", "-keyout", folder.path + "/app.key", "-out", folder.path + "/app.pem"]
    openssl.standardInput = FileHandle.nullDevice
    openssl.standardError = FileHandle.nullDevice
    try openssl.run()
    openssl.waitUntilExit()
    guard openssl.terminationStatus == 0 else { throw LoadFailure(description: "openssl made no certificate; is it installed?") }
  }

  private static func configuration(_ calls: Int, _ folder: URL, isSecure: Bool, isWide: Bool) throws -> String {
    let ports = try freePorts(5)
    let tls = isSecure ? ", tls: { cert: \(folder.path)/app.pem, key: \(folder.path)/app.key }" : ""
    let app = "{ address: 127.0.0.1:\(ports[1])\(tls) }"
    var lines = [
      "listen: { sip: { udp: 127.0.0.1:\(ports[0]) }, app: \(app), admin: 127.0.0.1:\(ports[2]) }",
      "media: { addresses: [ 127.0.0.1 ], threads: 1, app_port: \(ports[3]), trunk_ports: 20000-\(20_099 + 2 * min(calls, 5_000)) }",
      "limits: { sessions_per_address: \(max(200, 2 * calls)) }",
      "auth: { jwt: { key_file: \(folder.path)/jwt.key } }",
      "trunks: [ { name: carrier, peers: [127.0.0.0/8], uri: \"sip:127.0.0.1:\(ports[4])\"\(isWide ? ", codecs: [ G722, PCMU ]" : "") } ]",
      "users:",
    ]
    for number in 1...calls { lines.append("  - { id: user\(number), numbers: [\"+1555\(1_000_000 + number)\"] }") }
    lines.append("routes: { inbound: [ { trunk: carrier, to: users } ], outbound: [ { prefix: \"+\", trunk: carrier } ] }")
    lines.append("log: { level: error }")
    return lines.joined(separator: "\n") + "\n"
  }

  /// Ports that are free for UDP and TCP, above `trunk_ports` and below those that the kernel assigns (32768 and above): no socket
  /// of the gateway or the load gets one before its owner binds it.
  private static func freePorts(_ count: Int) throws -> [UInt16] {
    let range: Range<UInt16> = 30_200..<32_760
    var ports: [UInt16] = []
    for port in range.shuffled() where ports.count < count {
      let address = SocketAddress(.loopback, port)
      if (try? TCPListener(bind: address)) != nil, (try? UDPSocket(bind: address)) != nil { ports.append(port) }
    }
    guard ports.count == count else { throw LoadFailure(description: "no \(count) free ports in \(range)") }
    return ports
  }

  /// Kills the gateway without a drain; any thread.
  private static func abandon(_ pid: Int32, _ folder: URL) {
    kill(pid, SIGKILL)
    try? FileManager.default.removeItem(at: folder)
  }

  /// Sends SIGTERM up to twice, then SIGKILL if it still runs; removes its folder.
  func end() {
    for _ in 0..<2 where process.isRunning {
      process.terminate()
      for _ in 0..<60 where process.isRunning { usleep(50_000) }
    }
    if process.isRunning { kill(process.processIdentifier, SIGKILL) }
    process.waitUntilExit()
    stop.onAbandon(nil)
    try? FileManager.default.removeItem(at: folder)
  }
}

struct LoadFailure: Error, CustomStringConvertible { let description: String }
