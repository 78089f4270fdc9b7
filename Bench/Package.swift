// swift-tools-version: 6.2
import PackageDescription

// A package of its own: peers' libraries and the counted malloc must not reach the product. `swift build -c release --package-path Bench`.
let core = Target.Dependency.product(name: "TrunklineCore", package: "trunkline")
let settings: [SwiftSetting] = [.enableExperimentalFeature("Lifetimes")]

let package = Package(
  name: "bench",
  platforms: [.macOS(.v15)],
  dependencies: [.package(name: "trunkline", path: "..")],
  targets: [
    .target(name: "CMallocCount"),
    .target(name: "BenchKit", dependencies: ["CMallocCount", core], swiftSettings: settings),
    .executableTarget(name: "bench-media", dependencies: ["BenchKit", core], swiftSettings: settings),
    .executableTarget(name: "bench-jitter", dependencies: ["BenchKit", core], swiftSettings: settings),
  ],
  swiftLanguageModes: [.v6])
