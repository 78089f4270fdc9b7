// swift-tools-version: 6.2
import Foundation
import PackageDescription

// A separate package: peers' libraries and the counted malloc must not reach the product. See README.md.
let media = Target.Dependency.product(name: "TrunklineMedia", package: "trunkline")
let core = Target.Dependency.product(name: "TrunklineCore", package: "trunkline")
let memorySharedStore = Target.Dependency.product(name: "MemorySharedStore", package: "trunkline")
let mediaThreads = Target.Dependency.product(name: "TrunklineMediaThreads", package: "trunkline")
let speech = Target.Dependency.product(name: "TrunklineLab", package: "trunkline")
let client = ["TrunklineCallKit", "AppleStandIn", "TrunklineClientMachines"].map {
  Target.Dependency.product(name: $0, package: "trunkline")
}
let clientAlone = Target.Dependency.product(name: "TrunklineClient", package: "trunkline")
let callDirectory = Target.Dependency.product(name: "TrunklineCallDirectory", package: "trunkline")
// Built beside the benches that start them.
let gateway = Target.Dependency.product(name: "trunkline", package: "trunkline")
let lab = Target.Dependency.product(name: "trunkline-lab", package: "trunkline")

/// Library folders of Debian and other systems. A peer is built in if its files exist; otherwise it is left out with a note.
let libraryFolders = ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib", "/usr/lib64", "/usr/local/lib"]
func library(_ file: String) -> String? {
  libraryFolders.map { "\($0)/\(file)" }.first { FileManager.default.fileExists(atPath: $0) }
}
func header(_ file: String) -> Bool {
  ["/usr/include", "/usr/local/include"].contains { FileManager.default.fileExists(atPath: "\($0)/\(file)") }
}

// NetEQ is part of a static library of all of WebRTC in C++; the linker keeps only the used parts.
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
/// Optimises a bench in the unoptimised build that tests share (Scripts/build-check): without it, the bench's own steps would
/// allocate beside the counted ones.
let counts: [SwiftSetting] =
  Context.environment["TRUNKLINE_CHECK"] == nil ? [] : [.unsafeFlags(["-Xfrontend", "-O", "-Xfrontend", "-enable-default-cmo"])]
/// The bench `NAME` is in Sources/bench-NAME. Scripts/bench runs it; the test suite runs its small form.
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
    // Links only what an app links; bench-client measures its size.
    .executableTarget(name: "client-size", dependencies: [clientAlone], swiftSettings: settings),
    // The sample is listed here so that every check builds its package; live tests start it.
    bench("client", client + [gateway, lab, "client-size", .product(name: "sample-phone", package: "SamplePhone")]),
  ],
  swiftLanguageModes: [.v6], cxxLanguageStandard: .cxx20)
