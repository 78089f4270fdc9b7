import BenchKit
import Foundation

/// `bench-client`: the SDK in an app's process, on the stand-in of iOS, against the release gateway: how soon, with how much. The gateway is the one
/// that was built beside this bench, or the binary that TRUNKLINE_BINARY names.
@main struct BenchClient {
  nonisolated static func main() {
    if let role = AppProcess.role(CommandLine.arguments) { role() }
    Bench.main(
      "client", about: "the client SDK: start to ringing, tap to talk, and what a call takes.",
      options: [BenchOption("--sites", "which call sites of the media thread allocate; nothing else")]
    ) { bench in
      let site = try Site()
      defer { site.end() }
      try site.waitUntilReady()
      try site.register()
      let calls = CallRows(bench: bench, site: site)
      if bench.arguments.contains("--sites") { return try calls.sites() }
      try StartRows(bench: bench, site: site).add()
      try calls.add()
      try SizeRows(bench: bench).add()
      try WebRows(bench: bench, site: site).add()
    }
  }
}
