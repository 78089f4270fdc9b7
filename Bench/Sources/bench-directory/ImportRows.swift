import BenchKit
import Foundation

/// A server's directory: an import by the command line of the release gateway, a process of its own each, as an operator runs it.
enum ImportRows {
  static func rows(_ bench: Bench) throws {
    let count = bench.isSmall ? 20_000 : 1_000_000
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("bench-import-\(UUID().uuidString)").path
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: folder) }
    try "0123456789abcdef0123456789abcdef\n".write(toFile: folder + "/jwt.key", atomically: true, encoding: .utf8)
    try "auth: { jwt: { key_file: jwt.key } }\nstore: { sqlite: trunkline.db }\n".write(
      toFile: folder + "/gateway.yaml", atomically: true, encoding: .utf8)
    var text = "number,label,kind\n"
    for index in 0..<count {
      // a prime without common factor: each index once, in no order
      let number = 10_000_000_000 + Int64(index) * 7_368_787 % Int64(count) * 7_919
      text += "+\(number),Company no. \(number),\(index % 100 == 0 ? "block" : "identify")\n"
    }
    try text.write(toFile: folder + "/all.csv", atomically: true, encoding: .utf8)
    try "number,label,kind\n+10000000000,Another,identify\n".write(
      toFile: folder + "/one.csv", atomically: true, encoding: .utf8)
    func run(_ file: String, _ more: [String] = []) throws -> Double {
      let command = Process()
      command.executableURL = URL(fileURLWithPath: Gateway.binary)
      command.arguments =
        ["directory", "import", folder + "/" + file, "--scope", "user:alice", "--config", folder + "/gateway.yaml"] + more
      command.standardOutput = FileHandle.nullDevice
      let time = try ContinuousClock().measure {
        try command.run()
        command.waitUntilExit()
      }
      bench.require(command.terminationStatus == 0, "the import of \(file) ended with \(command.terminationStatus)")
      return time / .seconds(1)
    }
    bench.add(
      BenchRow(
        "server: import", unit: "s", ours: BenchFigure("ours", try run("all.csv")), goal: .atMost(10),
        note: "\(count) contacts in no order, 1 % blocked, into an empty directory"))
    bench.add(
      BenchRow("server: the same again", unit: "s", ours: BenchFigure("ours", try run("all.csv")), note: "nothing has changed"))
    bench.add(
      BenchRow(
        "server: change of one contact", unit: "s", ours: BenchFigure("ours", try run("one.csv", ["--changes"])),
        note: "among \(count)"))
  }
}
