// swift-tools-version: 6.2
import PackageDescription

// Scripts/export writes where the sibling packages are.
let siblings = "https://git.example.com/telephony"
let swift: [SwiftSetting] = [.enableExperimentalFeature("Lifetimes")]

let package = Package(
  name: "apple-stand-in",
  platforms: [.macOS(.v15), .iOS(.v18)],
  products: [
    .library(name: "AppleStandIn", targets: ["AppleStandIn"]),
    .library(name: "TrunklinePhoneLog", targets: ["TrunklinePhoneLog"]),
    .library(name: "TrunklineAppCheck", targets: ["TrunklineAppCheck"]),
  ],
  dependencies: [.package(url: siblings + "/trunkline-base", from: "0.1.0")],
  targets: [
    .target(
      name: "TrunklinePhoneLog", dependencies: [.product(name: "TrunklineBytes", package: "trunkline-base")], swiftSettings: swift
    ),
    .target(
      name: "AppleStandIn", dependencies: ["TrunklinePhoneLog", .product(name: "TrunklineBytes", package: "trunkline-base")],
      swiftSettings: swift),
    .target(name: "TrunklineAppCheck", swiftSettings: swift),
  ],
  swiftLanguageModes: [.v6])
