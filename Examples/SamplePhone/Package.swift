// swift-tools-version: 6.2
import PackageDescription

// As an app's package: it depends on Trunkline by path here, and by URL elsewhere.
let package = Package(
  name: "SamplePhone",
  platforms: [.macOS(.v15), .iOS(.v18)],
  products: [
    .library(name: "SamplePhone", targets: ["SamplePhone"]), .executable(name: "sample-phone", targets: ["sample-phone"]),
  ],
  dependencies: [.package(name: "trunkline", path: "../..")],
  targets: [
    .target(name: "SamplePhone", dependencies: [.product(name: "TrunklineCallKit", package: "trunkline")]),
    .executableTarget(
      name: "sample-phone",
      dependencies: ["SamplePhone", .product(name: "TrunklineCallKit", package: "trunkline")]),
  ],
  swiftLanguageModes: [.v6])
