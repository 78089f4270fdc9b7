import Foundation
import Peers

/// A row of a stepped load: a new gateway with N calls.
struct LoadStep: Codable {
  var offered = 0
  var connected = 0
  /// Calls refused with 503 or `overload`, and the p99 time until the refusal.
  var refused = 0
  var refusedAfterMilliseconds = 0.0
  /// The smallest share of its packets that a call kept, in percent, both directions.
  var keptPercent = 0.0
  /// p99 of the lateness of the gateway's ticks (upper bound of the bucket), and of packets relative to the fastest of their
  /// call.
  var tickLatenessMilliseconds = 0.0
  var packetLatenessMilliseconds = 0.0
  var ownLatenessMilliseconds = 0.0
  var cpuPercentPerCall = 0.0
  /// While the calls were up, and before the first.
  var residentMegabytes = 0.0, residentBeforeMegabytes = 0.0
  /// Directions of sampled calls whose speech was scored, and the number of those with bad speech.
  var scored = 0, badlyHeard = 0
  /// Scores of those with bad speech.
  var badScores: [LoadResult.Score] = []
  /// The load could not keep its own time: the step shows nothing.
  var isVoid = false

  init(_ report: LoadReport) {
    let run = report.run
    (offered, connected, refused) = (run.asked, run.connected, run.refused)
    refusedAfterMilliseconds = run.refusedAfterP99
    keptPercent = report.worstKept * 100
    tickLatenessMilliseconds = report.gateway.tickLatenessP99
    packetLatenessMilliseconds = max(run.trunkToApp.latenessP99, run.appToTrunk.latenessP99)
    ownLatenessMilliseconds = run.ownLatenessP99
    cpuPercentPerCall = report.process?.cpuPercentPerCall ?? 0
    residentMegabytes = report.process?.residentLastMegabytes ?? 0
    residentBeforeMegabytes = report.process?.residentBeforeMegabytes ?? 0
    badScores = run.scores.filter { !$0.isGood }
    (scored, badlyHeard) = (run.scores.count, badScores.count)
    isVoid = run.isVoid
  }

  /// Why the gateway did not carry the step. It does if every call is connected and keeps ≥ 99.9 % of its packets, ticks are on
  /// time and all speech is good.
  var shortcomings: [String] {
    var out: [String] = []
    if connected < offered { out.append("\(offered - connected) not connected") }
    if keptPercent < 99.9 { out.append("packets lost") }
    if tickLatenessMilliseconds > 1 { out.append("ticks late") }
    if badlyHeard > 0 { out.append("\(badlyHeard) of \(scored) with bad speech") }
    return out
  }
  var isCarried: Bool { shortcomings.isEmpty }

  static let heading =
    "offered connected refused   kept %   ticks p99 ms  packets p99 ms  own p99 ms  cpu %/call  memory MB  good speech"
  func line(isOverload: Bool) -> String {
    let heard = scored > 0 ? "\(scored - badlyHeard)/\(scored)" : "–"
    let numbers = [
      String(format: "%7d %9d %7d %8.2f", offered, connected, refused, keptPercent),
      String(format: "%14.2f %15.1f %11.1f", tickLatenessMilliseconds, packetLatenessMilliseconds, ownLatenessMilliseconds),
      String(format: "%11.2f %10.1f", cpuPercentPerCall, residentMegabytes),
      String(repeating: " ", count: max(0, 11 - heard.count)) + heard,
    ]
    return numbers.joined(separator: " ") + "  " + verdict(isOverload: isOverload)
  }

  private func verdict(isOverload: Bool) -> String {
    if isVoid { return "VOID: the load could not keep time" }
    if isOverload { return "1.5 × as many" }
    return isCarried ? "carried" : "not carried: " + shortcomings.joined(separator: ", ")
  }
}

/// The result of a stepped load.
struct LoadSteps: Codable {
  /// Reads `20,40,60`; nil for other texts.
  static func numbers(_ text: String) -> [Int]? {
    let numbers = text.split(separator: ",", omittingEmptySubsequences: false).map { Int($0) ?? 0 }
    return numbers.allSatisfy { (1...10_000).contains($0) } ? numbers : nil
  }

  var steps: [LoadStep] = []
  /// The most calls that one core carried, and the CPU and memory of each.
  var callsPerCore = 0
  var cpuPercentPerCall = 0.0
  /// Slope of resident memory over the calls of all steps.
  var kilobytesPerCall = 0.0
  /// 1.5 × as many calls offered as were connected at most: the share that admitted calls kept, and how quickly the others were
  /// refused.
  var overload: LoadStep?
  /// The gateway had a core to itself.
  var hasOwnCore = false

  /// Half way between the most calls that were carried and the fewest that were too many, until the two are within 5 %; nil then,
  /// if either is missing, or after a void step.
  var between: Int? {
    guard let last = steps.last, !last.isVoid else { return nil }
    let carried = steps.filter { $0.isCarried && !$0.isVoid }.map(\.offered).max() ?? 0
    let failed = steps.filter { !$0.isCarried && !$0.isVoid && $0.offered > carried }.map(\.offered).min() ?? 0
    guard carried > 0, failed > carried + 1, Double(failed - carried) > 0.05 * Double(carried) else { return nil }
    return (carried + failed) / 2
  }

  mutating func conclude() {
    let best = steps.filter { $0.isCarried && !$0.isVoid }.max { $0.connected < $1.connected }
    callsPerCore = best?.connected ?? 0
    cpuPercentPerCall = best?.cpuPercentPerCall ?? 0
    let points = steps.filter { $0.residentMegabytes > 0 }.map { (Double($0.connected), $0.residentMegabytes * 1024) }
    let count = Double(points.count)
    guard count >= 2 else { return }
    let (x, y) = (points.reduce(0) { $0 + $1.0 } / count, points.reduce(0) { $0 + $1.1 } / count)
    let square = points.reduce(0) { $0 + ($1.0 - x) * ($1.0 - x) }
    if square > 0 { kilobytesPerCall = points.reduce(0) { $0 + ($1.0 - x) * ($1.1 - y) } / square }
  }

  var table: String {
    var lines = [
      "calls per core \(callsPerCore)\(hasOwnCore ? "" : " (gateway and load shared their cores)"), "
        + String(format: "%.2f %% of a core and %.0f KB each", cpuPercentPerCall, kilobytesPerCall)
    ]
    let voids = steps.count { $0.isVoid }
    if voids > 0 {
      lines.append("\(voids) of \(steps.count) steps are void, nothing follows from them: run it with less beside it")
    }
    if let overload {
      lines.append(
        String(
          format: "%d offered at once: %d admitted, the worst kept %.2f %%; %d refused, p99 after %.1f ms", overload.offered,
          overload.connected, overload.keptPercent, overload.refused, overload.refusedAfterMilliseconds))
    }
    return lines.joined(separator: "\n")
  }
}
