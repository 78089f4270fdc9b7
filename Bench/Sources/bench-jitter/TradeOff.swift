import AudioCodecs
import BenchKit
import JitterBuffer
import JitterPeers

/// Delay against missing audio: ours at several settings, the peers at theirs, and fixed buffers chosen with hindsight.
enum TradeOff {
  /// What is asked of a kind of network: our delay above the fastest packet by the best fixed one's.
  private enum Asked {
    case netEQ(Double)
    case ratio(Double)
    case delay(late: Double, mean: Double)
  }

  static func add(to bench: Bench, policy: DelayPolicy) throws {
    let seconds = bench.isSmall ? 20 : 180
    var networks: [(Trace, Asked)] = [
      (.tradeOff(seconds: seconds), .delay(late: 0.20, mean: 105)), (.quiet(seconds: seconds), .ratio(1.3)),
      (.jittery(seconds: seconds), .netEQ(0.9)), (.steps(seconds: seconds), .ratio(1.1)), (.stalls(seconds: seconds), .ratio(1.5)),
    ]
    if !bench.isSmall { networks += Trace.recorded().map { ($0, .netEQ(0.9)) } }
    for (trace, asked) in networks where bench.wants(trace.name) {
      bench.progress("trade-off: \(trace.name)")
      let replay = try Replay(trace, encoding: .pcmu)
      let results = try replay.all(policy: policy, peers: true)
      rows(bench, trace, results, asked)
      guard !bench.isSmall else { continue }
      try pictures(bench, replay, results)
    }
    try repair(bench, policy: policy, seconds: seconds)
  }

  private static func rows(_ bench: Bench, _ trace: Trace, _ results: [ReplayResult], _ asked: Asked) {
    func row(_ what: String, unit: String, goal: BenchGoal? = nil, _ value: (ReplayResult) -> Double) {
      var figures = results.map { BenchFigure($0.name, value($0), hash: $0.hash) }
      let ours = figures.removeFirst()
      bench.add(BenchRow("\(trace.name): \(what)", unit: unit, ours: ours, peers: figures, goal: goal))
    }
    var (late, mean, ratio): (BenchGoal?, BenchGoal?, BenchGoal?)
    switch asked {
    case .delay(let share, let delay): (late, mean) = (.atMost(share), .atMost(delay))
    case .ratio(let bound): ratio = .atMost(bound)
    case .netEQ(let bound): ratio = .atMost(bound, of: .peer)
    }
    row("late", unit: "%", goal: late) { 100 * Double($0.late) / Double(max(1, $0.packets)) }
    row("concealed", unit: "%") { 100 * $0.concealed }
    row("mean delay", unit: "ms", goal: mean) { $0.meanDelay }
    row("above fastest, by the best fixed delay's", unit: "ratio", goal: ratio) { $0.ratioToFixed }
  }

  /// Audio made up on 3 % loss when packets carry the copy of the one before.
  private static func repair(_ bench: Bench, policy: DelayPolicy, seconds: Int) throws {
    guard bench.wants("Opus FEC") else { return }
    let trace = Trace.made("3 % loss", seconds: seconds, Impairments(loss: 0.03, jitter: 5), seed: 9)
    let results = try Replay(trace, encoding: .opus).all(policy: policy, peers: true)
    var figures = results.map { BenchFigure($0.name, 100 * $0.concealed) }
    let ours = figures.removeFirst()
    bench.add(
      BenchRow("3 % loss, Opus FEC: concealed", unit: "%", ours: ours, peers: figures, goal: .atMost(0.5), note: "by the receivers' counters"))
    var delays = results.map { BenchFigure($0.name, $0.meanDelay) }
    let delay = delays.removeFirst()
    bench.add(BenchRow("3 % loss, Opus FEC: mean delay", unit: "ms", ours: delay, peers: delays))
  }

  private static func pictures(_ bench: Bench, _ replay: Replay, _ results: [ReplayResult]) throws {
    let name = replay.trace.name
    var curves: [(String, [ReplayResult])] = []
    curves.append(("ours, other loss costs", try JitterOptions.policies.map { replay.run(try OurReceiver(.pcmu, policy: $0)) }))
    curves.append(
      ("NetEQ, minimum delays", [0, 40, 80, 120].compactMap { NetEQReceiver(.pcmu, minimumDelayMilliseconds: $0) }.map(replay.run)))
    curves.append(
      (
        "speexdsp, margins",
        [0, 20, 40, 80].compactMap { margin in
          guard let buffer = SpeexJitterBuffer(marginMilliseconds: margin) else { return nil }
          let receiver = PacketReceiver("speexdsp", buffer)
          return withoutStandardError { replay.run(receiver) }
        }
      ))
    curves.append(
      (
        "libre, minimum packets",
        ([1, 2, 3, 5, 8] as [UInt32]).compactMap { minimum in
          guard let buffer = LibreJitterBuffer(minimum: minimum) else { return nil }
          return replay.run(PacketReceiver("libre", buffer))
        }
      ))
    let words = name.lowercased().split { !$0.isASCII || !($0.isLetter || $0.isNumber) }
    let file = "jitter-" + words.joined(separator: "-")
    for (what, value) in [
      ("late", { 100 * Double($0.late) / Double(max(1, $0.packets)) }), ("missing", { max(0, 100 * $0.concealed - 100 * Double($0.lost) / Double(max(1, $0.packets))) }),
    ] as [(String, (ReplayResult) -> Double)] {
      let label = what == "late" ? "packets that came and were not played, %" : "audio missing beyond what was lost, %"
      var plot = Plot(
        "\(name): \(what)", x: .init("mean delay from send to play-out, ms"), y: .init(label, scale: .logarithmic, range: 0.01...20))
      if let ours = results.first { plot.add("ours", [(ours.meanDelay, value(ours))]) }
      for (curve, points) in curves where !points.isEmpty {
        plot.add(curve, points.map { ($0.meanDelay, value($0)) }.sorted { $0.0 < $1.0 })
      }
      plot.add("fixed, with hindsight", replay.fixedCurve())
      bench.save(
        plot.svg, as: "\(file)-\(what)",
        caption: "\(name): \(label) against mean delay. On the lower edge: 0.01 % or less. Left and low is better.")
    }
  }
}
