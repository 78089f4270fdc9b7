import Foundation
import Testing

/// Debian's Kamailio with Deploy/kamailio; only addresses and folders differ: 127.0.0.9, on a free port.
final class EdgeUnderTest {
  static let host = "127.0.0.9"
  /// The address of the carrier that is trunk `carrier`, and one that is in no list.
  static let carrier = "127.0.0.2"
  static let stranger = "127.0.0.3"
  let process: Spawned
  let port: UInt16

  /// `nodes`: rows of nodes.list, `sip:127.0.0.1:5071;transport=tcp` and optional flags. `port`: one that is free for UDP and
  /// TCP.
  init(in folder: String, port: UInt16, nodes: [String]) async throws {
    self.port = port
    let lists = folder + "/edge"
    try FileManager.default.createDirectory(atPath: lists, withIntermediateDirectories: true)
    func write(_ text: String, _ name: String) throws {
      try text.write(toFile: lists + "/" + name, atomically: true, encoding: .utf8)
    }
    try write(nodes.map { "1 \($0)\n" }.joined(), "nodes.list")
    try write("1 \(Self.carrier) 32 0 carrier\n", "trunks.list")
    try write(Self.configuration(port: port, lists: lists), "kamailio.cfg")
    process = try Spawned(
      "edge", Surroundings.kamailio ?? "", ["-f", lists + "/kamailio.cfg", "-DD", "-E", "-m", "32", "-M", "8"], in: folder)
    let running = process
    let isUp = await eventually(within: 15) { FreePorts.isTaken(port) || !running.isRunning }
    guard isUp, process.isRunning else { throw Spawned.Failure(description: process.text) }
  }

  /// Deploy/kamailio/kamailio.cfg with the lines under "yours" replaced.
  static func configuration(port: UInt16, lists: String) throws -> String {
    let deployed = try String(contentsOfFile: Surroundings.package + "/Deploy/kamailio/kamailio.cfg", encoding: .utf8)
    let own = deployed.replacing("!EDGE_ADDRESS!192.0.2.9!", with: "!EDGE_ADDRESS!\(host)!")
      .replacing("!EDGE_PORT!5060!", with: "!EDGE_PORT!\(port)!").replacing("!LISTS!/etc/kamailio!", with: "!LISTS!\(lists)!")
      .replacing("!/run/kamailio/kamailio_ctl!", with: "!\(lists)/control!")
    #expect(!own.contains("192.0.2.9\"") && own.contains("\(host)!") && own.contains("\(lists)/control"))
    return own
  }

  /// The `cluster:` section of a gateway behind it.
  static func cluster(_ port: UInt16, over transport: String) -> String {
    "cluster: { edges: { peers: [ \(host)/32 ], sip: \"sip:\(host):\(port);transport=\(transport)\" } }"
  }

  deinit {
    process.signal(SIGTERM)
    for _ in 0..<150 where process.isRunning { usleep(20_000) }
  }

  func stop() async { await process.end() }
}
