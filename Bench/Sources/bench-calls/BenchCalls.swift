import BenchKit
import Foundation

/// `bench-calls`: the release gateway under calls of sipp: what one costs each thread, how many a second it takes, how quickly the
/// rest are refused, and whether memory stays flat.
/// TRUNKLINE_BINARY names the release build; without it the package's own is taken, and left out with a note if it is not there.
@main struct BenchCalls {
  nonisolated static func main() {
    Bench.main("calls") { bench in
      let binary = ProcessInfo.processInfo.environment["TRUNKLINE_BINARY"] ?? ".build/release/trunkline"
      guard FileManager.default.isExecutableFile(atPath: binary) else {
        return bench.progress("\(binary) is not there: build it with swift build -c release --product trunkline")
      }
      guard let sipp = Program.find("sipp") else { return bench.progress("left out: sipp is not installed (sip-tester)") }
      let gateway = try MeasuredGateway(binary)
      defer { gateway.end() }
      let runs = CallRuns(bench, gateway, sipp)
      try runs.unreachable()
      try runs.answered()
      try runs.tooMany()
      if !bench.isSmall { try runs.memory() }
    }
  }
}

/// Where a program of the system stands.
enum Program {
  static func find(_ name: String) -> String? {
    ["/usr/bin/", "/usr/local/bin/", "/bin/"].map { $0 + name }.first { FileManager.default.isExecutableFile(atPath: $0) }
  }
}
