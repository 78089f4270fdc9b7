import BenchKit
import Foundation
import Glibc

/// A `trunkline serve` with a folder and ports of its own, on one core if there are two, and what its threads and memory take.
final class MeasuredGateway {
  /// No device: refused with 480, and answered by a recording.
  static let userWithoutDevice = "+15551230001"
  static let recorded = "+15551230002"
  /// Calls at a time; the next gets 503.
  static let most = 100

  let sip: UInt16
  /// Where the carrier's sipp listens.
  let carrier: UInt16
  /// Where the bots listen, by the format of their streams, and their numbers.
  let bots: [String: (port: UInt16, number: String)]
  let folder: URL
  /// The cores that are left for the load, as `taskset` writes them; nil: all are shared.
  let coresForLoad: String?
  private let process: ChildProcess

  /// - Parameter isAhead: of what else runs, where that is permitted.
  init(_ binary: String, isAhead: Bool = false) throws {
    folder = FileManager.default.temporaryDirectory.appendingPathComponent("trunkline-calls-\(UUID().uuidString.prefix(8))")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    let ports = try FreePorts.loopback(7)
    (sip, carrier) = (ports[0], ports[1])
    bots = ["mulaw": (ports[5], "+15551230003"), "pcm16": (ports[6], "+15551230004")]
    try Data("0123456789abcdef0123456789abcdef\n".utf8).write(to: folder.appendingPathComponent("jwt.key"))
    try Gateway.silence(seconds: 10).write(to: folder.appendingPathComponent("away.wav"))
    try Data(Self.configuration(ports).utf8).write(to: folder.appendingPathComponent("gateway.yaml"))
    let cores = Cores.divided
    coresForLoad = cores?.load
    process = try ChildProcess(
      URL(fileURLWithPath: binary).path, ["serve", "--config", "gateway.yaml"], in: folder, cores: cores?.measured,
      isAhead: isAhead)
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
      - { id: absent, numbers: [ "\(userWithoutDevice)" ] }
      - { id: recorded, numbers: [ "\(recorded)" ], diversions: { unreached: { play: away.wav } } }
    routes:
      inbound:
        - { trunk: carrier, to: "ws://127.0.0.1:\(ports[5])/", numbers: [ "+15551230003" ] }
        - { trunk: carrier, to: "ws://127.0.0.1:\(ports[6])/", numbers: [ "+15551230004" ], format: pcm16 }
        - { trunk: carrier, to: users }
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

  /// Its folder goes with it.
  func end() {
    process.end()
    try? FileManager.default.removeItem(at: folder)
  }

  func threadCPU() -> [String: Double] { process.threadCPU }
  var residentMegabytes: Double { process.residentMegabytes }

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
}
