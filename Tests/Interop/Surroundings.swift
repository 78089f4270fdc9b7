import Foundation
import Glibc
import SpeechScore
import Synchronization
import Testing
import TrunklineBytes
import TrunklinePlatform

/// The tests of a suite run one after the other; Scripts/live-tests runs suites side by side, each in its own process and
/// network.
@Suite(.serialized, .beneathCanary, .noted) enum Interop {}

extension Trait where Self == ConditionTrait {
  /// For suites with more than one gateway.
  static var withRedis: Self {
    .enabled(
      if: Surroundings.isRequired
        || (Surroundings.missing == nil && FileManager.default.isExecutableFile(atPath: "/usr/bin/redis-server")),
      "no redis: run Scripts/install test")
  }
}

/// Programs and files that the tests need.
enum Surroundings {
  static let sources = URL(fileURLWithPath: #filePath).deletingLastPathComponent().path
  static let package = URL(fileURLWithPath: sources).deletingLastPathComponent().deletingLastPathComponent().path
  /// The gateway of a release build if `TRUNKLINE_BINARY` names one: the binary of users. Else the one built beside the tests.
  static let trunkline = released ?? beside("trunkline")
  /// Makes a script in a folder that starts the gateway by a command, with the gateway and its arguments at the end.
  static func wrapped(_ command: String, in folder: String) throws -> String {
    let program = folder + "/trunkline"
    try "#!/bin/sh\nPATH=$PATH:/sbin:/usr/sbin\nexec \(command) \(trunkline) \"$@\"\n".write(
      toFile: program, atomically: true, encoding: .utf8)
    try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: program)
    return program
  }
  static let lab =
    released.map { URL(fileURLWithPath: $0).deletingLastPathComponent().appendingPathComponent("trunkline-lab").path }
    ?? beside("trunkline-lab")
  static let quickStart = beside("quick-start")
  private static let released = ProcessInfo.processInfo.environment["TRUNKLINE_BINARY"].flatMap { $0.isEmpty ? nil : $0 }
  static let python = first([ProcessInfo.processInfo.environment["TRUNKLINE_PYTHON"] ?? "", package + "/.venv/bin/python"])
  static let tshark = first(["/usr/bin/tshark", "/usr/local/bin/tshark", "/opt/homebrew/bin/tshark"])
  static let sngrep = first(["/usr/bin/sngrep", "/usr/local/bin/sngrep", "/opt/homebrew/bin/sngrep"])
  static let prometheus = first(["/usr/bin/prometheus"])
  static let logrotate = first(["/usr/sbin/logrotate"])
  static let rsyslog = first(["/usr/sbin/rsyslogd"])
  static let sipp = first(["/usr/bin/sipp", "/usr/local/bin/sipp", "/opt/homebrew/bin/sipp"])

  /// Why interop tests cannot run here; nil if they can. `Scripts/install test` installs what is missing.
  /// In CI nothing is skipped: a missing program fails there.
  static let isRequired = ProcessInfo.processInfo.environment["CI"] != nil
  static let missing: String? =
    if python == nil { "no .venv with aiortc: run Scripts/install test" } else if sipp == nil {
      "no sipp: run Scripts/install test"
    } else { nil }

  private static func beside(_ name: String) -> String {
    URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent().appendingPathComponent(name).path
  }
  private static func first(_ paths: [String]) -> String? {
    paths.first { FileManager.default.isExecutableFile(atPath: $0) }
  }
}

/// Loopback ports that are free now, and that this process returns once. They are below the range from which the kernel assigns
/// ports (32768 and above), so that no socket of a gateway or a peer gets one between this check and the owner's bind.
enum FreePorts {
  // above the default of `media.trunk_ports`
  private static let range: Range<UInt16> = 22_000..<32_760
  private static let next = Mutex(UInt16.random(in: range))

  static func udp() throws -> UInt16 { try row(1, of: [SOCK_DGRAM], even: false) }
  static func tcp() throws -> UInt16 { try row(1, of: [SOCK_STREAM], even: false) }
  /// Free for UDP and for TCP.
  static func both() throws -> UInt16 { try row(1, of: [SOCK_DGRAM, SOCK_STREAM], even: false) }
  /// The first of `count` UDP ports in a row, even.
  static func row(_ count: UInt16) throws -> UInt16 { try row(count, of: [SOCK_DGRAM], even: true) }

  private static func row(_ count: UInt16, of kinds: [__socket_type], even: Bool) throws -> UInt16 {
    for _ in 0..<range.count {
      let start = next.withLock { next in
        var start = even ? (next + 1) & ~1 : next
        if start > range.upperBound - count { start = range.lowerBound }
        // A peer may bind the next one, too: RTCP, or SIP over TLS (baresip).
        next = start + count + 1
        return start
      }
      if (start..<start + count).allSatisfy({ port in kinds.allSatisfy { isFree($0, port) } }) { return start }
    }
    throw Spawned.Failure(description: "no \(count) free ports in a row in \(range)")
  }

  /// Whether a socket uses the port: read from /proc, as a bind could conflict with a process that is about to bind it.
  static func isTaken(_ port: UInt16) -> Bool {
    let hex = String(port, radix: 16, uppercase: true)
    let wanted = ":" + String(repeating: "0", count: 4 - hex.count) + hex
    return ["udp", "tcp", "udp6", "tcp6"].contains { table in
      let rows = (try? String(contentsOfFile: "/proc/net/" + table, encoding: .utf8))?.split(separator: "\n") ?? []
      return rows.contains { $0.split(separator: " ").dropFirst().first?.hasSuffix(wanted) == true }
    }
  }

  private static func isFree(_ kind: __socket_type, _ port: UInt16) -> Bool {
    let fd = socket(AF_INET, Int32(kind.rawValue), 0)
    guard fd >= 0 else { return false }
    defer { close(fd) }
    return SocketAddress(.loopback, port).withSockaddr { bind(fd, $0, $1) } == 0
  }
}

/// Speech at 8 kHz as WAV files.
enum Speech {
  /// The speech of the telephone side.
  static let telephone = samples(DemoSpeech.telephone)
  /// The speech of the app side.
  static let app = samples(DemoSpeech.app)

  private static func samples(_ coded: [UInt8]) -> [Int16] { coded.map { ulaw($0) } }

  /// ITU-T G.711 µ-law expansion.
  private static func ulaw(_ code: UInt8) -> Int16 {
    let value = Int32(~code)
    let magnitude = ((value & 0x0f) << 3 + 0x84) << ((value & 0x70) >> 4) - 0x84
    return Int16(truncatingIfNeeded: value & 0x80 != 0 ? -magnitude : magnitude)
  }

  static func write(_ samples: [Int16], _ path: String, rate: Int = 8_000) throws {
    var data = Data("RIFF".utf8)
    func number(_ value: UInt32) { withUnsafeBytes(of: value.littleEndian) { data.append(contentsOf: $0) } }
    func short(_ value: UInt16) { withUnsafeBytes(of: value.littleEndian) { data.append(contentsOf: $0) } }
    let size = UInt32(samples.count * 2)
    number(36 + size)
    data.append(Data("WAVEfmt ".utf8))
    number(16)
    short(1)
    short(1)
    number(UInt32(rate))
    number(UInt32(2 * rate))
    short(2)
    short(16)
    data.append(Data("data".utf8))
    number(size)
    for sample in samples { short(UInt16(bitPattern: sample)) }
    try data.write(to: URL(fileURLWithPath: path))
  }

  /// Samples of a file that a peer wrote: mono, 16 bit, 44 bytes of header.
  static func read(_ path: String, _ location: SourceLocation = #_sourceLocation) throws -> [Int16] {
    Verdict.judgesAudio(location)
    let data = [UInt8](try Data(contentsOf: URL(fileURLWithPath: path)).dropFirst(44))
    return stride(from: 0, to: data.count - 1, by: 2).map { Int16(bitPattern: UInt16(data[$0]) | UInt16(data[$0 + 1]) << 8) }
  }
}
