// swift-tools-version: 6.2
import PackageDescription

// A package of its own: libFuzzer needs unsafe flags, which the product must not carry. One binary holds every target;
// TRUNKLINE_FUZZ names the one to run. Built by Scripts/fuzz with `--sanitize fuzzer`, so that the modules are instrumented too.
let package = Package(
  name: "fuzzing",
  platforms: [.macOS(.v15)],
  dependencies: [.package(name: "trunkline", path: "../..")],
  targets: [
    .executableTarget(
      name: "fuzz",
      dependencies: [
        "TrunklineCore", "TrunklineClientMachines", "TrunklineClient", "TrunklineCallDirectory", "AppleStandIn",
      ].map { .product(name: $0, package: "trunkline") },
      swiftSettings: [.enableExperimentalFeature("Lifetimes"), .unsafeFlags(["-parse-as-library"])])
  ],
  swiftLanguageModes: [.v6])
