import BenchKit
import Foundation

/// The delay that a bot's audio has in the gateway, each way: one program echoes a media stream and is the carrier as well
/// (`Bench/bot_delay.py`).
struct BotRows {
  let bench: Bench
  let gateway: MeasuredGateway

  static func run(_ bench: Bench, _ binary: String) throws {
    let gateway = try MeasuredGateway(binary, isAhead: true)
    defer { gateway.end() }
    try BotRows(bench: bench, gateway: gateway).run()
  }

  private static let script = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent(
    "../../bot_delay.py"
  )
  .standardizedFileURL.path
  /// Milliseconds by call, and the smallest share of a call's packets that were found again.
  private struct Delays: Decodable { var toBot: [[Double]], toTrunk: [[Double]], measured: Double }

  private func run() throws {
    for (format, bot) in gateway.bots.sorted(by: { $0.key < $1.key }) where bench.wants("bot: \(format)") {
      guard let python = Program.find("python3") else { return bench.progress("no python3: no figures of a bot") }
      let (calls, seconds) = bench.isSmall ? (1, 1.5) : (10, 6.0)
      bench.progress("\(calls) calls of a bot that echoes, \(format)")
      var words = [
        python, Self.script, "--gateway", "\(gateway.sip)", "--listen", "\(gateway.carrier)", "--bot", "\(bot.port)", "--to",
        bot.number, "--format", format, "--calls", "\(calls)", "--seconds", "\(seconds)",
      ]
      words = (ChildProcess.ahead ?? []) + words
      if let cores = gateway.coresForLoad, let taskset = Program.find("taskset") { words = [taskset, "-c", cores] + words }
      let (output, status) = try Program.run(words[0], Array(words.dropFirst()))
      guard status == 0, let delays = try? JSONDecoder().decode(Delays.self, from: Data(output.utf8)) else {
        return bench.require(false, "no figures of a bot: status \(status)")
      }
      // audio that the jitter buffer conceals or drops belongs to no packet
      bench.require(delays.measured > 0.5, "\(delays.measured) of a call's packets were found again")
      add("bot: \(format), trunk to bot", delays.toBot, "the trunk's jitter buffer is in it")
      add("bot: \(format), bot to trunk", delays.toTrunk, "from the message to the RTP packet")
    }
  }

  private func add(_ name: String, _ calls: [[Double]], _ what: String) {
    for (word, share) in [("median", 0.5), ("p99", 0.99)] {
      let each = calls.map { quantile($0, share) }
      guard let interval = Interval(groups: each.map { [$0] }) else { return }
      bench.add(
        BenchRow(
          "\(name), \(word)", unit: "ms", ours: BenchFigure("ours", interval.mean, interval: interval),
          goal: share == 0.5 && !bench.isSmall ? .atMost(30) : nil,
          note:
            "mean of \(calls.count) calls' \(word)\(share == 0.5 ? "s" : ""), \(calls.map(\.count).reduce(0, +)) frames of 20 ms; \(what)"
        ))
    }
  }

  private func quantile(_ values: [Double], _ share: Double) -> Double {
    let sorted = values.sorted()
    return sorted.isEmpty ? 0 : sorted[min(sorted.count - 1, Int(Double(sorted.count) * share))]
  }
}
