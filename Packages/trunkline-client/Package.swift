// swift-tools-version: 6.2
import PackageDescription

// Scripts/export writes where the sibling packages are.
let siblings = "https://git.example.com/telephony"
let swift: [SwiftSetting] = [.enableExperimentalFeature("Lifetimes")]
let bytes = Target.Dependency.product(name: "TrunklineBytes", package: "trunkline-base")
let rtpAndSDP = Target.Dependency.product(name: "TrunklineSDP", package: "trunkline-base")
let openSSL = Target.Dependency.product(name: "CTrunklineOpenSSL", package: "trunkline-base")
let phoneLog = Target.Dependency.product(name: "TrunklinePhoneLog", package: "apple-stand-in")
/// CallKit and PushKit where Apple's are not: on Linux, and on a Mac that runs the tests of an app.
let standIn = Target.Dependency.product(
  name: "AppleStandIn", package: "apple-stand-in", condition: .when(platforms: [.linux, .macOS]))

// Opus is Debian's. On a Mac, which builds for iPhones too, it is a kept package; a resolution on Linux never sees that.
#if os(macOS)
  let libraries: [Target] = [
    .target(
      name: "CTrunklineOpus", dependencies: [.product(name: "Copus", package: "swift-opus")], path: "Sources/CTrunklineOpus/apple"
    )
  ]
  let outside: [Package.Dependency] = [.package(url: "https://github.com/alta/swift-opus", from: "0.0.2")]
  let socketLibraries: [Target.Dependency] = []
  let resources: [Resource] = [.process("PrivacyInfo.xcprivacy")]
  let linuxResources: [String] = []
#else
  let libraries: [Target] = [
    .systemLibrary(name: "CTrunklineOpus", pkgConfig: "opus", providers: [.apt(["libopus-dev"])]),
    .systemLibrary(name: "CTrunklineWebSockets", pkgConfig: "libwebsockets", providers: [.apt(["libwebsockets-dev"])]),
    .systemLibrary(name: "CTrunklineCurl", pkgConfig: "libcurl", providers: [.apt(["libcurl4-openssl-dev"])]),
  ]
  let outside: [Package.Dependency] = []
  let socketLibraries: [Target.Dependency] = ["CTrunklineWebSockets", "CTrunklineCurl", openSSL]
  let resources: [Resource] = []
  let linuxResources = ["PrivacyInfo.xcprivacy"]
#endif

let package = Package(
  name: "trunkline-client",
  platforms: [.macOS(.v15), .iOS(.v18)],
  products: [
    .library(name: "TrunklineCallKit", targets: ["TrunklineCallKit"]),
    .library(name: "TrunklineClient", targets: ["TrunklineClient"]),
    .library(name: "TrunklineCallDirectory", targets: ["TrunklineCallDirectory"]),
  ],
  dependencies: [
    .package(url: siblings + "/trunkline-base", from: "0.1.0"), .package(url: siblings + "/apple-stand-in", from: "0.1.0"),
  ] + outside,
  targets: libraries + [
    .target(name: "TrunklineAppProtocol", dependencies: [bytes], swiftSettings: swift),
    .target(name: "TrunklineHPKE", dependencies: [openSSL], swiftSettings: swift),
    .target(name: "TrunklineSTUN", dependencies: [bytes, openSSL], swiftSettings: swift),
    .target(name: "TrunklineSRTP", dependencies: [bytes, rtpAndSDP, openSSL], swiftSettings: swift),
    .target(name: "TrunklineDTLS", dependencies: [bytes, "TrunklineSRTP", openSSL], swiftSettings: swift),
    .target(name: "TrunklineICE", dependencies: [bytes, "TrunklineSTUN"], swiftSettings: swift),
    .target(name: "TrunklineTURN", dependencies: [bytes, "TrunklineSTUN"], swiftSettings: swift),
    .target(name: "TrunklineJitterBuffer", dependencies: [bytes, rtpAndSDP], swiftSettings: swift),
    .target(name: "TrunklineAudioCodecs", dependencies: [bytes, rtpAndSDP, "CTrunklineOpus"], swiftSettings: swift),
    .target(
      name: "TrunklineMediaSession",
      dependencies: [
        bytes, rtpAndSDP, "TrunklineSTUN", "TrunklineSRTP", "TrunklineICE", "TrunklineJitterBuffer", "TrunklineAudioCodecs",
      ], swiftSettings: swift),
    .target(
      name: "TrunklineClientMachines",
      dependencies: [
        bytes, rtpAndSDP, "TrunklineSTUN", "TrunklineAppProtocol", "TrunklineSRTP", "TrunklineDTLS", "TrunklineICE",
        "TrunklineTURN", "TrunklineJitterBuffer", "TrunklineAudioCodecs", "TrunklineMediaSession",
      ], swiftSettings: swift),
    .target(
      name: "TrunklineClient",
      dependencies: [
        bytes, rtpAndSDP, "TrunklineAppProtocol", "TrunklineHPKE", "TrunklineDTLS", "TrunklineTURN", "TrunklineAudioCodecs",
        "TrunklineClientMachines", phoneLog,
      ] + socketLibraries,
      exclude: linuxResources, resources: resources, swiftSettings: swift),
    .target(
      name: "TrunklineCallKit",
      dependencies: [bytes, "TrunklineAppProtocol", "TrunklineClientMachines", "TrunklineClient", standIn],
      swiftSettings: swift),
    .target(
      name: "TrunklineCallDirectory", dependencies: [standIn], swiftSettings: swift),
  ],
  swiftLanguageModes: [.v6])
