import Foundation
import Testing

/// The package as SwiftPM reads it.
struct Manifest: Decodable {
  struct Package: Decodable { var sourceControl: [SourceControl]? }
  struct SourceControl: Decodable { var identity: String }
  struct Target: Decodable {
    var name: String
    var type: String
    var path: String?
    var dependencies: [Dependency]
    var settings: [Setting]
  }
  /// Of a target by name, or of a product by name and package; a condition stands behind.
  struct Dependency: Decodable {
    var name: String
    var package: String?
    var platforms: [String]?

    private enum Keys: String, CodingKey { case byName, product, target }
    private struct Condition: Decodable { var platformNames: [String]? }
    init(from decoder: any Decoder) throws {
      let values = try decoder.container(keyedBy: Keys.self)
      let key = try #require(values.allKeys.first)
      var list = try values.nestedUnkeyedContainer(forKey: key)
      name = try list.decode(String.self)
      if key == .product { package = try list.decode(String?.self) }
      while !list.isAtEnd {
        if let condition = try? list.decode(Condition.self) {
          platforms = condition.platformNames
        } else {
          _ = try list.decode(Null.self)
        }
      }
    }
  }
  struct Null: Decodable {
    init(from decoder: any Decoder) throws {}
  }
  struct Setting: Decodable { var kind: [String: Null] }
  /// The oldest system that a package is for.
  struct Platform: Decodable {
    var platformName: String
    var version: String
  }
  var dependencies: [Package]
  var targets: [Target]
  var platforms: [Platform]

  var packages: Set<String> { Set(dependencies.flatMap { $0.sourceControl ?? [] }.map(\.identity)) }

  /// What a product of `name` links on iOS: targets, and products of packages.
  func closure(of name: String) throws -> (targets: [Target], products: Set<String>) {
    var (found, products, waiting): ([String: Target], Set<String>, [String]) = ([:], [], [name])
    while let next = waiting.popLast() {
      guard found[next] == nil else { continue }
      let target = try #require(targets.first { $0.name == next }, "no target \(next)")
      found[next] = target
      for dependency in target.dependencies where dependency.platforms.map({ $0.contains("ios") }) ?? true {
        if let package = dependency.package {
          products.insert("\(dependency.name) of \(package)")
        } else {
          waiting.append(dependency.name)
        }
      }
    }
    return (Array(found.values), products)
  }

  private static let text = Result { try String(contentsOfFile: SurfaceBuild.root + "/Package.swift", encoding: .utf8) }

  // Each is compiled once for all tests.
  static let mac = Result { try evaluate(asMac: true) }
  static let linux = Result { try evaluate(asMac: false) }

  /// - Parameter asMac: `#if os(macOS)` holds.
  private static func evaluate(asMac: Bool) throws -> Manifest {
    let folder = NSTemporaryDirectory() + "apple-manifest-\(UUID().uuidString)"
    defer { try? FileManager.default.removeItem(atPath: folder) }
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    var text = try text.get()
    #expect(text.components(separatedBy: "#if os(macOS)").count == 2, "one place for Apple hosts")
    if asMac { text = text.replacing("#if os(macOS)", with: "#if true") }
    try text.write(toFile: folder + "/Package.swift", atomically: true, encoding: .utf8)
    let outcome = try SurfaceBuild.run(
      "swift", ["package", "dump-package", "--package-path", folder, "--cache-path", folder + "/cache"],
      ["TMPDIR": folder, "TRUNKLINE_ONLY": "TrunklineCallKit,TrunklineCallDirectory,TrunklineCallKitTests"])
    let json = try #require(outcome.text.firstIndex(of: "{"), "\(outcome.text)")
    return try JSONDecoder().decode(Manifest.self, from: Data(outcome.text[json...].utf8))
  }
}
