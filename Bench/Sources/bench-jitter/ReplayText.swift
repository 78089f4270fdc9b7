import BenchKit
import TrunklineAudioCodecs
import TrunklineRTP

/// Results of a replay as one JSON object and as a table.
enum ReplayText {
  static func json(_ trace: Trace, _ encoding: AudioEncoding, _ results: [ReplayResult]) -> String {
    guard let ours = results.first else { return "{}" }
    let peers = results.dropFirst().map { "{" + #""name":\#(jsonQuoted($0.name)),"# + fields($0) + "}" }
    let head: [(String, String)] = [
      ("trace", jsonQuoted(trace.name)), ("codec", jsonQuoted(encoding.name)), ("frame_ms", "\(trace.frameMilliseconds)"),
      ("packets", "\(ours.packets)"), ("pauses", "\(ours.pauses)"),
    ]
    return "{" + head.map { #""\#($0)":\#($1),"# }.joined() + fields(ours) + #","peers":[\#(peers.joined(separator: ","))]}"#
  }

  private static func fields(_ result: ReplayResult) -> String {
    let packets = Double(max(1, result.packets))
    let values: [(String, Double)] = [
      ("late_pct", 100 * Double(result.late) / packets), ("lost_pct", 100 * Double(result.lost) / packets),
      ("concealed_pct", 100 * result.concealed), ("repaired_pct", 100 * result.repaired),
      ("mean_delay_ms", result.meanDelay), ("p95_delay_ms", result.p95Delay), ("max_gap_ms", result.maxGap),
      ("stretches", Double(result.stretches)), ("stretched_pct", 100 * result.stretched), ("altered_pct", 100 * result.altered),
      ("fastest_ms", result.fastest), ("above_fastest_ms", result.aboveFastest), ("fixed_delay_ms", result.fixedDelay),
      ("ratio_to_fixed", result.ratioToFixed), ("r_factor", result.rFactor),
    ]
    return values.map { #""\#($0)":\#(fixed($1, $0 == "stretches" ? 0 : 4))"# }.joined(separator: ",")
      + #","hash":"\#(String(result.hash, radix: 16))""#
  }

  static func table(_ trace: Trace, _ encoding: AudioEncoding, _ results: [ReplayResult]) {
    guard let first = results.first else { return }
    let packets = "\(first.packets) packets of \(trace.frameMilliseconds) ms, \(first.pauses) pauses"
    print("\(trace.name): \(packets), \(encoding.name), fastest \(fixed(first.fastest, 2)) ms")
    let columns = [
      "late %", "lost %", "concealed %", "repaired %", "mean ms", "p95 ms", "gap ms", "stretches", "altered %", "+fastest",
      "fixed +", "ratio", "R",
    ]
    print(left("", 12) + columns.map { right($0, 12) }.joined())
    for result in results {
      let packets = Double(max(1, result.packets))
      let values = [
        100 * Double(result.late) / packets, 100 * Double(result.lost) / packets, 100 * result.concealed, 100 * result.repaired,
        result.meanDelay, result.p95Delay, result.maxGap, Double(result.stretches), 100 * result.altered, result.aboveFastest,
        result.fixedDelay - result.fastest, result.ratioToFixed, result.rFactor,
      ]
      print(left(result.name, 12) + values.map { right(fixed($0, 2), 12) }.joined())
    }
  }

  static func left(_ text: String, _ width: Int) -> String { text + String(repeating: " ", count: max(0, width - text.count)) }
  static func right(_ text: String, _ width: Int) -> String { String(repeating: " ", count: max(0, width - text.count)) + text }
}
