// swift-tools-version: 6.2
import Foundation
import PackageDescription

// A package of its own: peers' libraries and the counted malloc must not reach the product. See README.md.
let media = Target.Dependency.product(name: "TrunklineMedia", package: "trunkline")
let core = Target.Dependency.product(name: "TrunklineCore", package: "trunkline")
let memorySharedStore = Target.Dependency.product(name: "MemorySharedStore", package: "trunkline")
let mediaThreads = Target.Dependency.product(name: "TrunklineMediaThreads", package: "trunkline")
let speech = Target.Dependency.product(name: "TrunklineLab", package: "trunkline")
let client = ["TrunklineCallKit", "AppleStandIn", "ClientMachines", "ClientSockets"].map {
  Target.Dependency.product(name: $0, package: "trunkline")
}
let clientAlone = Target.Dependency.product(name: "TrunklineClient", package: "trunkline")
let callDirectory = Target.Dependency.product(name: "TrunklineCallDirectory", package: "trunkline")
// Built beside the benches that start them.
let gateway = Target.Dependency.product(name: "trunkline", package: "trunkline")
let lab = Target.Dependency.product(name: "trunkline-lab", package: "trunkline")

/// Where Debian and others keep what is linked; a peer is built in if its files are there, and left out with a note if not.
let libraryFolders = ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib", "/usr/lib64", "/usr/local/lib"]
func library(_ file: String) -> String? {
  libraryFolders.map { "\($0)/\(file)" }.first { FileManager.default.fileExists(atPath: $0) }
}
func header(_ file: String) -> Bool {
  ["/usr/include", "/usr/local/include"].contains { FileManager.default.fileExists(atPath: "\($0)/\(file)") }
}

// NetEQ: a static library of all of WebRTC in C++; only what is used is linked.
let hasNetEQ = header("tg_owt/api/neteq/neteq.h") && library("libtg_owt.a") != nil && library("libabsl_strings.so") != nil
let webrtcDefines = ["WEBRTC_POSIX", "WEBRTC_LINUX", "RTC_DISABLE_TRACE_EVENTS"]
let netEQ = Target.target(
  name: "CNetEQ",
  cxxSettings: hasNetEQ
    ? webrtcDefines.map { .define($0) } + [.define("HAVE_NETEQ"), .unsafeFlags(["-I/usr/include/tg_owt"])] : [],
  linkerSettings: hasNetEQ ? ["tg_owt", "absl_strings", "absl_throw_delegate", "opus", "stdc++"].map { .linkedLibrary($0) } : [])
let hasSpeex = header("speex/speex_jitter.h") && library("libspeexdsp.so") != nil
let hasLibre = header("re/re_jbuf.h") && library("libre.so") != nil
let jitterPeers = Target.target(
  name: "CJitterPeers",
  cSettings: (hasSpeex ? [.define("HAVE_SPEEXDSP")] : [])
    + (hasLibre ? [.define("HAVE_LIBRE"), .unsafeFlags(["-I/usr/include/re"])] : []),
  linkerSettings: (hasSpeex ? [.linkedLibrary("speexdsp")] : []) + (hasLibre ? [.linkedLibrary("re")] : []))

let settings: [SwiftSetting] = [.enableExperimentalFeature("Lifetimes")]
/// In the build that tests share (Scripts/build-check), which is unoptimised: for a bench whose own steps would allocate beside what it counts.
let counts: [SwiftSetting] =
  Context.environment["TRUNKLINE_CHECK"] == nil ? [] : [.unsafeFlags(["-Xfrontend", "-O", "-Xfrontend", "-enable-default-cmo"])]
/// A bench `NAME` lives in Sources/bench-NAME, is run by Scripts/bench, and small by the test suite.
func bench(_ name: String, _ uses: [Target.Dependency] = [media], _ more: [SwiftSetting] = []) -> Target {
  .executableTarget(name: "bench-" + name, dependencies: ["BenchKit"] + uses, swiftSettings: settings + more)
}

let package = Package(
  name: "bench",
  platforms: [.macOS(.v15)],
  dependencies: [.package(name: "trunkline", path: ".."), .package(name: "SamplePhone", path: "../Examples/SamplePhone")],
  targets: [
    .target(name: "CMallocCount"),
    .target(name: "CBenchNet"),
    .systemLibrary(name: "CLibSRTP", pkgConfig: "libsrtp2", providers: [.apt(["libsrtp2-dev"])]),
    .target(name: "BenchKit", dependencies: ["CMallocCount", media, speech], swiftSettings: settings + counts),
    netEQ,
    jitterPeers,
    .target(name: "JitterPeers", dependencies: ["CNetEQ", "CJitterPeers", media], swiftSettings: settings),
    .executableTarget(name: "report"),
    bench("ears", [gateway]),
    bench("media", [media], counts),
    bench("jitter", [media, "JitterPeers"]),
    bench("srtp", [media, "CLibSRTP"]),
    bench("codec"),
    bench("quality", [media, "JitterPeers"]),
    bench("threads", [mediaThreads, "CBenchNet"]),
    bench("load", [media, gateway, lab]),
    bench("calls", [media, gateway]),
    bench("sip", [core]),
    bench("directory", [callDirectory, gateway]),
    bench("cluster", [core, memorySharedStore, mediaThreads, gateway]),
    // Linked by bench-client with nothing but what an app has.
    .executableTarget(name: "client-size", dependencies: [clientAlone], swiftSettings: settings),
    // The sample is built here so that its package is built in every check; live tests start it.
    bench("client", client + [gateway, lab, "client-size", .product(name: "sample-phone", package: "SamplePhone")]),
  ],
  swiftLanguageModes: [.v6], cxxLanguageStandard: .cxx20)
