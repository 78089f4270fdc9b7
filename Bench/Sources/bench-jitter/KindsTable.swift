import BenchKit
import Glibc
import TrunklineAudioCodecs
import TrunklineJitterBuffer

/// `bench-jitter --kinds N [--write DIRECTORY]`: every kind of network with seeds 1…N, one row each and the means of each kind (of
/// ratios the geometric mean), NetEQ below; what a change of policy is judged by. `--write` keeps the traces as files.
enum KindsTable {
  private static let columns = [
    "late %", "lost %", "conceal %", "+fastest", "p95", "gap ms", "fixed +", "ratio", "altered %", "R",
  ]
  private static let ratioColumn = 7

  static func show(_ options: JitterOptions) throws {
    print(ReplayText.left("network (\(options.encoding.name))", 20) + columns.map { ReplayText.right($0, 10) }.joined())
    for kind in NetworkTrace.Kind.allCases {
      var sums: [String: [Double]] = [:]
      for seed in 1...options.kinds {
        let made = NetworkTrace.made(kind, seed: UInt64(seed))
        let trace = Trace(name: made.name, packets: made.packets)
        if let directory = options.directory { try write(made, to: "\(directory)/\(kind.rawValue)-\(seed).csv") }
        let replay = try Replay(trace, encoding: options.encoding)
        for result in try replay.oursAndNetEQ(policy: options.policy, peers: options.peers) {
          let row = values(result)
          print(line("\(made.name) \(result.name)", row))
          let logarithmic = row.enumerated().map { $0 == ratioColumn ? log(max(0.001, $1)) : $1 }
          sums[result.name] = zip(sums[result.name] ?? row.map { _ in 0 }, logarithmic).map(+)
        }
      }
      for (name, sum) in sums.sorted(by: { $0.key > $1.key }) {
        let mean = sum.map { $0 / Double(options.kinds) }.enumerated().map { $0 == ratioColumn ? exp($1) : $1 }
        print(line("= \(kind.rawValue) \(name)", mean))
      }
    }
  }

  private static func values(_ result: ReplayResult) -> [Double] {
    let count = Double(max(1, result.packets)) / 100
    return [
      Double(result.late) / count, Double(result.lost) / count, 100 * result.concealed, result.aboveFastest,
      result.p95Delay - result.fastest, result.maxGap, result.fixedDelay - result.fastest, result.ratioToFixed,
      100 * result.altered, result.rFactor,
    ]
  }

  private static func line(_ name: String, _ values: [Double]) -> String {
    ReplayText.left(name, 20) + values.map { ReplayText.right(fixed($0, 2), 10) }.joined()
  }

  private static func write(_ trace: NetworkTrace, to path: String) throws {
    guard let file = fopen(path, "w") else { throw BenchError(text: "\(path): \(String(cString: strerror(errno)))") }
    defer { fclose(file) }
    fputs("send_ms,arrival_ms\n", file)
    for packet in trace.packets {
      fputs("\(fixed(packet.sent, 3)),\(packet.arrived.map { fixed($0, 3) } ?? "lost")\n", file)
    }
  }
}
