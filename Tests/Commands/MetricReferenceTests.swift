import Foundation
import Testing
import TrunklineBytes
import TrunklinePlatform

@testable import Configuration
@testable import trunkline

/// docs/operate/monitoring.md lists the metrics of a gateway; `Tests/Documents` compares dashboards and alerts with that list.
@Suite struct MetricReferenceTests {
  private static let page = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent().appendingPathComponent("docs/operate/monitoring.md")

  private static func row(_ family: MetricFamily) -> String {
    "| `\(family.name)` | \(family.kind.rawValue) | \(family.labelNames.joined(separator: ", ")) | \(family.help) |"
  }

  /// Settings with every part that has metrics, on a loopback address of this process.
  private func settings(_ folder: String) throws -> Settings {
    try Data("0123456789abcdef0123456789abcdef\n".utf8).write(to: URL(fileURLWithPath: folder + "/jwt.key"))
    // this shared store's port has no listener
    let cluster =
      "\ncluster: { node: n1, url: \"wss://n1.example/v1/connect\", shared_store: { redis: 127.0.0.1:1 }, key_file: jwt.key }\n"
    var settings = try ConfigurationFile.parse(Settings.example + cluster, file: "example", directory: folder)
    settings.store = folder + "/trunkline.db"
    let process = UInt32(bitPattern: ProcessInfo.processInfo.processIdentifier) & 0xFFFF
    let own = try #require(IPAddress("127.77.\(process >> 8).\(process & 0xFF)"))
    settings.listen.sipUDP = [SocketAddress(own, 0)]
    settings.listen.sipTCP = []
    (settings.listen.app, settings.listen.admin) = (SocketAddress(own, 0), SocketAddress(own, 0))
    settings.media.addresses = [.fixed(bind: own, advertise: nil)]
    settings.events = .init()
    settings.recording = .init()
    settings.recording?.folder = folder + "/recordings"
    settings.verifier = .init(url: "https://127.0.0.1:1/")
    return settings
  }

  @Test func `docs/operate/monitoring.md has a row for each metric of a gateway, and no other`() throws {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("metrics-\(UUID().uuidString.prefix(8))").path
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: folder) }
    let settings = try settings(folder)
    let logs = try Logs(settings.log)
    defer { logs.stop() }
    let watch = try ThreadWatch(logger: logs.logger("health")) { _ in false }
    defer { watch.stop() }
    let gateway = try Gateway(settings, watch: watch, logs: logs)
    defer { gateway.stop(unregisterTime: .zero) }
    try gateway.start()
    let expected = gateway.metrics.map(Self.row)
    var lines = try String(contentsOf: Self.page, encoding: .utf8).components(separatedBy: "\n")
    let isRow = { (line: String) in line.hasPrefix("| `trunkline_") || line.hasPrefix("| `process_") }
    let rows = lines.filter(isRow)
    if ProcessInfo.processInfo.environment["TRUNKLINE_GOLDEN"] == "write", let index = lines.firstIndex(of: "|---|---|---|---|") {
      lines.removeAll(where: isRow)
      lines.insert(contentsOf: expected, at: index + 1)
      try lines.joined(separator: "\n").write(to: Self.page, atomically: true, encoding: .utf8)
    }
    #expect(rows == expected, "TRUNKLINE_GOLDEN=write swift test --filter MetricReferenceTests writes the table")
  }
}
