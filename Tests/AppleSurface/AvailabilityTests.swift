import Foundation
import Testing

/// What the SDK uses is to be had on the oldest system that Package.swift names: Apple's compiler refuses anything newer, Linux's passes over it.
@Suite struct AvailabilityTests {
  /// Of the standard library and Foundation, as committed, and of the stand-in, whose newer symbols have Apple's own `@available`.
  private static let table = Result {
    var table = AvailabilityTable(
      try String(contentsOfFile: SurfaceBuild.root + "/Tests/AppleSurface/availability.tsv", encoding: .utf8))
    try table.add(graph: try SurfaceBuild.shared.get().graph(of: "AppleStandIn"))
    return table
  }

  /// Features of the language whose runtime is newer than iOS 18 (FeatureAvailability.def of the compiler).
  nonisolated(unsafe) private static let features: [(name: String, pattern: Regex<Substring>, needs: SystemVersions)] = [
    ("isolated deinit", /\bisolated deinit\b/, SystemVersions(iOS: 1804, macOS: 1504)),
    ("a value as generic parameter", /\w<(?:[^<>=]*, )?let \w+ ?:/, SystemVersions(iOS: 2600, macOS: 2600)),
  ]

  /// - Parameter lines: of a file, by its path.
  static func excesses(
    _ references: some Sequence<IndexStore.Reference>, files: Set<String>, _ minimum: SystemVersions
  ) throws -> [String] {
    let table = try table.get()
    var lines: [String: [String]] = [:]
    for file in files { lines[file] = try String(contentsOfFile: file, encoding: .utf8).components(separatedBy: "\n") }
    var found: [(file: String, line: Int, text: String)] = []
    func add(_ file: String, _ line: Int, _ name: String, _ needs: SystemVersions) {
      guard needs.exceeds(minimum), let text = lines[file], !AvailabilityGuard.covers(line, of: text, needs) else { return }
      let short = file.hasPrefix(SurfaceBuild.root) ? String(file.dropFirst(SurfaceBuild.root.count + 1)) : file
      found.append((short, line, "\(short):\(line): \(name) needs \(needs)"))
    }
    for reference in references {
      if let row = table.row(of: reference.usr) { add(reference.file, reference.line, row.name, row.needs) }
    }
    for (file, text) in lines {
      for (number, line) in text.enumerated() where !line.contains("//") {
        for feature in features where line.contains(feature.pattern) { add(file, number + 1, feature.name, feature.needs) }
      }
    }
    return Set(found.map(\.text)).sorted()
  }

  private static func minimum() throws -> SystemVersions {
    let platforms = try Manifest.mac.get().platforms
    func version(_ name: String) throws -> Int {
      try #require(
        platforms.first { $0.platformName == name }.flatMap { SystemVersions.number($0.version) }, "no platform \(name)")
    }
    return SystemVersions(iOS: try version("ios"), macOS: try version("macos"))
  }

  /// Folders of the modules that an app links on an iPhone, and of the stand-in for its tests.
  static func modules() throws -> [(name: String, path: String)] {
    let manifest = try Manifest.mac.get()
    var paths: [String: String] = [:]
    for product in SurfaceBuild.modules.map(\.0) + ["AppleStandIn"] {
      for target in try manifest.closure(of: product).targets {
        if let path = target.path, !path.contains("CLibraries") { paths[target.name] = path }
      }
    }
    return paths.map { ($0.key, $0.value) }.sorted { $0.0 < $1.0 }
  }

  @Test func `CFG-8: no module of the SDK uses what is newer than the systems that Package.swift names`() throws {
    let minimum = try Self.minimum()
    let table = try Self.table.get()
    #expect(table.rows.count > 100, "Scripts/apple-table writes the table")
    let build = try SurfaceBuild.shared.get()
    let newer = ["PKVoIPPushMetadata", "CXSetTranslatingCallAction", "CXProviderConfiguration.supportsAudioTranslation"]
    #expect(Set(table.rows.values.map(\.name)).isSuperset(of: newer), "the stand-in's own")
    let modules = try Self.modules()
    #expect(modules.count > 15, "\(modules)")
    let apple = Set(SurfaceBuild.modules.map(\.0))
    // modules with Apple-only files are those that were compiled with them
    for (index, isApple) in [(build.index, true), (SurfaceBuild.productIndex, false)] {
      let wanted = Set(try modules.filter { apple.contains($0.name) == isApple }.flatMap { try SurfaceBuild.files($0.path) })
      let (files, references) = try IndexStore(path: index).references(
        in: { wanted.contains($0) }, to: { table.row(of: $0).map { $0.needs.exceeds(minimum) } ?? false })
      let missing = wanted.subtracting(files).sorted()
      #expect(missing.isEmpty, "\(index) lacks these: build with Scripts/build-check, or unoptimised")
      for excess in try Self.excesses(references, files: wanted, minimum) { Issue.record("\(excess)") }
    }
  }

  @Test func `the rule names what it should, and leaves what is guarded`() throws {
    let build = try SurfaceBuild.shared.get()
    let sample = """
      import Synchronization
      func first(_ numbers: [Int]) -> Int {
        let two: InlineArray<2, Int> = [1, 2]
        return numbers.span.count + two.count + ContiguousArray(numbers).span.count
      }
      @available(iOS 26, macOS 26, *)
      func second(_ numbers: [Int]) -> Int { numbers.span.count }
      func third(_ numbers: [Int]) -> Int {
        if #available(iOS 26, macOS 26, *) {
          return numbers.span.count
        }
        if #available(iOS 18, macOS 15, *) { return numbers.span.count }
        guard #available(iOS 26, macOS 26, *) else {
          return numbers.span.count
        }
        return numbers.span.count
      }
      actor Fourth { isolated deinit {} }
      struct Fifth<let size: Int> {}
      let sixth = Mutex(0)
      """
    let path = build.folder + "/Sample.swift"
    try sample.write(toFile: path, atomically: true, encoding: .utf8)
    let index = build.folder + "/sample-index"
    let outcome = try build.compile(
      "AvailabilitySample", [path], to: ["-c", "-o", build.folder + "/sample.o", "-index-store-path", index])
    #expect(outcome.status == 0, "\(outcome.text)")
    let table = try Self.table.get()
    let (files, references) = try IndexStore(path: index).references(in: { $0 == path }, to: { table.row(of: $0) != nil })
    #expect(files == [path])
    func lines(_ minimum: SystemVersions) throws -> [String] {
      try Self.excesses(references, files: files, minimum).map { String($0.dropFirst(path.count + 1)) }
    }
    let later = "needs iOS 26.0, macOS 26.0"
    let found = try lines(SystemVersions(iOS: 1800, macOS: 1500))
    #expect(
      found == [
        "12: Array.span \(later)", "14: Array.span \(later)", "18: isolated deinit needs iOS 18.4, macOS 15.4",
        "19: a value as generic parameter \(later)", "3: InlineArray \(later)", "4: Array.span \(later)",
        "4: InlineArray \(later)",
      ])
    #expect(try lines(SystemVersions(iOS: 1700, macOS: 1400)).contains("20: Mutex needs iOS 18.0, macOS 15.0"))
    #expect(try lines(SystemVersions(iOS: 2600, macOS: 2600)).isEmpty)
  }
}
