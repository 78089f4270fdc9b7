import Foundation
import Testing

/// `Scripts/export`: what it makes of a clone, and what it refuses.
@Suite(.serialized) struct ExportTests {
  static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent()
  static let packages = ["trunkline-base", "apple-stand-in", "trunkline-client", "trunkline-sip"]

  @Test func `a clone without tags exports each package with its version, twice the same, and refuses what is not committed`()
    throws
  {
    try withFolder { folder in
      let clone = folder + "/clone"
      try git(["clone", "--quiet", "--depth", "1", "--no-tags", "file://" + Self.root.path, clone], in: folder)
      let url = "https://git.example.org/calls"
      var commits: [[String]] = []
      for output in ["first", "second"] {
        let done = try run(clone + "/Scripts/export", ["--url", url, "--output", folder + "/" + output], in: clone)
        #expect(done.status == 0, "\(done.text)")
        commits.append(try Self.packages.map { try git(["rev-parse", "HEAD"], in: "\(folder)/\(output)/\($0)") })
      }
      #expect(commits[0] == commits[1])
      for package in Self.packages {
        let exported = "\(folder)/first/\(package)"
        let version = try String(contentsOfFile: exported + "/VERSION", encoding: .utf8).trimmingCharacters(in: .newlines)
        #expect(try git(["tag"], in: exported) == version)
        #expect(try git(["status", "--porcelain"], in: exported) == "")
        let manifest = try String(contentsOfFile: exported + "/Package.swift", encoding: .utf8)
        #expect(
          !manifest.contains("git.example.com") && manifest.contains("let siblings") == manifest.contains(url), "\(package)")
        for file in ["README.md", "LICENSE", "NOTICE", "CHANGELOG.md"] {
          #expect(FileManager.default.fileExists(atPath: "\(exported)/\(file)"), "\(package) has no \(file)")
        }
      }
      let privacy = folder + "/first/trunkline-client/Sources/TrunklineClient/PrivacyInfo.xcprivacy"
      let plist = try PropertyListSerialization.propertyList(from: Data(contentsOf: URL(fileURLWithPath: privacy)), format: nil)
      #expect((plist as? [String: Any])?["NSPrivacyTracking"] as? Bool == false)

      try "// changed\n".write(toFile: clone + "/Sources/Wire/Bytes/New.swift", atomically: true, encoding: .utf8)
      let refused = try run(clone + "/Scripts/export", ["--output", folder + "/third"], in: clone)
      #expect(
        refused.status == 1
          && refused.text
            == "export: Sources/Wire/Bytes/New.swift has uncommitted changes, which an export would leave out: commit or stash them\n"
      )
      #expect(!FileManager.default.fileExists(atPath: folder + "/third"))
      try FileManager.default.removeItem(atPath: clone + "/.git")
      let bare = try run(clone + "/Scripts/export", [], in: clone)
      #expect(bare.status == 1 && bare.text.contains("is not a git clone") && bare.text.count { $0 == "\n" } == 1, "\(bare.text)")
    }
  }

  @Test func `what a package declares is what the root declares of the same target`() throws {
    let root = try targets(Self.root.path)
    for package in Self.packages {
      let manifest = "\(Self.root.path)/Packages/\(package)"
      for (name, dependencies) in try targets(manifest) {
        let own = try #require(root[name], "\(package) has a target \(name) that the root has not")
        // A product of a sibling has the modules TrunklineRTP and TrunklineSDP under one name.
        #expect(
          dependencies.subtracting(["TrunklineSDP", "TrunklineRTP"]) == own.subtracting(["TrunklineSDP", "TrunklineRTP"]),
          "\(package): \(name)")
      }
      for sibling in try siblings(of: manifest) {
        let version = try String(contentsOfFile: "\(Self.root.path)/Packages/\(sibling.name)/VERSION", encoding: .utf8)
        #expect(
          sibling.version == version.trimmingCharacters(in: .newlines), "\(package) names \(sibling.name) \(sibling.version)")
      }
    }
  }

  @Test func `two versions in one app are refused by the package manager, which names both`() throws {
    try withFolder { folder in
      let done = try run(
        Self.root.path + "/Scripts/export", ["--uncommitted", "--output", folder + "/packages"], in: Self.root.path)
      #expect(done.status == 0, "\(done.text)")
      let base = folder + "/packages/trunkline-base"
      try git(["commit", "--quiet", "--allow-empty", "--message", "next"], in: base)
      try git(["tag", "1.0.0"], in: base)
      try FileManager.default.createDirectory(atPath: folder + "/app/Sources/App", withIntermediateDirectories: true)
      try "".write(toFile: folder + "/app/Sources/App/App.swift", atomically: true, encoding: .utf8)
      try """
      // swift-tools-version: 6.0
      import PackageDescription
      let package = Package(
        name: "app",
        dependencies: [
          .package(url: "file://\(base)", exact: "1.0.0"), .package(url: "file://\(folder)/packages/trunkline-client", from: "0.1.0"),
        ],
        targets: [.target(name: "App", dependencies: [.product(name: "TrunklineClient", package: "trunkline-client")])])
      """.write(toFile: folder + "/app/Package.swift", atomically: true, encoding: .utf8)
      let resolved = try run(
        "/usr/bin/env",
        [
          "swift", "package", "--package-path", folder + "/app", "--cache-path", folder + "/cache", "--disable-dependency-cache",
          "resolve",
        ], in: folder)
      #expect(
        resolved.status != 0 && resolved.text.contains("trunkline-base") && resolved.text.contains("0.1.0")
          && resolved.text.contains("1.0.0"), "\(resolved.text)")
    }
  }

  @Test func `the picture of the modules has the arrows of Package.swift`() throws {
    let done = try run(Self.root.path + "/Scripts/module-graph", ["--check"], in: Self.root.path)
    #expect(done.status == 0, "\(done.text)")
  }

  // MARK: - Help

  private struct Manifest: Decodable {
    struct Target: Decodable {
      var name: String
      var dependencies: [[String: [Part?]]]
    }
    /// A name, or a condition.
    enum Part: Decodable {
      case name(String)
      case other
      init(from decoder: any Decoder) throws {
        self = (try? decoder.singleValueContainer().decode(String.self)).map(Part.name) ?? .other
      }
    }
    struct Dependency: Decodable {
      struct Source: Decodable {
        struct Requirement: Decodable {
          struct Range: Decodable { var lowerBound: String }
          var range: [Range]?
        }
        var identity: String
        var requirement: Requirement
      }
      var sourceControl: [Source]?
    }
    var targets: [Target]
    var dependencies: [Dependency]
  }

  /// A manifest's targets with the names of what they depend on.
  private func targets(_ folder: String) throws -> [String: Set<String>] {
    let manifest = try manifest(folder)
    return Dictionary(
      manifest.targets.map { target in
        (
          target.name,
          Set(
            target.dependencies.compactMap { dependency in
              if case .name(let name)?? = dependency.values.first?.first { name } else { nil }
            })
        )
      }, uniquingKeysWith: { $1 })
  }

  private func siblings(of folder: String) throws -> [(name: String, version: String)] {
    try manifest(folder).dependencies.flatMap { $0.sourceControl ?? [] }.filter { Self.packages.contains($0.identity) }
      .map { ($0.identity, $0.requirement.range?.first?.lowerBound ?? "") }
  }

  private func manifest(_ folder: String) throws -> Manifest {
    let dump = try run("/usr/bin/env", ["swift", "package", "dump-package", "--package-path", folder], in: folder)
    let json = try #require(dump.text.firstIndex(of: "{"), "\(dump.text)")
    return try JSONDecoder().decode(Manifest.self, from: Data(dump.text[json...].utf8))
  }

  @discardableResult private func git(_ arguments: [String], in folder: String) throws -> String {
    let identity = ["-c", "user.name=test", "-c", "user.email=test@localhost"]
    let done = try run("/usr/bin/env", ["git"] + identity + arguments, in: folder)
    #expect(done.status == 0, "git \(arguments): \(done.text)")
    return done.text.trimmingCharacters(in: .newlines)
  }

  private func run(_ program: String, _ arguments: [String], in folder: String) throws -> (status: Int32, text: String) {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: program)
    process.arguments = arguments
    process.currentDirectoryURL = URL(fileURLWithPath: folder)
    let pipe = Pipe()
    (process.standardOutput, process.standardError, process.standardInput) = (pipe, pipe, FileHandle.nullDevice)
    try process.run()
    let text = String(decoding: pipe.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    process.waitUntilExit()
    return (process.terminationStatus, text)
  }

  private func withFolder(_ body: (String) throws -> Void) throws {
    let folder = NSTemporaryDirectory() + "export-\(UUID().uuidString)"
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: folder) }
    try body(folder)
  }
}
