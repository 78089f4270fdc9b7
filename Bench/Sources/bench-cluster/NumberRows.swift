import AppSessions
import BenchKit
import CallFlow
import CallModel
import Foundation
import JSONWebToken

/// A million imported numbers: the time of a look-up and of the import, and their memory.
struct NumberRows {
  let bench: Bench
  /// Fewer under callgrind, where a million would take minutes to be added.
  private var count: Int { bench.isSmall || bench.counted != nil ? 50_000 : 1_000_000 }

  private static func number(_ index: Int) -> String { "+49\(30_000_000_000 + index)" }
  private static func user(_ index: Int) -> String { "user\(index)@phone.example.com" }

  func all() throws {
    let lookUp = "number → user among \(bench.isSmall ? "50,000" : "1,000,000")"
    if bench.mayWant(lookUp, "numbers: ") { try table(lookUp) }
    let merge = "grants of tokens from other nodes, each"
    if bench.mayWant(merge) { try merging(merge) }
    guard bench.counted == nil, bench.mayWant("users import") else { return }
    try importing()
  }

  private func table(_ lookUp: String) throws {
    var builder = NumberTable.Builder()
    for index in 0..<count { try builder.add(number: Self.number(index), user: Self.user(index)) }
    let directory = UserDirectory([], anyone: Routing.User(id: "any", numbers: []), imported: builder.finish())
    // a prime without common factor: each index once, far from the one before
    let wanted = (0..<100_000).map { Self.number($0 &* 7_368_787 % count) }
    try bench.compare(
      lookUp, operations: 50_000,
      ours: BenchWork("ours") { loop in
        loop.run { index in UInt64(directory.owner(of: wanted[index % wanted.count])?.user.utf8.count ?? 0) }
      }, goal: .atMost(2_000), oursMayAllocate: true, note: "numbers in no order; makes the strings of the user and the number")
    bench.add(
      BenchRow(
        "numbers: memory of one, with its user", unit: "bytes",
        ours: BenchFigure("ours", Double(directory.imported.bytes) / Double(count)), goal: .atMost(120),
        note: "ids of \(Self.user(count - 1).utf8.count) bytes, a user a number"))
  }

  /// The cost of one page of the shared store's numbers on the control thread of a node.
  private func merging(_ what: String) throws {
    let rules = GrantRules(numbers: ["+"])
    let steps = (0..<max(1, count / 5 / 500)).map { step in
      (0..<500).map { row -> SharedGrant in
        let (index, issuedAt) = (step * 500 + row, Int64(step) + 1)
        return SharedGrant(
          user: Self.user(index), grant: TokenGrant(numbers: [Self.number(index)], maxCalls: 2, issuedAt: issuedAt),
          issuedAt: issuedAt, seen: 1)
      }
    }
    var grants = UserGrants()
    try bench.compare(
      what, operations: steps.count * 500,
      ours: BenchWork("ours") { loop in
        grants = UserGrants()
        loop.run { index in
          index % 500 == 0 ? UInt64(grants.apply(steps[index / 500 % steps.count], rules, at: 1).count) : 0
        }
      }, goal: .atMost(10_000), oursMayAllocate: true, note: "in steps of 500; \(count / 5) users in the end")
  }

  private func importing() throws {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("trunkline-numbers-\(UUID().uuidString.prefix(8))")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    try Data("0123456789abcdef0123456789abcdef\n".utf8).write(to: folder.appendingPathComponent("jwt.key"))
    let settings = """
      listen: { sip: { udp: 127.0.0.1:5060 }, app: { address: 127.0.0.1:8080 } }
      media: { addresses: [ 127.0.0.1 ] }
      auth: { jwt: { key_file: jwt.key } }
      trunks: [ { name: carrier, uri: "sip:192.0.2.1" } ]
      users: any
      routes: { inbound: [ { trunk: carrier, to: users } ] }

      """
    try Data(settings.utf8).write(to: folder.appendingPathComponent("gateway.yaml"))
    let done = try run(count, folder)
    guard done.status == 0 else { throw BenchError(text: "users import ended with \(done.status): \(done.said)") }
    bench.add(
      BenchRow(
        "users import of \(bench.isSmall ? "50,000" : "1,000,000") numbers", unit: "s", ours: BenchFigure("ours", done.seconds),
        note: String(format: "peak memory %.0f MB, written and synchronized", done.megabytes)))
    guard !bench.isSmall else { return }
    let many = try run(10_000_000, folder)
    bench.require(many.status == 2 && many.said.contains("more than"), "users import of 10 M lines: \(many.status) \(many.said)")
    bench.add(
      BenchRow(
        "users import of 10,000,000 lines: refused after", unit: "s", ours: BenchFigure("ours", many.seconds),
        note: String(format: "peak memory %.0f MB; \"%@\"", many.megabytes, many.said)))
  }

  private func run(_ lines: Int, _ folder: URL) throws -> (seconds: Double, megabytes: Double, status: Int32, said: String) {
    let file = folder.appendingPathComponent("numbers.csv")
    _ = FileManager.default.createFile(atPath: file.path, contents: nil)
    let handle = try FileHandle(forWritingTo: file)
    var text = "number,user\n"
    for index in 0..<lines {
      text += "\(Self.number(index)),\(Self.user(index))\n"
      if text.utf8.count > 1 << 20 {
        try handle.write(contentsOf: Data(text.utf8))
        text = ""
      }
    }
    try handle.write(contentsOf: Data(text.utf8))
    try handle.close()
    defer { try? FileManager.default.removeItem(at: file) }
    let begun = monotonicNanoseconds()
    let child = try ChildProcess(
      URL(fileURLWithPath: Gateway.binary).path, ["users", "import", file.path, "--config", "gateway.yaml"], in: folder,
      log: "log")
    var peak = 0.0
    while child.isRunning {
      peak = max(peak, child.residentMegabytes)
      usleep(5_000)
    }
    let seconds = milliseconds(begun, monotonicNanoseconds()) / 1e3
    child.kill()
    let log = (try? String(contentsOf: folder.appendingPathComponent("log"), encoding: .utf8)) ?? ""
    let said =
      log.split(separator: "\n").filter { !$0.hasPrefix("checked") && !$0.hasPrefix("stored") }.first.map(String.init) ?? ""
    return (seconds, peak, child.process.terminationStatus, said.replacingOccurrences(of: folder.path + "/", with: ""))
  }
}
