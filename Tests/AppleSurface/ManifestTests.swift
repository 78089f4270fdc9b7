import Foundation
import Testing

/// The package as a Mac reads it: its rows for Apple hosts, evaluated here. Nothing of them is fetched or built.
@Suite struct ManifestTests {
  @Test func `a Mac takes OpenSSL and Opus from kept packages, under the modules' own names, and Linux sees neither`() throws {
    let (mac, linux) = (try Manifest.mac.get(), try Manifest.linux.get())
    #expect(
      mac.packages.isSuperset(of: ["openssl-package", "swift-opus"])
        && linux.packages.isDisjoint(with: ["openssl-package", "swift-opus"]))
    for (name, product) in [("CTrunklineOpenSSL", "OpenSSL of OpenSSL-Package"), ("CTrunklineOpus", "Copus of swift-opus")] {
      #expect(linux.targets.first { $0.name == name }?.type == "system")
      let target = try #require(mac.targets.first { $0.name == name })
      #expect(target.type == "regular" && target.dependencies.map { "\($0.name) of \($0.package ?? "")" } == [product])
      let folder = "\(SurfaceBuild.root)/\(target.path ?? "")"
      for file in ["\(name).c", "include/\(name).h"] {
        #expect(FileManager.default.fileExists(atPath: "\(folder)/\(file)"), "\(file)")
      }
    }
  }

  @Test(arguments: ["TrunklineClient", "TrunklineCallKit", "TrunklineCallDirectory"])
  func `what an iPhone's app links needs nothing of the system's package manager and has no unsafe flag`(name: String) throws {
    let (targets, products) = try Manifest.mac.get().closure(of: name)
    for target in targets {
      #expect(target.type == "regular", "\(target.name) is \(target.type)")
      #expect(target.settings.allSatisfy { $0.kind["unsafeFlags"] == nil }, "\(target.name)")
    }
    let names = targets.map(\.name)
    #expect(!names.contains("AppleStandIn") && !names.contains("CTrunklineWebSockets"), "\(names)")
    #expect(products == (name == "TrunklineCallDirectory" ? [] : ["OpenSSL of OpenSSL-Package", "Copus of swift-opus"]))
  }

  @Test func `the shims compile over headers that are spelt as in the framework and in swift-opus`() throws {
    let folder = NSTemporaryDirectory() + "apple-shims-\(UUID().uuidString)"
    defer { try? FileManager.default.removeItem(atPath: folder) }
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    // the headers are Debian's; only their spelling is the packages'
    try FileManager.default.createSymbolicLink(atPath: folder + "/OpenSSL", withDestinationPath: "/usr/include/openssl")
    for name in ["COpenSSL", "COpus"] {
      let outcome = try SurfaceBuild.run(
        "clang",
        [
          "-fsyntax-only", "-Wall", "-Wno-unused-function", "-Wno-nonportable-include-path", "-Werror",
          "-DTRUNKLINE_APPLE_HEADERS", "-I", folder, "-I",
          "/usr/include/opus",
          "-I", "\(SurfaceBuild.root)/Sources/CLibraries/\(name)/apple/include",
          "\(SurfaceBuild.root)/Sources/CLibraries/\(name)/apple/\(name.replacing("C", with: "CTrunkline", maxReplacements: 1)).c",
        ])
      #expect(outcome.status == 0, "\(outcome.text)")
    }
  }
}
