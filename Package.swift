// swift-tools-version: 6.2
import Foundation
import PackageDescription

// The folder tree is the import rule. A module imports from the folders above its own, and from siblings named here:
// CLibraries → Wire → Media → Calls → Platform → Runtime → Trunkline → Lab; Client stands beside Calls and sees Wire and Media only.
// `swift build --explicit-target-dependency-import-check error` enforces this table; Tests/ImportRule holds it.

let strict: [SwiftSetting] = Context.environment["TRUNKLINE_STRICT"] == nil ? [] : [.treatAllWarnings(as: .error)]
let swift: [SwiftSetting] = [.enableExperimentalFeature("Lifetimes")] + strict

// `TRUNKLINE_CHECK=1`: the build that tests and live gateway share (Scripts/build-check). All of it is unoptimised but for what carries
// audio, and for what the time of tests and small benches goes into.
let optimisedInCheck: Set<String> = [
  "Bytes", "PhoneNumbers", "RTP", "STUN", "SDP", "SIP", "AppProtocol", "SRTP", "DTLS", "ICE", "TURN", "JitterBuffer",
  "AudioCodecs",
  "MediaSession",
  "SIPDialogs", "Trunking", "AppSessions", "PushPolicy", "Devices", "CallModel", "CallFlow", "Cluster", "GatewayCore",
  "MemorySharedStore",
  "MediaThreads",
  "ClientMachines", "TrunklineClient", "AppleStandIn", "SpeechScore", "PhoneLog", "JSONWebToken",
]
// What an iPhone's app links, and its tests: Tests/AppleSurface looks in the compiler's index for what is newer than `platforms` below.
let indexedInCheck: Set<String> = [
  "Bytes", "STUN", "RTP", "SDP", "AppProtocol", "HPKE", "SRTP", "DTLS", "ICE", "TURN", "JitterBuffer", "AudioCodecs",
  "MediaSession",
  "ClientMachines", "PhoneLog", "AppleStandIn",
]
func settings(of name: String) -> [SwiftSetting] {
  guard Context.environment["TRUNKLINE_CHECK"] != nil else { return swift }
  let index = indexedInCheck.contains(name) ? ["-index-store-path", Context.packageDirectory + "/.build-check/index"] : []
  // behind -Onone, which the whole build is given
  let optimised = optimisedInCheck.contains(name) ? ["-Xfrontend", "-O", "-Xfrontend", "-enable-default-cmo"] : []
  return index.isEmpty && optimised.isEmpty ? swift : swift + [.unsafeFlags(optimised + index)]
}

// What Scripts/export makes packages of (Packages/) bears the project's name, since an app may have a module `RTP` of its own: the folder
// Sources/Wire/RTP is the module TrunklineRTP, CLibraries/COpus is CTrunklineOpus. The tables below have the folders' names.
let exported: Set<String> = [
  "Bytes", "STUN", "RTP", "SDP", "SIP", "AppProtocol", "HPKE", "SRTP", "DTLS", "ICE", "TURN", "JitterBuffer", "AudioCodecs",
  "MediaSession", "SIPDialogs", "SIPTransport", "SIPTrace", "Resolver", "Platform", "ClientMachines", "PhoneLog",
  "AppCheck", "COpenSSL", "COpus", "CWebSockets", "CCurl", "CLinux", "CAres",
]
func moduleName(_ folder: String) -> String {
  guard exported.contains(folder) else { return folder }
  return folder.hasPrefix("C") && cNames.contains(folder) ? "CTrunkline" + folder.dropFirst() : "Trunkline" + folder
}
let cNames: Set<String> = ["COpenSSL", "COpus", "CWebSockets", "CCurl", "CLinux", "CAres"]
func using(_ folders: [String]) -> [Target.Dependency] { folders.map { .byName(name: moduleName($0)) } }

func library(_ name: String, pkgConfig: String, apt: String) -> Target {
  .systemLibrary(
    name: moduleName(name), path: "Sources/CLibraries/\(name)", pkgConfig: pkgConfig, providers: [.apt([apt])])
}
func module(_ folder: String, _ name: String, _ uses: [String], _ products: [Target.Dependency] = []) -> Target {
  let path = folder.isEmpty ? "Sources/\(name)" : "Sources/\(folder)/\(name)"
  return .target(
    name: moduleName(name), dependencies: using(uses) + products, path: path, swiftSettings: settings(of: name))
}
// Nothing imports a module of tests. The driver makes its interface beside its objects all the same, in a process of its own that reads all of it
// again: the check build has both of one process.
let ofTests: [SwiftSetting] =
  Context.environment["TRUNKLINE_CHECK"] == nil ? swift : swift + [.unsafeFlags(["-no-emit-module-separately-wmo"])]
func tests(_ name: String, _ uses: [String], _ products: [Target.Dependency] = [], exclude: [String] = []) -> Target {
  .testTarget(
    name: name + "Tests", dependencies: using(uses) + products, path: "Tests/\(name)", exclude: exclude,
    swiftSettings: ofTests)
}

let logging = Target.Dependency.product(name: "Logging", package: "swift-log")
let argumentParser = Target.Dependency.product(name: "ArgumentParser", package: "swift-argument-parser")
let yams = Target.Dependency.product(name: "Yams", package: "Yams")
let grdb = Target.Dependency.product(name: "GRDB", package: "GRDB.swift")

// OpenSSL and Opus are Debian's. On a Mac, which builds for iPhones too, they are kept packages, under the same module names: a resolution on
// Linux never sees these. What an app links has no unsafe flags (Tests/AppleSurface).
#if os(macOS)
  func shim(_ name: String, over product: String, of package: String) -> Target {
    .target(
      name: moduleName(name), dependencies: [.product(name: product, package: package)], path: "Sources/CLibraries/\(name)/apple")
  }
  let appLibraries: [Target] = [
    shim("COpenSSL", over: "OpenSSL", of: "OpenSSL-Package"), shim("COpus", over: "Copus", of: "swift-opus"),
  ]
  let applePackages: [Package.Dependency] = [
    .package(url: "https://github.com/krzyzanowskim/OpenSSL-Package", from: "3.3.2000"),
    .package(url: "https://github.com/alta/swift-opus", from: "0.0.2"),
  ]
#else
  let appLibraries: [Target] = [
    library("COpenSSL", pkgConfig: "openssl", apt: "libssl-dev"),
    library("COpus", pkgConfig: "opus", apt: "libopus-dev"),
  ]
  let applePackages: [Package.Dependency] = []
#endif

let cLibraries: [Target] =
  appLibraries + [
    library("CWebSockets", pkgConfig: "libwebsockets", apt: "libwebsockets-dev"),
    library("CCurl", pkgConfig: "libcurl", apt: "libcurl4-openssl-dev"),
    library("CAres", pkgConfig: "libcares", apt: "libc-ares-dev"),
    // Without pkg-config: its flags for this one hold a definition that SwiftPM warns of and leaves out.
    .systemLibrary(name: "CHiredis", path: "Sources/CLibraries/CHiredis", providers: [.apt(["libhiredis-dev"])]),
    library("CNGHTTP2", pkgConfig: "libnghttp2", apt: "libnghttp2-dev"),
    library("CSRTP", pkgConfig: "libsrtp2", apt: "libsrtp2-dev"),  // the oracle: Tests and Bench only
    // The table of Scripts/numbers: data, as a compiler of C takes it in.
    .target(name: "CPhoneNumbers", path: "Sources/CLibraries/CPhoneNumbers", exclude: ["numbers.bin"]),
    // Scripts/dist says of which commit a package is.
    .target(
      name: moduleName("CLinux"), path: "Sources/CLibraries/CLinux",
      cSettings: Context.environment["TRUNKLINE_COMMIT"].map { [.define("TRUNKLINE_COMMIT", to: "\"\($0)\"")] } ?? []),
  ]

let wire: [Target] = [
  module("Wire", "Bytes", []),
  module("Wire", "STUN", ["Bytes", "COpenSSL"]),
  module("Wire", "RTP", ["Bytes"]),
  module("Wire", "SDP", ["Bytes", "RTP"]),
  module("Wire", "SIP", ["Bytes"]),
  module("Wire", "PhoneNumbers", ["CPhoneNumbers"]),
  module("Wire", "AppProtocol", ["Bytes"]),
  module("Wire", "JSONWebToken", ["Bytes", "COpenSSL"]),
  module("Wire", "HPKE", ["COpenSSL"]),
  module("Wire", "HTTP", []),
  module("Wire", "WebSocket", ["COpenSSL"]),
  module("Wire", "RESP", ["CHiredis"]),
]

let media: [Target] = [
  module("Media", "SRTP", ["Bytes", "RTP", "COpenSSL"]),
  module("Media", "DTLS", ["Bytes", "SRTP", "COpenSSL"]),
  module("Media", "ICE", ["Bytes", "STUN"]),
  module("Media", "TURN", ["Bytes", "STUN"]),
  module("Media", "JitterBuffer", ["Bytes", "RTP"]),
  module("Media", "AudioCodecs", ["Bytes", "RTP", "COpus"]),
  module("Media", "MediaSession", ["Bytes", "RTP", "STUN", "SRTP", "ICE", "JitterBuffer", "AudioCodecs"]),
]

let calls: [Target] = [
  module("Calls", "SIPDialogs", ["Bytes", "SIP", "COpenSSL"]),
  module("Calls", "Trunking", ["Bytes", "PhoneNumbers", "SIP", "SIPDialogs"]),
  module("Calls", "AppSessions", ["Bytes", "AppProtocol", "JSONWebToken", "COpenSSL"]),
  module("Calls", "PushPolicy", ["Bytes", "JSONWebToken", "HPKE", "HTTP", "COpenSSL"]),
  module("Calls", "Devices", ["Bytes", "AppProtocol", "AppSessions", "PushPolicy"]),
  module(
    "Calls", "CallModel",
    [
      "Bytes", "PhoneNumbers", "RTP", "SDP", "AppProtocol", "JSONWebToken", "SRTP", "AudioCodecs", "MediaSession", "SIPDialogs",
      "Trunking", "AppSessions", "PushPolicy", "Devices",
    ]),
  module(
    "Calls", "CallFlow",
    [
      "Bytes", "PhoneNumbers", "RTP", "SDP", "SIP", "AppProtocol", "JSONWebToken", "SRTP", "AudioCodecs", "MediaSession",
      "SIPDialogs", "Trunking", "AppSessions", "PushPolicy", "Devices", "CallModel",
    ]),
  module("Calls", "Cluster", ["Bytes", "AppProtocol", "AppSessions", "PushPolicy", "Devices", "SIPDialogs", "CallModel"]),
  module(
    "Calls", "GatewayCore",
    [
      "Bytes", "AppProtocol", "AppSessions", "PushPolicy", "Devices", "SIPDialogs", "Trunking", "CallModel", "CallFlow",
      "Cluster",
    ]),
]

let platform: [Target] = [module("", "Platform", ["Bytes", "CLinux", "COpenSSL"], [logging])]

let runtime: [Target] = [
  module("Runtime", "SIPTransport", ["Bytes", "SIP", "SIPDialogs", "Platform", "CLinux", "COpenSSL"], [logging]),
  module("Runtime", "SIPTrace", ["Bytes", "SIPDialogs", "Platform"], [logging]),
  module("Runtime", "Resolver", ["Bytes", "SIPDialogs", "Platform", "CAres"], [logging]),
  module(
    "Runtime", "MediaThreads",
    ["Bytes", "RTP", "STUN", "SRTP", "DTLS", "ICE", "JitterBuffer", "AudioCodecs", "MediaSession", "Platform", "CLinux"],
    [logging]),
  module("Runtime", "WebServer", ["Bytes", "HTTP", "WebSocket", "Platform", "COpenSSL"], [logging]),
  module(
    "Runtime", "AppServer", ["Bytes", "AppProtocol", "JSONWebToken", "HTTP", "AppSessions", "Platform", "WebServer"], [logging]),
  module("Runtime", "LineFiles", []),
  module("Runtime", "EventJournal", ["Bytes", "Platform", "LineFiles"]),
  module(
    "Runtime", "Store",
    [
      "Bytes", "PhoneNumbers", "AppProtocol", "JSONWebToken", "AppSessions", "PushPolicy", "Devices", "CallModel", "Cluster",
      "SIPDialogs",
      "Platform", "LineFiles", "EventJournal",
    ],
    [logging, grdb]),
  module(
    "Runtime", "OutgoingHTTP", ["Bytes", "HTTP", "JSONWebToken", "PushPolicy", "Platform", "CCurl", "EventJournal"], [logging]),
  module(
    "Runtime", "SharedStore",
    [
      "Bytes", "RESP", "AppProtocol", "JSONWebToken", "AppSessions", "PushPolicy", "Devices", "SIPDialogs", "CallModel",
      "Cluster",
      "Platform",
    ],
    [logging]),
  module("Runtime", "Telemetry", ["Bytes", "Platform"], [logging]),
  module(
    "Runtime", "MediaStreams", ["Bytes", "RTP", "WebSocket", "AudioCodecs", "MediaSession", "CallModel", "Platform"], [logging]),
  module("Runtime", "RecordingFiles", ["Bytes", "RTP", "AudioCodecs", "MediaSession", "CallModel", "Platform"], [logging]),
  module(
    "Runtime", "Control",
    [
      "Bytes", "SIP", "SDP", "AppProtocol", "MediaSession", "SIPDialogs", "Trunking", "AppSessions", "PushPolicy", "Devices",
      "CallModel", "CallFlow", "Cluster", "GatewayCore", "Platform",
    ],
    [logging]),
]

let client: [Target] = [
  .target(name: "CWebFiles", path: "Sources/Client/CWebFiles"),
  module(
    "Client", "ClientMachines",
    ["Bytes", "RTP", "STUN", "SDP", "AppProtocol", "SRTP", "DTLS", "ICE", "TURN", "JitterBuffer", "AudioCodecs", "MediaSession"]),
  // The lines that the stand-in's log and the SDK's trace are made of.
  module("Client", "PhoneLog", ["Bytes"]),
  module("Client", "AppleStandIn", ["Bytes", "PhoneLog"]),
  .target(
    name: "TrunklineCallKit",
    dependencies: using(["Bytes", "AppProtocol", "ClientMachines", "TrunklineClient"]) + [
      .byName(name: "AppleStandIn", condition: .when(platforms: [.linux, .macOS]))
    ], path: "Sources/Client/TrunklineCallKit", swiftSettings: swift),
  // Linux's Foundation cannot open a WebSocket, since Debian's libcurl is built without: folder Linux has one over libwebsockets.
  .target(
    name: "TrunklineClient",
    dependencies: using(["Bytes", "RTP", "AppProtocol", "HPKE", "DTLS", "TURN", "AudioCodecs", "ClientMachines", "PhoneLog"])
      + ["CWebSockets", "CCurl", "COpenSSL"].map { .byName(name: moduleName($0), condition: .when(platforms: [.linux])) },
    path: "Sources/Client/TrunklineClient", swiftSettings: settings(of: "TrunklineClient")),
  // An extension of an iPhone links nothing else of ours; where CallKit is not there, the stand-in is.
  .target(
    name: "TrunklineCallDirectory",
    dependencies: [.byName(name: "AppleStandIn", condition: .when(platforms: [.linux, .macOS]))],
    path: "Sources/Client/TrunklineCallDirectory", swiftSettings: swift),
]

let executable: [Target] = [
  module(
    "Trunkline", "Configuration",
    [
      "Bytes", "PhoneNumbers", "RTP", "JSONWebToken", "AudioCodecs", "MediaSession", "SIPDialogs", "Trunking", "AppSessions",
      "PushPolicy", "CallModel", "Platform", "RESP", "COpenSSL",
    ], [yams]),
  module(
    "Trunkline", "CommandSupport", ["Bytes", "JSONWebToken", "Platform", "Configuration", "CCurl", "CLinux"], [argumentParser]),
  .executableTarget(
    name: "trunkline",
    dependencies: using(["CCurl", "CLinux", "CWebFiles", "Configuration", "CommandSupport"]) + [logging, argumentParser]
      + (wire + media + calls + platform + runtime).map { .byName(name: $0.name) },
    path: "Sources/Trunkline", exclude: ["Configuration", "CommandSupport"], swiftSettings: swift),
]

// What stands in for others: nothing of it is in the gateway's binary.
let lab: [Target] = [
  .target(name: "CDemoSpeech", path: "Sources/Lab/CDemoSpeech", exclude: ["telephone.ulaw", "app.ulaw"]),
  module("Lab", "SpeechScore", ["Bytes", "CDemoSpeech"]),
  module("Lab", "AppCheck", []),
  module("Lab", "PushSandbox", ["Bytes", "JSONWebToken", "Platform", "COpenSSL", "CNGHTTP2"]),
  module(
    "Lab", "Peers",
    [
      "Bytes", "RTP", "STUN", "SDP", "SIP", "AppProtocol", "SRTP", "DTLS", "ICE", "JitterBuffer", "AudioCodecs", "MediaSession",
      "SpeechScore", "SIPDialogs", "SIPTransport", "Platform", "ClientMachines", "TrunklineClient",
    ], [logging]),
  .executableTarget(
    name: "trunkline-lab",
    dependencies: using([
      "Bytes", "RTP", "SDP", "AppProtocol", "JSONWebToken", "AudioCodecs", "SIPDialogs", "CallModel", "CallFlow", "Platform",
      "CLinux",
      "Configuration", "CommandSupport", "SpeechScore", "Peers", "PushSandbox", "ClientMachines", "TrunklineClient",
      "AppleStandIn", "AppCheck",
    ]) + [argumentParser],
    path: "Sources/Lab", exclude: ["AppCheck", "SpeechScore", "CDemoSpeech", "PushSandbox", "Peers"],
    swiftSettings: swift),
]

// One row for every folder under Tests; a row whose folder is not there yet has no effect.
let sipStack = ["Bytes", "SIP", "SDP"]
let mediaStack = ["Bytes", "RTP", "STUN", "SRTP", "DTLS", "ICE", "JitterBuffer", "AudioCodecs", "MediaSession", "SDP"]
let appStack = ["Bytes", "AppProtocol", "JSONWebToken", "AppSessions"]
let callStack = [
  "Bytes", "PhoneNumbers", "RTP", "SIP", "SDP", "AppProtocol", "JSONWebToken", "MediaSession", "SIPDialogs", "Trunking",
  "AppSessions",
  "PushPolicy", "Devices",
  "CallModel", "CallFlow", "GatewayCore",
]
let testTargets: [Target] = [
  .target(name: "CHeap", path: "Tests/CHeap"),
  .target(name: "CIndexStore", path: "Tests/CIndexStore"),
  // The quick start as it stands, over a stand-in of SwiftUI: an app that the handset starts.
  .target(name: "SwiftUI", dependencies: ["AppleStandIn"], path: "Tests/QuickStart/SwiftUI", swiftSettings: swift),
  .executableTarget(
    name: "quick-start", dependencies: ["SwiftUI", "TrunklineCallKit"], path: "Tests/QuickStart/App", swiftSettings: swift),
  tests("Bytes", ["Bytes"]),
  tests("STUN", ["Bytes", "STUN"]),
  tests("RTP", ["Bytes", "RTP"]),
  tests("SDP", ["Bytes", "RTP", "SDP"]),
  tests("SIP", ["Bytes", "SIP"]),
  tests("PhoneNumbers", ["PhoneNumbers", "CPhoneNumbers"], exclude: ["oracle.py"]),
  tests("AppProtocol", ["Bytes", "AppProtocol"]),
  tests("JSONWebToken", ["Bytes", "JSONWebToken", "COpenSSL"]),
  tests("HPKE", ["Bytes", "HPKE"]),
  tests("HTTP", ["Bytes", "HTTP"]),
  tests("WebSocket", ["Bytes", "WebSocket"]),
  tests("RESP", ["Bytes", "RESP", "CHiredis"]),
  tests("SRTP", ["Bytes", "RTP", "SRTP", "COpenSSL", "CSRTP"]),
  tests("DTLS", ["Bytes", "SRTP", "DTLS", "COpenSSL"]),
  tests("ICE", ["Bytes", "STUN", "ICE"]),
  tests("TURN", ["Bytes", "STUN", "TURN"]),
  tests("JitterBuffer", ["Bytes", "RTP", "JitterBuffer"]),
  tests("AudioCodecs", ["Bytes", "RTP", "AudioCodecs"]),
  tests("SpeechScore", ["Bytes", "AudioCodecs", "SpeechScore"]),
  tests("MediaSession", mediaStack + ["SpeechScore", "CHeap"]),
  tests("SIPDialogs", sipStack + ["SIPDialogs", "COpenSSL"]),
  tests("Trunking", ["Bytes", "PhoneNumbers", "SIP", "SIPDialogs", "Trunking"]),
  tests("AppSessions", appStack + ["COpenSSL"]),
  tests("CallFlow", callStack),
  tests("PushPolicy", ["Bytes", "JSONWebToken", "HPKE", "HTTP", "PushPolicy", "COpenSSL"]),
  tests("Devices", ["Bytes", "AppProtocol", "JSONWebToken", "AppSessions", "PushPolicy", "Devices"]),
  // A shared store in memory with faults, and cluster machines over it on virtual time: for tests, scenarios and benches.
  .target(
    name: "MemorySharedStore", dependencies: using(["Bytes", "AppSessions", "CallModel", "Devices", "Cluster"]),
    path: "Tests/MemorySharedStore",
    swiftSettings: settings(of: "MemorySharedStore")),
  tests("Cluster", callStack + ["Cluster", "MemorySharedStore"]),
  tests(
    "Scenarios",
    callStack + [
      "Cluster", "MemorySharedStore",
      "HTTP", "COpenSSL", "ClientMachines", "AppleStandIn", "TrunklineClient", "TrunklineCallKit",
      "TrunklineCallDirectory",
    ]),
  tests("Platform", ["Bytes", "Platform"], [logging]),
  tests("SIPTransport", sipStack + ["SIPDialogs", "Platform", "SIPTransport", "COpenSSL"], [logging]),
  tests("SIPTrace", ["Bytes", "SIPDialogs", "SIPTrace"]),
  tests("Resolver", ["Bytes", "SIPDialogs", "Platform", "Resolver"], [logging]),
  tests("MediaThreads", mediaStack + ["Platform", "MediaThreads", "SpeechScore"], [logging]),
  // A socket of a client that may break every rule.
  .target(
    name: "TestSockets", dependencies: using(["Bytes", "Platform"]), path: "Tests/TestSockets",
    swiftSettings: settings(of: "TestSockets")),
  tests("WebServer", ["Bytes", "HTTP", "Platform", "WebServer", "TestSockets"], [logging]),
  tests("AppServer", appStack + ["Platform", "WebServer", "AppServer", "TestSockets"], [logging]),
  tests("LineFiles", ["Bytes", "LineFiles"]),
  tests("EventJournal", ["Bytes", "Platform", "LineFiles", "EventJournal"]),
  tests("Store", callStack + ["Cluster", "MemorySharedStore", "Platform", "LineFiles", "EventJournal", "Store"], [logging]),
  tests(
    "OutgoingHTTP", ["Bytes", "JSONWebToken", "PushPolicy", "Platform", "OutgoingHTTP"], [logging],
    exclude: ["jwks_peer.py", "push_peer.py", "verifier_peer.py"]),
  tests("SharedStore", callStack + ["Cluster", "MemorySharedStore", "RESP", "Platform", "Store", "SharedStore"], [logging]),
  tests("Telemetry", ["Bytes", "Platform", "Telemetry"], [logging]),
  tests("Control", callStack + ["Cluster", "Platform", "Control"], [logging]),
  tests(
    "MediaStreams", ["Bytes", "RTP", "AudioCodecs", "MediaSession", "CallModel", "CallFlow", "Platform", "MediaStreams"],
    [logging]),
  tests(
    "RecordingFiles", ["Bytes", "RTP", "AudioCodecs", "MediaSession", "CallModel", "CallFlow", "Platform", "RecordingFiles"],
    [logging]),
  tests("ClientMachines", mediaStack + ["TURN", "AppProtocol", "ClientMachines", "TrunklineClient"]),
  tests("AppleStandIn", ["Bytes", "AppleStandIn"]),
  tests("PhoneLog", ["Bytes", "PhoneLog"]),
  tests("AppCheck", ["AppCheck"]),
  tests(
    "TrunklineCallKit",
    ["Bytes", "AppProtocol", "HPKE", "ClientMachines", "AppleStandIn", "TrunklineClient", "TrunklineCallKit"]),
  tests("TrunklineClient", ["Bytes", "AppProtocol", "HPKE", "STUN", "TURN", "ClientMachines", "TrunklineClient"]),
  tests("CallDirectory", ["AppleStandIn", "TrunklineCallDirectory"]),
  tests(
    "AppleSurface", ["AppleStandIn", "TrunklineClient", "TrunklineCallKit", "TrunklineCallDirectory", "SwiftUI", "CIndexStore"],
    [yams],
    exclude: ["Surfaces", "Programs", "availability.tsv"]),
  .executableTarget(name: "handset-app", dependencies: ["AppleStandIn"], path: "Tests/HandsetApp", swiftSettings: swift),
  tests("Handset", ["Bytes", "AppleStandIn", "trunkline-lab", "handset-app"]),
  tests(
    "Configuration",
    [
      "Bytes", "RTP", "JSONWebToken", "AudioCodecs", "MediaSession", "SIPDialogs", "Trunking", "AppSessions", "PushPolicy",
      "CallModel", "CallFlow", "Platform", "Configuration",
    ], [yams]),
  tests(
    "Commands",
    [
      "Bytes", "JSONWebToken", "AudioCodecs", "MediaSession", "AppProtocol", "Trunking", "AppSessions", "PushPolicy", "CallModel",
      "CallFlow",
      "Cluster",
      "Platform", "SIPTransport",
      "WebServer", "AppServer",
      "Store", "SharedStore", "Configuration", "trunkline",
    ], [yams, logging, argumentParser]),
  tests("Load", ["Bytes", "CLinux", "Configuration", "Peers", "trunkline-lab"]),
  tests("PushSandbox", ["Bytes", "JSONWebToken", "PushPolicy", "Platform", "OutgoingHTTP", "PushSandbox"], [logging]),
  tests("Peers", ["Bytes", "SIPDialogs", "Platform", "SpeechScore", "Peers", "TrunklineClient", "COpenSSL"]),
  // The fuzz targets of the nested package, without its instrumented build.
  .testTarget(
    name: "FuzzingTests",
    dependencies: [
      "Bytes", "RTP", "STUN", "SRTP", "SDP", "SIP", "SIPDialogs", "TURN", "JitterBuffer", "AudioCodecs", "MediaSession",
      "PhoneNumbers", "AppProtocol", "JSONWebToken", "HPKE", "HTTP", "WebSocket", "RESP", "ClientMachines", "TrunklineClient",
      "TrunklineCallDirectory",
      "AppleStandIn",
    ].map { .byName(name: moduleName($0)) },
    path: "Tests/Fuzzing/Sources", swiftSettings: ofTests),
  tests("ImportRule", []),
  tests("Requirements", []),
  tests("Export", []),
  tests("Documents", ["AppProtocol", "CallModel", "CallFlow", "Configuration"], [yams]),
  // Compiles the samples of the SDK's documentation, and builds its pages of the modules that are there then.
  tests("Documentation", ["TrunklineCallKit", "TrunklineClient", "TrunklineCallDirectory", "AppleStandIn"]),
  // It starts trunkline, trunkline-lab and quick-start, and imports nothing of them: as dependencies they would have to be compiled before the
  // largest module of all, which then is compiled alone at the end. `swift build --build-tests` builds them anyway.
  tests(
    "Interop",
    [
      "Bytes", "JSONWebToken", "SpeechScore", "Platform", "Peers", "AppleStandIn",
      "TrunklineClient", "TrunklineCallKit",
    ],
    exclude: ["peers", "sipp"]
      + ["attacks", "adversary.py", "arena.py", "asked.py", "processes.py", "table.json"].map { "Adversary/" + $0 }),
].filter { FileManager.default.fileExists(atPath: Context.packageDirectory + "/" + ($0.path ?? "")) }

var targets = cLibraries + wire + media + calls + platform + runtime + client + executable + lab + testTargets
var packages: [Package.Dependency] =
  [
    .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
    .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
    .package(url: "https://github.com/jpsim/Yams", from: "6.2.2"),
    .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
  ] + applePackages

// One module's tests without building the rest: `TRUNKLINE_ONLY=SIPTests swift test` (several: separate with commas).
if let only = Context.environment["TRUNKLINE_ONLY"] {
  var wanted = Set(only.split(separator: ",").map(String.init))
  var size = 0
  while size != wanted.count {
    size = wanted.count
    for target in targets where wanted.contains(target.name) {
      for dependency in target.dependencies {
        if case .byNameItem(let name, _) = dependency { wanted.insert(name) }
        if case .targetItem(let name, _) = dependency { wanted.insert(name) }
        if case .productItem(_, let package, _, _) = dependency, let package { wanted.insert("package:" + package) }
      }
    }
  }
  targets = targets.filter { wanted.contains($0.name) }
  packages = packages.filter { package in
    guard case .sourceControl(_, let location, _) = package.kind else { return true }
    return wanted.contains("package:" + (location.split(separator: "/").last.map(String.init) ?? ""))
  }
}

// An app depends on TrunklineCallKit, or on TrunklineClient where CallKit is not to be had; its Call Directory extension on
// TrunklineCallDirectory; its tests on AppleStandIn. The others are for the nested packages Bench and Tests/Fuzzing: everything sans-I/O, the media half of it, that half with its threads, and the gateway
// itself, which the test suite builds once for both.
let present = Set(targets.map(\.name))
func products(_ name: String, _ parts: [Target]) -> [Product] {
  let names = parts.map(\.name).filter(present.contains)
  return names.isEmpty ? [] : [.library(name: name, targets: names)]
}
let threads = (platform + runtime).filter { ["TrunklinePlatform", "MediaThreads"].contains($0.name) }
let products: [Product] =
  // what apps add: Trunkline… and the stand-in
  [
    "TrunklineCallKit", "TrunklineClient", "TrunklineCallDirectory", "AppleStandIn", "TrunklineClientMachines",
  ].flatMap { name in products(name, client.filter { $0.name == name }) } + products("TrunklineCore", wire + media + calls)
  + products("TrunklineMedia", wire + media) + products("TrunklineMediaThreads", wire + media + threads)
  + products("MemorySharedStore", testTargets.filter { $0.name == "MemorySharedStore" })
  + products("TrunklineLab", lab.filter { $0.name == "SpeechScore" })
  + ["trunkline", "trunkline-lab"].filter(present.contains).map { .executable(name: $0, targets: [$0]) }

let package = Package(
  name: "trunkline",
  platforms: [.macOS(.v15), .iOS(.v18)],
  products: products,
  dependencies: packages,
  targets: targets,
  swiftLanguageModes: [.v6])
