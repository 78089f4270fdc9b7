import AudioCodecs
import BenchKit
import Glibc
import JitterBuffer

/// `bench-jitter [--trace FILE.csv]… [--json]`: replays networks through the whole receive path and prints late packets,
/// concealed audio, delay and cost. Without a trace it uses networks made here from fixed seeds.
@main struct BenchJitter {
  nonisolated static func main() throws {
    let arguments = Array(CommandLine.arguments.dropFirst())
    let json = arguments.contains("--json")
    var traces: [Trace] = []
    for (index, argument) in arguments.enumerated() where argument == "--trace" && index + 1 < arguments.count {
      traces.append(try Trace.read(arguments[index + 1]))
    }
    if traces.isEmpty {
      traces = [
        .made("quiet", seconds: 60, loss: 0, jitter: 0.5, spikeEvery: 0, spike: 0, seed: 1),
        .made("3 % loss, jitter 5 ms", seconds: 180, loss: 0.03, jitter: 5, spikeEvery: 0, spike: 0, seed: 2),
        .made("3 % loss, jitter 5 ms, spikes 120 ms", seconds: 180, loss: 0.03, jitter: 5, spikeEvery: 250, spike: 120, seed: 3),
        .made("jitter 20 ms", seconds: 180, loss: 0.005, jitter: 20, spikeEvery: 0, spike: 0, seed: 4),
        .made("stalls 3 s", seconds: 180, loss: 0, jitter: 2, spikeEvery: 2000, spike: 3000, seed: 5),
      ]
    }
    var policy = DelayPolicy()
    func number(_ name: String) -> Double? {
      arguments.firstIndex(of: name).flatMap { $0 + 1 < arguments.count ? Double(arguments[$0 + 1]) : nil }
    }
    if let value = number("--quantile") { policy.quantile = Float(value) }
    if let value = number("--memory") { policy.memoryPackets = Float(value) }
    if let value = number("--repair-weight") { policy.repairWeight = Float(value) }
    if let value = number("--shrink-margin") { policy.shrinkMarginMilliseconds = Int64(value) }
    if let value = number("--grow-margin") { policy.growMarginMilliseconds = Int64(value) }
    if !json { print(heading) }
    for trace in traces {
      for encoding in [AudioEncoding.pcmu, .opus] {
        show(trace, encoding, try Replay.run(trace, encoding: encoding, policy: policy), json: json)
      }
    }
  }

  static let columns = ["lost %", "late %", "conceal %", "repair %", "mean ms", "p95 ms", "fixed ms", "stretch %", "ns/tick"]
  static var heading: String {
    Text.left("trace", 40) + Text.left("codec", 6) + columns.map { Text.right($0, 11) }.joined()
  }

  static func show(_ trace: Trace, _ encoding: AudioEncoding, _ result: ReplayResult, json: Bool) {
    let count = Double(max(1, result.packets))
    let values = [
      100 * Double(result.lost) / count, 100 * Double(result.late) / count, 100 * result.concealedShare,
      100 * result.repairedShare,
      result.meanDelay, result.delay95, result.fixedDelay, 100 * result.stretchedShare, result.nanosecondsPerTick,
    ]
    if json {
      let keys = [
        "lostPercent", "latePercent", "concealedPercent", "repairedPercent", "meanDelayMs", "p95DelayMs", "fixedDelayMs",
        "stretchedPercent",
        "nanosecondsPerTick",
      ]
      let fields = zip(keys, values).map { #""\#($0)":\#(fixed($1, 3))"# }.joined(separator: ",")
      print(#"{"trace":"\#(trace.name)","codec":"\#(encoding.name)",\#(fields),"hash":"\#(String(result.hash, radix: 16))"}"#)
    } else {
      print(
        Text.left(trace.name, 40) + Text.left(encoding.name, 6) + values.map { Text.right(fixed($0, 2), 11) }.joined())
    }
  }
}

enum Text {
  static func left(_ text: String, _ width: Int) -> String { text + String(repeating: " ", count: max(0, width - text.count)) }
  static func right(_ text: String, _ width: Int) -> String { String(repeating: " ", count: max(0, width - text.count)) + text }
}
