import Foundation
import Testing

/// A disk of its own for one gateway: a small tmpfs in its own mount namespace, which can be filled.
///
///     let gateway = try await GatewayUnderTest(small.settings, binary: small.program)
///     try small.show(to: gateway)
final class SmallDisk {
  private let folder: String
  /// The gateway on that disk.
  let program: String
  /// Its store and records there.
  let settings: [String]
  /// As the gateway names it, and as the test does, after `watch`.
  var disk: String { folder + "/disk" }
  private(set) var outside = ""

  /// Nil where mount namespaces are not allowed.
  init?() async throws {
    folder = FileManager.default.temporaryDirectory.appendingPathComponent("trunkline-disk-\(UUID().uuidString.prefix(8))").path
    program = folder + "/trunkline"
    settings = ["store: { sqlite: \(folder)/disk/trunkline.db }", "records: { file: \(folder)/disk/calls.jsonl }"]
    try FileManager.default.createDirectory(atPath: folder + "/disk", withIntermediateDirectories: true)
    let script = folder + "/on-a-small-disk"
    // without privileges a namespace of users first
    try write(
      """
      #!/bin/sh
      [ "$(id -u)" = 0 ] || root=-r
      exec unshare $root -m sh -c 'mount -t tmpfs -o size=512k small "$0" && exec "$@"' \(folder)/disk "$@"

      """, to: script)
    try write("#!/bin/sh\nexec \(script) \(Surroundings.trunkline) \"$@\"\n", to: program)
    let attempt = try Spawned("unshare", script, ["/bin/true"], in: folder)
    guard try await attempt.finish(within: 10) == 0 else { return nil }
  }

  deinit { try? FileManager.default.removeItem(atPath: folder) }

  private func write(_ text: String, to path: String) throws {
    try text.write(toFile: path, atomically: true, encoding: .utf8)
    try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: path)
  }

  /// The disk as the gateway's process has it.
  func watch(_ gateway: GatewayUnderTest) { outside = "/proc/\(gateway.process.pid)/root\(disk)" }

  /// The same; its records also as `gateway.records` reads them.
  func show(to gateway: GatewayUnderTest) throws {
    watch(gateway)
    try FileManager.default.createSymbolicLink(
      atPath: gateway.folder + "/calls.jsonl", withDestinationPath: outside + "/calls.jsonl")
  }

  func fill() async throws {
    let filler = try Spawned("fill", "/bin/sh", ["-c", "dd if=/dev/zero of=\(outside)/filler bs=1024; true"], in: folder)
    try await filler.finish(within: 10)
    #expect(filler.text.contains("No space left"), "\(filler.text)")
  }

  func free() throws { try FileManager.default.removeItem(atPath: outside + "/filler") }
}
