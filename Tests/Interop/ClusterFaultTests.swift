import Foundation
import Testing

extension Interop {
  /// Rows of the fault table (`make faults`), one of each kind, with short clocks and few calls. Each makes a network and a cluster of its own, and
  /// counts on both sides: Scripts/cluster/node_faults.py.
  @Suite(
    .enabled(
      if: Surroundings.isRequired
        || (Surroundings.missing == nil && Surroundings.kamailio != nil
          && ["/usr/bin/redis-server", "/usr/sbin/haproxy", "/usr/sbin/nft"].allSatisfy(FileManager.default.isExecutableFile)),
      "no kamailio, redis, haproxy or nft: run Scripts/install test"),
    .serialized)
  struct ClusterFaultTests {
    @Test(arguments: [
      "restart", "stop-60", "cut-edge", "roll-ab", "import-killed", "import-failover", "grants-killed", "grants-behind",
    ])
    func `a fault of a node loses no call that it need not, and no call has two records`(row: String) async throws {
      let folder = FileManager.default.temporaryDirectory.appendingPathComponent("faults-\(UUID().uuidString.prefix(8))").path
      try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
      defer { try? FileManager.default.removeItem(atPath: folder) }
      let binaries = URL(fileURLWithPath: Surroundings.trunkline).deletingLastPathComponent().path
      let faults = try Spawned(
        "faults", "/usr/bin/env",
        [
          "TRUNKLINE_BINARIES=\(binaries)", Surroundings.package + "/Scripts/faults", "--short", "--only", row, "--json",
          folder + "/faults.json",
        ],
        in: folder)
      let status = try await faults.finish(within: 150)
      #expect(status == 0, "\(faults.text.suffix(6_000))")
    }
  }
}
