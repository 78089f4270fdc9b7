import BenchKit
import Glibc
import JitterPeers
import TrunklineAudioCodecs
import TrunklineJitterBuffer

/// `bench-jitter`: see `JitterOptions.about`.
@main struct BenchJitter {
  nonisolated static func main() {
    Bench.main("jitter", about: JitterOptions.about, options: JitterOptions.options) { bench in
      let options = try JitterOptions(bench.arguments)
      if options.kinds > 0 { return try KindsTable.show(options) }
      guard options.traces.isEmpty else { return try replay(options, bench) }
      for (name, isThere) in [
        ("NetEQ (libtgowt-dev)", NetEQ.isInstalled), ("speexdsp (libspeexdsp-dev)", SpeexJitterBuffer() != nil),
        ("libre (libre-dev)", LibreJitterBuffer() != nil),
      ] where !isThere { bench.progress("without \(name): not installed") }
      try CostRows.add(to: bench)
      if bench.counted == nil { try TradeOff.add(to: bench, policy: options.policy) }
    }
  }

  private static func replay(_ options: JitterOptions, _ bench: Bench) throws {
    for path in options.traces {
      let trace = try Trace.read(path, frameMilliseconds: options.frameMilliseconds)
      let replay = try Replay(trace, encoding: options.encoding)
      let results = try replay.all(policy: options.policy, peers: options.peers)
      bench.isJSON ? print(ReplayText.json(trace, options.encoding, results)) : ReplayText.table(trace, options.encoding, results)
    }
  }
}
