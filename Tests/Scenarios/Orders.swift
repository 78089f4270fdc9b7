import Testing
import TrunklineBytes

/// The orders that were played, and which of them broke an invariant.
struct Orders {
  private(set) var count = 0
  private(set) var ends: [String: Int] = [:]
  private(set) var won = 0
  /// Diverted calls; devices that received a `call.update`.
  private(set) var diverted = 0
  private(set) var updated = 0
  private var trunk: Set<String> = []
  private var problems: [String] = []

  /// Plays all orders of `steps`, to a depth; every prefix is played to an end, because the devices may do nothing more. A step
  /// that would do nothing is left out: the order without it is played too.
  mutating func explore(
    _ play: Play, _ steps: [Step], _ path: [Step] = [], gap: Duration, resuming: Bool, depth: Int = .max, afterEnd: Int = 1
  ) {
    look(play, path)
    let left = play.isOver ? afterEnd - 1 : afterEnd
    if left < 0 || path.count >= depth { return }
    for step in steps where play.isPossible(step) {
      var next = play
      next.apply(step, resuming: resuming)
      next.pass(gap)
      explore(next, steps.filter { $0 != step }, path + [step], gap: gap, resuming: resuming, depth: depth, afterEnd: left)
    }
  }

  mutating func look(_ play: Play, _ path: [Step], _ name: String = "") {
    count += 1
    let broken = play.broken()
    if !broken.isEmpty, problems.count < 4 { problems.append("\(name)\(path.map { String(describing: $0) }): \(broken)") }
    if play.devices.contains(where: \.hasWon) { won += 1 }
    if play.devices.contains(where: { $0.received.contains("call.update") }) { updated += 1 }
    if play.devices.contains(where: { $0.user == "bob" && $0.knows }) { diverted += 1 }
    trunk.formUnion(play.trunk)
    if let record = play.records.first { ends[record.end.reason.rawValue, default: 0] += 1 }
  }

  func expect(orders: Int, won: Int, reasons: Set<String>, _ location: SourceLocation = #_sourceLocation) {
    #expect(problems.isEmpty, "\(problems.joined(separator: "\n"))", sourceLocation: location)
    #expect(count >= orders && self.won >= won, "too little was played: \(self)", sourceLocation: location)
    #expect(reasons.isSubset(of: ends.keys), "no order ends so: \(ends)", sourceLocation: location)
  }

  /// Expects that the trunk received each of these in some order.
  func expect(_ messages: Set<String>, _ location: SourceLocation = #_sourceLocation) {
    #expect(messages.isSubset(of: trunk), "never heard: \(messages.subtracting(trunk))", sourceLocation: location)
  }
}
