import BenchKit
import Foundation
import Glibc

/// A `trunkline serve` with a folder and ports of its own, on one core if there are two, and what its threads and memory take.
final class MeasuredGateway {
  /// No device: refused with 480, and answered by a recording.
  static let nobody = "+15551230001"
  static let recorded = "+15551230002"
  /// Calls at a time; the next gets 503.
  static let most = 100

  let sip: UInt16
  /// Where the carrier's sipp listens.
  let carrier: UInt16
  let folder: URL
  /// The cores that are left for the load, as `taskset` writes them; nil: all are shared.
  let coresForLoad: String?
  private let process = Process()

  init(_ binary: String) throws {
    folder = FileManager.default.temporaryDirectory.appendingPathComponent("trunkline-calls-\(UUID().uuidString.prefix(8))")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    let ports = try FreePorts.loopback(5)
    (sip, carrier) = (ports[0], ports[1])
    try Data("0123456789abcdef0123456789abcdef\n".utf8).write(to: folder.appendingPathComponent("jwt.key"))
    try Self.silence(seconds: 10).write(to: folder.appendingPathComponent("away.wav"))
    try Data(Self.configuration(ports).utf8).write(to: folder.appendingPathComponent("gateway.yaml"))
    let cores = Self.cores()
    var arguments = [URL(fileURLWithPath: binary).path, "serve", "--config", "gateway.yaml"]
    if cores.count > 1, let taskset = Program.find("taskset") {
      arguments = [taskset, "-c", "\(cores[cores.count - 1])"] + arguments
      coresForLoad = cores.dropLast().map(String.init).joined(separator: ",")
    } else {
      coresForLoad = nil
    }
    process.executableURL = URL(fileURLWithPath: arguments.removeFirst())
    (process.arguments, process.currentDirectoryURL) = (arguments, folder)
    process.standardInput = FileHandle.nullDevice
    process.standardOutput = FileHandle.nullDevice
    process.standardError = FileHandle.nullDevice
    try process.run()
    try waitUntilReady(ports[2])
  }

  private static func configuration(_ ports: [UInt16]) -> String {
    """
    listen: { sip: { udp: 127.0.0.1:\(ports[0]) }, app: { address: 127.0.0.1:\(ports[3]) }, admin: 127.0.0.1:\(ports[2]) }
    media: { addresses: [ 127.0.0.1 ], threads: 1, app_port: \(ports[4]), trunk_ports: 20000-21999 }
    limits: { calls: \(most), calls_per_user: \(most) }
    auth: { jwt: { key_file: jwt.key } }
    trunks: [ { name: carrier, peers: [ 127.0.0.0/8 ], uri: "sip:127.0.0.1:\(ports[1])" } ]
    users:
      - { id: nobody, numbers: [ "\(nobody)" ] }
      - { id: recorded, numbers: [ "\(recorded)" ], diversions: { unreached: { play: away.wav } } }
    routes: { inbound: [ { trunk: carrier, to: users } ] }
    log: { level: error }

    """
  }

  private func waitUntilReady(_ admin: UInt16) throws {
    let deadline = Date(timeIntervalSinceNow: 15)
    while Date() < deadline, process.isRunning {
      if Gateway.isReady(admin: admin) { return }
      usleep(20_000)
    }
    end()
    throw BenchError(text: "the gateway did not become ready")
  }

  /// SIGTERM twice, then SIGKILL, by its pid; its folder goes with it.
  func end() {
    for _ in 0..<2 where process.isRunning {
      process.terminate()
      for _ in 0..<60 where process.isRunning { usleep(50_000) }
    }
    if process.isRunning { kill(process.processIdentifier, SIGKILL) }
    process.waitUntilExit()
    try? FileManager.default.removeItem(at: folder)
  }

  // MARK: what it takes

  /// CPU time in milliseconds by the threads' names (proc(5), schedstat); those of one name are summed.
  func threadCPU() -> [String: Double] {
    let tasks = "/proc/\(process.processIdentifier)/task"
    var out: [String: Double] = [:]
    for task in (try? FileManager.default.contentsOfDirectory(atPath: tasks)) ?? [] {
      guard let name = try? String(contentsOfFile: "\(tasks)/\(task)/comm", encoding: .utf8),
        let times = try? String(contentsOfFile: "\(tasks)/\(task)/schedstat", encoding: .utf8),
        let running = times.split(separator: " ").first.flatMap({ Double($0) })
      else { continue }
      out[name.trimmingCharacters(in: .whitespacesAndNewlines), default: 0] += running / 1e6
    }
    return out
  }

  var residentMegabytes: Double {
    let status = (try? String(contentsOfFile: "/proc/\(process.processIdentifier)/status", encoding: .utf8)) ?? ""
    let line = status.split(separator: "\n").first { $0.hasPrefix("VmRSS:") }
    return (line?.split(separator: " ").dropFirst().first.flatMap { Double($0) } ?? 0) / 1024
  }

  /// Lines of the records file, once `wanted` are there or two seconds have passed.
  func records(atLeast wanted: Int) -> Int {
    let path = folder.appendingPathComponent("calls.jsonl").path
    var count = 0
    for _ in 0..<40 {
      count = (try? Data(contentsOf: URL(fileURLWithPath: path)))?.count { $0 == 0x0a } ?? 0
      if count >= wanted { break }
      usleep(50_000)
    }
    return count
  }

  // MARK: what it is given

  /// Those this process may use: `Cpus_allowed_list`, as in 0-3,8.
  private static func cores() -> [Int] {
    let status = (try? String(contentsOfFile: "/proc/self/status", encoding: .utf8)) ?? ""
    guard let line = status.split(separator: "\n").first(where: { $0.hasPrefix("Cpus_allowed_list:") }) else { return [] }
    return line.dropFirst("Cpus_allowed_list:".count).split(separator: ",").flatMap { part -> [Int] in
      let ends = part.split(separator: "-").compactMap { Int($0.trimmingCharacters(in: .whitespaces)) }
      guard let first = ends.first, let last = ends.last, first <= last else { return [] }
      return Array(first...last)
    }
  }

  /// A WAV file of telephone audio without a sound.
  private static func silence(seconds: Int) -> Data {
    func number(_ value: Int, _ octets: Int) -> [UInt8] { (0..<octets).map { UInt8(truncatingIfNeeded: value >> ($0 * 8)) } }
    let size = seconds * 16_000
    var head = Array("RIFF".utf8) + number(36 + size, 4) + Array("WAVEfmt ".utf8) + number(16, 4)
    head += number(1, 2) + number(1, 2) + number(8_000, 4) + number(16_000, 4) + number(2, 2) + number(16, 2)
    return Data(head + Array("data".utf8) + number(size, 4)) + Data(count: size)
  }
}
