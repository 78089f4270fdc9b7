// swift-tools-version: 6.2
import PackageDescription

// An app as a stranger's team has it: modules with everyday names, another GRDB than ours, an old target beside a new one.
// Scripts/export-check replaces PACKAGES, GRDB and the versions.
let client = Target.Dependency.product(name: "TrunklineClient", package: "trunkline-client")
let callKit = Target.Dependency.product(name: "TrunklineCallKit", package: "trunkline-client")
let everyday = [
  "HTTP", "Configuration", "Control", "Store", "Cluster", "Telemetry", "Bytes", "RTP", "SIP", "Platform", "SwiftUI", "Resolver",
]

let package = Package(
  name: "app",
  platforms: [.macOS(.v15), .iOS(.v18)],
  dependencies: [
    .package(url: "PACKAGES/trunkline-client", exact: "CLIENT_VERSION"),
    .package(url: "PACKAGES/trunkline-sip", exact: "SIP_VERSION"),
    .package(url: "PACKAGES/apple-stand-in", exact: "STAND_IN_VERSION"), .package(url: "GRDB/GRDB.swift", from: "6.0.0"),
  ],
  targets: everyday.map { .target(name: $0) } + [
    .executableTarget(
      name: "phone-5",
      dependencies: [client] + everyday.map { .byName(name: $0) } + [.product(name: "GRDB", package: "GRDB.swift")],
      path: "Sources/Phone5", swiftSettings: [.swiftLanguageMode(.v5)]),
    .executableTarget(
      name: "phone-6", dependencies: [client, callKit, .product(name: "AppleStandIn", package: "apple-stand-in")],
      path: "Sources/Phone6", swiftSettings: [.swiftLanguageMode(.v6)]),
    .executableTarget(
      name: "sip-ping",
      dependencies: [
        .product(name: "TrunklineSIPTransport", package: "trunkline-sip"),
        .product(name: "TrunklineSIPDialogs", package: "trunkline-sip"),
        .product(name: "TrunklineSIP", package: "trunkline-sip"),
      ], path: "Sources/SIPPing"),
  ])
