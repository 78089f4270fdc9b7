// swift-tools-version: 6.2
import PackageDescription

// What trunkline-client and trunkline-sip both stand on: it is a package of its own so that an app can have both.
let swift: [SwiftSetting] = [.enableExperimentalFeature("Lifetimes")]

// OpenSSL is Debian's. On a Mac, which builds for iPhones too, it is a kept package; a resolution on Linux never sees that.
#if os(macOS)
  let openSSL = Target.target(
    name: "CTrunklineOpenSSL", dependencies: [.product(name: "OpenSSL", package: "OpenSSL-Package")],
    path: "Sources/CTrunklineOpenSSL/apple")
  let outside: [Package.Dependency] = [.package(url: "https://github.com/krzyzanowskim/OpenSSL-Package", from: "3.3.2000")]
#else
  let openSSL = Target.systemLibrary(
    name: "CTrunklineOpenSSL", pkgConfig: "openssl", providers: [.apt(["libssl-dev"])])
  let outside: [Package.Dependency] = []
#endif

let package = Package(
  name: "trunkline-base",
  platforms: [.macOS(.v15), .iOS(.v18)],
  products: [
    .library(name: "TrunklineBytes", targets: ["TrunklineBytes"]),
    .library(name: "TrunklineSDP", targets: ["TrunklineSDP", "TrunklineRTP"]),
    .library(name: "CTrunklineOpenSSL", targets: ["CTrunklineOpenSSL"]),
  ],
  dependencies: outside,
  targets: [
    openSSL,
    .target(name: "TrunklineBytes", swiftSettings: swift),
    .target(name: "TrunklineRTP", dependencies: ["TrunklineBytes"], swiftSettings: swift),
    .target(name: "TrunklineSDP", dependencies: ["TrunklineBytes", "TrunklineRTP"], swiftSettings: swift),
  ],
  swiftLanguageModes: [.v6])
