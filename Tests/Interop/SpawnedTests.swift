import Foundation
import Testing

extension Interop {
  /// How a test ends what it has started.
  @Suite(.serialized)
  struct SpawnedTests {
    @Test func `a peer that ignores SIGTERM is killed, and its children with it`() async throws {
      let folder = NSTemporaryDirectory() + "trunkline-spawned-\(UUID().uuidString.prefix(8))"
      try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
      let script = #"trap "" TERM; for n in 1 2; do sh -c 'sleep 600 & echo $! $$; wait' & done; wait"#
      let peer = try Spawned("deaf", "/bin/sh", ["-c", script], in: folder)
      #expect(await eventually(within: 10) { peer.text.split(separator: "\n").count == 2 })
      let children = peer.text.split(whereSeparator: \.isWhitespace).map(String.init)
      #expect(children.count == 4 && children.allSatisfy(Self.runs))
      await peer.end(within: 0.2)
      #expect(!peer.isRunning)
      #expect(await eventually(within: 10) { !children.contains(where: Self.runs) })
      try FileManager.default.removeItem(atPath: folder)
    }

    /// A process that is over, but not waited for yet, has no arguments any more.
    private static func runs(_ pid: String) -> Bool {
      (try? Data(contentsOf: URL(filePath: "/proc/\(pid)/cmdline")))?.isEmpty == false
    }
  }
}
