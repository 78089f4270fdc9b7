import Foundation
import PushPolicy
import Testing
import TrunklineBytes
import TrunklinePlatform

private let pushesToMeasure = ProcessInfo.processInfo.environment["TRUNKLINE_PUSH_RATE"].flatMap { Int($0) } ?? 0

private let pushesAtOnce = 90

/// A measurement, not a check: `TRUNKLINE_PUSH_RATE=20000 swift test -c release -Xswiftc -enable-testing --filter PushRateTests`.
@Suite(.enabled(if: pushesToMeasure > 0, "TRUNKLINE_PUSH_RATE=N measures it"), .serialized) struct PushRateTests {
  @Test func `pushes a second on one connection, the stand-in on the same machine`() throws {
    let bench = try SandboxTests.Bench(checked: false)
    defer { bench.stop() }
    bench.wake("first")
    _ = bench.reports.wait(1)
    let (began, cpu) = (MonotonicClock.now(), clock())
    // Fewer at a time than the stand-in allows streams: more would open a second connection.
    var sent = 1
    while sent <= pushesToMeasure {
      let now = bench.reports.count
      while sent <= pushesToMeasure, sent - now < pushesAtOnce {
        bench.wake("d\(sent)", call: UInt64(sent))
        sent += 1
      }
      _ = bench.reports.wait(min(now + pushesAtOnce / 2, pushesToMeasure + 1))
    }
    let reports = bench.reports.wait(pushesToMeasure + 1)
    let seconds = (MonotonicClock.now() - began).inSeconds
    let used = Double(clock() - cpu) / Double(CLOCKS_PER_SEC)
    let took = reports.map(\.elapsed.inSeconds).sorted()
    #expect(reports.filter { $0.outcome == .accepted }.count == pushesToMeasure + 1)
    print(
      "\(pushesToMeasure) pushes in \(seconds) s: \(Int(Double(pushesToMeasure) / seconds)) a second; CPU of sender and stand-in \(Int(used / Double(pushesToMeasure) * 1e6)) µs a push;"
        + " p50 \(took[took.count / 2] * 1e3) ms, p99 \(took[took.count * 99 / 100] * 1e3) ms; connections \(Self.connections(to: bench.sandbox.address.port))"
    )
  }

  /// Established connections to this port, from the kernel's table.
  private static func connections(to port: UInt16) -> Int {
    let bytes = try? FileHandle(forReadingAtPath: "/proc/self/net/tcp")?.readToEnd()
    let table = bytes.map { String(decoding: $0, as: UTF8.self) } ?? ""
    let hex = String(port, radix: 16, uppercase: true)
    return table.split(separator: "\n").filter { line in
      let fields = line.split(separator: " ")
      return fields.count > 3 && fields[2].hasSuffix(":" + String(repeating: "0", count: 4 - hex.count) + hex)
        && fields[3] == "01"
    }.count
  }
}
