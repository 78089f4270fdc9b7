import BenchKit
import Foundation

/// What an app's team sees of the SDK: lines to write, megabytes to ship, minutes to build.
struct SizeRows {
  let bench: Bench
  private static let package = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("../../..")
    .standardizedFileURL
  /// The closure of TrunklineClient, and the app.
  private static let modules =
    [
      "Bytes", "RTP", "STUN", "SDP", "AppProtocol", "HPKE", "SRTP", "DTLS", "ICE", "TURN", "JitterBuffer", "AudioCodecs",
      "MediaSession", "ClientMachines", "PhoneLog", "Client",
    ].map { "Trunkline" + $0 } + ["client_size"]

  func add() throws {
    try lines()
    guard !bench.isSmall else { return }
    try sizes()
    try build()
  }

  private func lines() throws {
    let file = Self.package.appendingPathComponent("Tests/QuickStart/App/PhoneApp.swift")
    let lines = try String(contentsOf: file, encoding: .utf8).split(separator: "\n").map {
      $0.trimmingCharacters(in: .whitespaces)
    }
    let written = lines.count { !$0.isEmpty && !$0.hasPrefix("//") }
    bench.add(
      BenchRow(
        "lines an app writes", unit: "lines", ours: BenchFigure("ours", Double(written)), goal: .atMost(35),
        note: "Tests/QuickStart/App/PhoneApp.swift, without blank lines and comments"))
    bench.require(written <= 35, "the quick start has \(written) lines")
  }

  private func sizes() throws {
    guard bench.wants("size") else { return }
    bench.progress("linking a client")
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("bench-client-size-\(UUID().uuidString.prefix(8))")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    let ours = try link(in: folder, static: [])
    bench.add(
      BenchRow(
        "size of our code in a stripped client", unit: "MB", ours: BenchFigure("ours", ours), goal: .atMost(2.5),
        note: "TrunklineClient and what it needs of ours; the system, OpenSSL and Opus are shared libraries"))
    let whole = try link(in: folder, static: ["ssl", "crypto", "opus"])
    bench.add(
      BenchRow(
        "… with OpenSSL and Opus linked in", unit: "MB", ours: BenchFigure("ours", whole), goal: .atMost(6),
        note: "Debian's archives, which were not built for size; WebRTC is 11.3 MB"))
  }

  /// Megabytes of the stripped executable. `static`: archives in place of shared libraries.
  private func link(in folder: URL, static archives: [String]) throws -> Double {
    let built = URL(fileURLWithPath: Gateway.lab).deletingLastPathComponent()
    let files = FileManager.default
    var objects: [String] = []
    for module in Self.modules {
      let name = module.replacingOccurrences(of: "_", with: "-")
      let buildFolder = [module, name].map { built.appendingPathComponent($0 + ".build") }.first {
        files.fileExists(atPath: $0.path)
      }
      guard let buildFolder, let all = files.enumerator(at: buildFolder, includingPropertiesForKeys: nil) else {
        throw BenchError(text: "no objects of \(module) in \(built.path)")
      }
      for case let file as URL in all where file.pathExtension == "o" { objects.append(file.path) }
    }
    let libraries = folder.appendingPathComponent("static")
    try? files.createDirectory(at: libraries, withIntermediateDirectories: true)
    for name in archives {
      let archive = ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib"].map { "\($0)/lib\(name).a" }.first {
        files.fileExists(atPath: $0)
      }
      guard let archive else { throw BenchError(text: "no lib\(name).a") }
      try? files.createSymbolicLink(atPath: libraries.appendingPathComponent("lib\(name).a").path, withDestinationPath: archive)
    }
    let output = folder.appendingPathComponent("client").path
    try run(
      "swiftc",
      ["-o", output, "-L", libraries.path] + objects + ["-lssl", "-lcrypto", "-lopus", "-lwebsockets", "-lcurl"]
        + ["--defsym=main=client_size_main", "--gc-sections", "--as-needed", "-s"].flatMap { ["-Xlinker", $0] })
    let size = try files.attributesOfItem(atPath: output)[.size] as? Int ?? 0
    return Double(size) / 1e6
  }

  private func build() throws {
    guard bench.wants("clean build") else { return }
    bench.progress("a clean build of TrunklineCallKit")
    let scratch = FileManager.default.temporaryDirectory.appendingPathComponent(
      "bench-client-build-\(UUID().uuidString.prefix(8))")
    // A package without the folder's other packages and its resolved file, which a build of a part would rewrite.
    try FileManager.default.createDirectory(at: scratch, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: scratch) }
    let manifest = scratch.appendingPathComponent("Package.swift")
    try FileManager.default.copyItem(at: Self.package.appendingPathComponent("Package.swift"), to: manifest)
    try FileManager.default.createSymbolicLink(
      at: scratch.appendingPathComponent("Sources"), withDestinationURL: Self.package.appendingPathComponent("Sources"))
    let time = try ContinuousClock().measure {
      try run(
        "swift",
        [
          "build", "-c", "release", "--product", "TrunklineCallKit", "-j", "2", "--package-path", scratch.path,
        ], environment: ["TRUNKLINE_ONLY": "TrunklineCallKit"])
    }
    bench.add(
      BenchRow(
        "clean build of TrunklineCallKit, release", unit: "s", ours: BenchFigure("ours", time / .seconds(1)), goal: .atMost(120)))
  }

  private func run(_ program: String, _ arguments: [String], environment: [String: String] = [:]) throws {
    let (process, output) = (Process(), Pipe())
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = [program] + arguments
    process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
    (process.standardOutput, process.standardError) = (output, output)
    try process.run()
    let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    process.waitUntilExit()
    guard process.terminationStatus == 0 else { throw BenchError(text: "\(program) failed: \(text.suffix(1_500))") }
  }
}
