// swift-tools-version: 6.2
import PackageDescription

// Scripts/export writes where the sibling packages are.
let siblings = "https://git.example.com/telephony"
let swift: [SwiftSetting] = [.enableExperimentalFeature("Lifetimes")]
let bytes = Target.Dependency.product(name: "TrunklineBytes", package: "trunkline-base")
let openSSL = Target.Dependency.product(name: "CTrunklineOpenSSL", package: "trunkline-base")
let logging = Target.Dependency.product(name: "Logging", package: "swift-log")

let package = Package(
  name: "trunkline-sip",
  platforms: [.macOS(.v15)],
  products: [
    // Messages and URIs alone; with transactions, dialogs and RFC 3263; with sockets, threads and name servers (Linux).
    .library(name: "TrunklineSIP", targets: ["TrunklineSIP"]),
    .library(name: "TrunklineSIPDialogs", targets: ["TrunklineSIPDialogs"]),
    .library(
      name: "TrunklineSIPTransport",
      targets: ["TrunklineSIPTransport", "TrunklineSIPTrace", "TrunklineResolver", "TrunklinePlatform"]),
  ],
  dependencies: [
    .package(url: siblings + "/trunkline-base", from: "0.1.0"),
    .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
  ],
  targets: [
    .systemLibrary(name: "CTrunklineAres", pkgConfig: "libcares", providers: [.apt(["libc-ares-dev"])]),
    .target(name: "CTrunklineLinux"),
    .target(name: "TrunklineSIP", dependencies: [bytes], swiftSettings: swift),
    .target(name: "TrunklineSIPDialogs", dependencies: [bytes, "TrunklineSIP", openSSL], swiftSettings: swift),
    .target(name: "TrunklinePlatform", dependencies: [bytes, "CTrunklineLinux", openSSL, logging], swiftSettings: swift),
    .target(
      name: "TrunklineSIPTransport",
      dependencies: [bytes, "TrunklineSIP", "TrunklineSIPDialogs", "TrunklinePlatform", "CTrunklineLinux", openSSL, logging],
      swiftSettings: swift),
    .target(
      name: "TrunklineSIPTrace", dependencies: [bytes, "TrunklineSIPDialogs", "TrunklinePlatform", logging], swiftSettings: swift),
    .target(
      name: "TrunklineResolver", dependencies: [bytes, "TrunklineSIPDialogs", "TrunklinePlatform", "CTrunklineAres", logging],
      swiftSettings: swift),
  ],
  swiftLanguageModes: [.v6])
