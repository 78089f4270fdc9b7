import Foundation
import Testing

/// Compiles for Linux, against the surfaces, what iOS compiles: the whole modules of the SDK with their Apple-only files, and the
/// sample app. The modules below them, which have no such files, are the suite's.
final class SurfaceBuild: Sendable {
  struct Outcome: Sendable {
    var status: Int32
    var text: String
  }
  struct Failure: Error, CustomStringConvertible { let description: String }

  static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent().path
  static let surfaces = root + "/Tests/AppleSurface/Surfaces"
  /// The folder of the suite's own modules.
  private static let products = URL(fileURLWithPath: CommandLine.arguments[0]).resolvingSymlinksInPath()
    .deletingLastPathComponent()
    .path
  /// Ordered so that each module comes after its imports.
  static let surfaceModules = [
    "AVFAudio", "CallKit", "PushKit", "Intents", "Security", "Network", "UserNotifications", "UIKit", "os",
  ]
  /// Modules of the SDK that have Apple-only files, with their folders.
  static let modules = [
    ("TrunklineClient", "Sources/Client/TrunklineClient"), ("TrunklineCallKit", "Sources/Client/TrunklineCallKit"),
    ("TrunklineCallDirectory", "Sources/Client/TrunklineCallDirectory"),
  ]

  /// The sample app, its model and its extensions.
  static let sample = [
    ("SamplePhone", "Sources/SamplePhone"), ("SamplePhoneApp", "App"), ("CallDirectoryExtension", "Extensions/CallDirectory"),
    ("IntentsExtension", "Extensions/Intents"), ("NotificationsExtension", "Extensions/Notifications"),
  ].map { ($0, "Examples/SamplePhone/" + $1) }

  let folder: String
  /// References of the modules that are compiled here.
  var index: String { folder + "/index" }
  /// References of the suite's own modules: `settings(of:)` in Package.swift names the folder for the check build, SwiftPM has its own unoptimised.
  static let productIndex =
    FileManager.default.fileExists(atPath: products + "/index/store") && !products.contains("/.build-check/")
    ? products + "/index/store" : root + "/.build-check/index"

  /// Made once for all tests of the process.
  static let shared = Result { try SurfaceBuild() }
  private static func removeAtExit(_ folder: String) {
    leftBehind = folder
    atexit { try? FileManager.default.removeItem(atPath: SurfaceBuild.leftBehind) }
  }
  // Written once, before `atexit` registers its reader.
  nonisolated(unsafe) private static var leftBehind = ""

  private init() throws {
    folder = NSTemporaryDirectory() + "apple-surface-\(ProcessInfo.processInfo.processIdentifier)"
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    Self.removeAtExit(folder)
    for name in Self.surfaceModules { try build(name, Self.files("Tests/AppleSurface/Surfaces/" + name)) }
    // On Linux URLSession is in a separate module of Foundation
    let exports = folder + "/Exports.swift"
    try "@_exported import FoundationNetworking\n".write(toFile: exports, atomically: true, encoding: .utf8)
    for (name, path) in Self.modules { try build(name, Self.files(path) + (name == "TrunklineClient" ? [exports] : [])) }
    for (name, path) in Self.sample { try build(name, Self.files(path)) }
  }

  /// The Swift files of a folder of the package.
  static func files(_ path: String) throws -> [String] {
    let found = FileManager.default.enumerator(atPath: root + "/" + path)?.compactMap { $0 as? String } ?? []
    let files = found.filter { $0.hasSuffix(".swift") }.sorted().map { "\(root)/\(path)/\($0)" }
    if files.isEmpty { throw Failure(description: "no Swift files in \(path)") }
    return files
  }

  /// Type-checks a module, and leaves it, its object files and its index for those that ask for them.
  func build(_ name: String, _ files: [String]) throws {
    // an index is made of files that have objects of their own
    try FileManager.default.createDirectory(atPath: "\(folder)/objects/\(name)", withIntermediateDirectories: true)
    let objects = files.enumerated().map { ($1, ["object": "\(folder)/objects/\(name)/\($0).o"]) }
    let map = "\(folder)/\(name)-outputs.json"
    try JSONEncoder().encode(Dictionary(uniqueKeysWithValues: objects)).write(to: URL(fileURLWithPath: map))
    // a program of the suite has a main of its own
    let main = ["-Xfrontend", "-entry-point-function-name", "-Xfrontend", name + "_main"]
    let made = try compile(
      name, files,
      to: main + [
        "-emit-module-path", "\(folder)/\(name).swiftmodule", "-c", "-num-threads", "1", "-output-file-map", map,
        "-index-store-path", index,
      ])
    if made.status != 0 { throw Failure(description: "\(name):\n\(made.text)") }
  }

  /// The public symbols of one of the suite's modules.
  func graph(of name: String) throws -> Data {
    struct Info: Decodable {
      struct Target: Decodable { var triple: String }
      var target: Target
    }
    let info = try JSONDecoder().decode(Info.self, from: Data(try Self.run("swiftc", ["-print-target-info"]).text.utf8))
    let graphs = folder + "/graphs"
    try FileManager.default.createDirectory(atPath: graphs, withIntermediateDirectories: true)
    let outcome = try Self.run(
      "swift",
      [
        "symbolgraph-extract", "-module-name", name, "-target", info.target.triple, "-output-dir", graphs, "-I",
        Self.products + "/Modules",
      ])
    guard outcome.status == 0 else { throw Failure(description: "\(name): \(outcome.text)") }
    return try Data(contentsOf: URL(fileURLWithPath: "\(graphs)/\(name).symbols.json"))
  }

  private func objects(of name: String) throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: "\(folder)/objects/\(name)").map { "\(folder)/objects/\(name)/\($0)" }
  }

  /// Warnings are errors, and the language mode is the SDK's.
  func compile(_ name: String, _ files: [String], to output: [String] = ["-typecheck"]) throws -> Outcome {
    try Self.run("swiftc", options(name) + output + ["-parse-as-library"] + files, ["TMPDIR": folder])
  }

  private func options(_ name: String) -> [String] {
    let folders = [
      folder, Self.surfaces + "/AudioToolbox", Self.products + "/Modules", Self.root + "/Sources/CLibraries/COpenSSL",
      Self.root + "/Sources/CLibraries/COpus",
    ]
    return [
      "-swift-version", "6", "-warnings-as-errors", "-D", "APPLE_SURFACE", "-enable-experimental-feature", "Lifetimes",
      "-enable-testing",
    ]
      + ["-wmo", "-package-name", "trunkline", "-module-name", name, "-module-cache-path", folder + "/cache"]
      + folders.flatMap { ["-I", $0] }
  }

  /// Runs a program of `Programs` over the surfaces; returns its output.
  func run(_ program: String, with modules: [String]) throws -> Outcome {
    let binary = "\(folder)/\(program)"
    let units = ["AudioToolbox", "Mallocs"].map { (Self.surfaces + "/AudioToolbox/\($0).c", "\(folder)/\($0).o") }
    for (source, object) in units {
      let compiled = try Self.run("clang", ["-O1", "-c", source, "-o", object])
      if compiled.status != 0 { throw Failure(description: compiled.text) }
    }
    let below =
      ["Bytes", "AppProtocol", "HPKE", "RTP", "STUN", "SDP", "SRTP", "DTLS", "ICE", "TURN", "JitterBuffer", "AudioCodecs"]
      + ["MediaSession", "ClientMachines", "PhoneLog"]
    let objects = (below.map { "Trunkline" + $0 } + ["AppleStandIn", "SwiftUI"]).flatMap { module -> [String] in
      let path = Self.products + "/\(module).build"
      let files = FileManager.default.enumerator(atPath: path)?.compactMap { $0 as? String } ?? []
      return files.filter { $0.hasSuffix(".o") && !$0.hasSuffix("swiftmodule.o") }.map { path + "/" + $0 }
    }
    let ours = try (Self.surfaceModules + modules).flatMap { try self.objects(of: $0) }
    let inputs = try Self.files("Tests/AppleSurface/Programs/" + program) + ours + objects + units.map(\.1)
    let linked = try Self.run(
      "swiftc", options(program) + inputs + ["-o", binary, "-lssl", "-lcrypto", "-lopus"], ["TMPDIR": folder])
    if linked.status != 0 { throw Failure(description: "\(program):\n\(linked.text)") }
    // files of the program stay in the temporary folder
    return try Self.run(binary, [], ["HOME": folder, "XDG_DATA_HOME": folder])
  }

  static func run(_ tool: String, _ arguments: [String], _ environment: [String: String] = [:]) throws -> Outcome {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = [tool] + arguments
    let pipe = Pipe()
    (process.standardOutput, process.standardError, process.standardInput) = (pipe, pipe, FileHandle.nullDevice)
    process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
    try process.run()
    let text = String(decoding: pipe.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    process.waitUntilExit()
    return Outcome(status: process.terminationStatus, text: text)
  }
}
