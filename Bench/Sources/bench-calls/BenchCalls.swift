import BenchKit
import Foundation

/// `bench-calls`: the release gateway under calls of sipp: what one costs each thread, how many a second it takes, how quickly the
/// rest are refused, and whether memory stays flat; and what the audio of a bot waits in it.
/// The gateway is the one that was built beside this bench, or the binary that TRUNKLINE_BINARY names.
@main struct BenchCalls {
  nonisolated static func main() {
    Bench.main(
      "calls", about: "calls a second through the release gateway, with sipp as the carrier, its memory, and a bot's delay."
    ) { bench in
      let binary = Gateway.binary
      if bench.mayWant("bot") { try BotRows.run(bench, binary) }
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
