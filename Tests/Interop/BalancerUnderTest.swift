import Foundation
import Testing

/// Debian's HAProxy with Deploy/haproxy, whose addresses alone are other ones, and without TLS: apps reach any node at `/v1/connect`, each
/// very node at `/n/NAME/v1/connect`.
final class BalancerUnderTest {
  let process: Spawned

  /// `nodes`: the app port of each, by name. `port`: that of `FreePorts`.
  init(in folder: String, port: UInt16, nodes: [(name: String, app: UInt16)]) async throws {
    let file = folder + "/haproxy.cfg"
    try Self.configuration(port: port, nodes: nodes).write(toFile: file, atomically: true, encoding: .utf8)
    process = try Spawned("balancer", Surroundings.haproxy ?? "", ["-db", "-f", file], in: folder)
    let running = process
    let isUp = await eventually(within: 15) { FreePorts.isTaken(port) || !running.isRunning }
    guard isUp, process.isRunning else { throw Spawned.Failure(description: process.text) }
  }

  private static func configuration(port: UInt16, nodes: [(name: String, app: UInt16)]) throws -> String {
    let deployed = try String(contentsOfFile: Surroundings.package + "/Deploy/haproxy/haproxy.cfg", encoding: .utf8)
    let figures = try FreePorts.tcp()
    var lines: [String] = []
    for line in deployed.split(separator: "\n", omittingEmptySubsequences: false).map(String.init) {
      let words = line.split(separator: " ")
      switch words.first.map({ $0.trimmingCharacters(in: .whitespaces) }) {
      case "log" where line.contains("/dev/log"): lines.append("\tlog stderr format raw local0 notice")
      case "bind": lines.append("\tbind 127.0.0.1:\(line.contains("8404") ? figures : port)")
      case "maxconn": lines.append("\tmaxconn 1000")
      case "server":
        let app = nodes.first { $0.name == words[1] }?.app
        lines.append("\tserver \(words[1]) 127.0.0.1:\(try #require(app))")
      case "default-server":
        // with TLS gone, that of the named nodes has nothing left to say
        let own = String(line.components(separatedBy: " ssl ")[0])
        if own.contains("check") { lines.append(own) }
      default: lines.append(line)
      }
    }
    return lines.joined(separator: "\n")
  }

  func stop() async throws {
    process.signal(SIGTERM)
    try await process.finish(within: 10)
  }
}

extension Surroundings {
  static let haproxy =
    program("haproxy") ?? (FileManager.default.isExecutableFile(atPath: "/usr/sbin/haproxy") ? "/usr/sbin/haproxy" : nil)
  /// What clusters need beside sipp and Python.
  static let hasCluster =
    kamailio != nil && haproxy != nil && FileManager.default.isExecutableFile(atPath: "/usr/bin/redis-server")
}
