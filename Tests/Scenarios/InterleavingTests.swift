import Bytes
import Testing

/// Every order of what can happen to a parked call, through the real call and session machines, with what must hold checked
/// after each. A step that would do nothing is left out: the order without it is played too.
@Suite struct InterleavingTests {
  struct Seen {
    var orders = 0
    var ends: [String: Int] = [:]
    var won = 0
    var problems: [String] = []
  }

  /// All orders of `steps`, to a depth; every prefix is an end of its own, because the devices may do nothing more.
  private func explore(
    _ play: Play, _ steps: [Step], _ path: [Step] = [], gap: Duration, resuming: Bool, depth: Int = .max, afterEnd: Int = 1,
    _ seen: inout Seen
  ) {
    look(play, path, &seen)
    let left = play.isOver ? afterEnd - 1 : afterEnd
    if left < 0 || path.count >= depth { return }
    for step in steps where play.isPossible(step) {
      var next = play
      next.apply(step, resuming: resuming)
      next.pass(gap)
      explore(
        next, steps.filter { $0 != step }, path + [step], gap: gap, resuming: resuming, depth: depth, afterEnd: left, &seen)
    }
  }

  private func look(_ play: Play, _ path: [Step], _ seen: inout Seen) {
    seen.orders += 1
    let problems = play.broken()
    if !problems.isEmpty, seen.problems.count < 4 { seen.problems.append("\(path): \(problems)") }
    if play.devices.contains(where: \.hasWon) { seen.won += 1 }
    if let record = play.records.first { seen.ends[record.end.reason.rawValue, default: 0] += 1 }
  }

  private func expectAll(_ seen: Seen, orders: Int, won: Int, reasons: Set<String>, _ location: SourceLocation = #_sourceLocation)
  {
    #expect(seen.problems.isEmpty, "\(seen.problems.joined(separator: "\n"))", sourceLocation: location)
    #expect(seen.orders >= orders && seen.won >= won, "too little was played: \(seen)", sourceLocation: location)
    #expect(reasons.isSubset(of: seen.ends.keys), "no order ends so: \(seen.ends)", sourceLocation: location)
  }

  private static let oneDevice: [Step] = [
    .push(0), .offer(0), .tap(0), .cancel, .ready(0), .fail(0), .timeout, .drop(0), .back(0),
  ]
  private static let ends: Set<String> = ["callerCancelled", "mediaTimeout", "mediaFailed", "unanswered", "remoteHangup"]

  /// Where the device is at first, how long a step takes (with 2 s between them the timers of the offer run out), and how it
  /// comes back.
  @Test(arguments: [(false, 0, false), (false, 2_000, true), (true, 0, true), (true, 2_000, false)])
  func `INV: every order of push, offer, tap, cancel, ready, fail, timeout and drop for one device`(
    isConnected: Bool, gap: Int, resuming: Bool
  ) {
    var seen = Seen()
    let play = Play(["phone"], connected: isConnected ? ["phone"] : [])
    explore(play, Self.oneDevice, gap: .milliseconds(gap), resuming: resuming, &seen)
    expectAll(seen, orders: 1_500, won: 1_000, reasons: Self.ends)
  }

  /// What a device may do besides, and what a push may come to.
  private static let others: [Step] = [.pushUnsure(0), .pushLost(0), .unavailable(0), .reject(0), .rejectHTTP(0)]

  @Test(arguments: [false, true])
  func `INV: a push without an answer, a device that is unavailable or rejects, in every order with the rest`(isConnected: Bool) {
    var seen = Seen()
    let steps = Self.others + [.quit(0), .push(0), .offer(0), .tap(0), .cancel, .timeout, .drop(0), .back(0)]
    let play = Play(["phone"], connected: isConnected ? ["phone"] : [])
    explore(play, steps, gap: .milliseconds(50), resuming: false, depth: 5, &seen)
    expectAll(seen, orders: 400, won: 100, reasons: ["callerCancelled", "unanswered", "declined", "dnd"])
  }

  private static func steps(_ device: Int) -> [Step] {
    [.push(device), .offer(device), .tap(device), .ready(device), .fail(device), .drop(device), .back(device)]
  }

  @Test(arguments: [[], ["phone"], ["phone", "tablet"]] as [Set<String>])
  func `INV: the first steps of two devices in every order`(connected: Set<String>) {
    var seen = Seen()
    explore(
      Play(["phone", "tablet"], connected: connected), Self.steps(0) + Self.steps(1) + [.cancel, .timeout],
      gap: .milliseconds(50),
      resuming: connected.count == 1, depth: 3, &seen)
    expectAll(seen, orders: 150, won: 5, reasons: ["callerCancelled", "unanswered"])
  }

  @Test func `INV: two devices, everything that can happen to each, in random orders to the end`() {
    var seen = Seen()
    for seed in 1...600 as ClosedRange<UInt64> {
      let problems = seen.problems.count
      let (play, path) = walk(seed)
      look(play, path, &seen)
      if seen.problems.count > problems { seen.problems[problems] = "seed \(seed): " + seen.problems[problems] }
    }
    expectAll(seen, orders: 600, won: 100, reasons: Self.ends.union(["declined", "dnd"]))
  }

  private func walk(_ seed: UInt64) -> (Play, [Step]) {
    var random = SplitMix64(seed: seed)
    var connected: Set<String> = []
    for name in ["phone", "tablet"] where random.next() % 2 == 0 { connected.insert(name) }
    var play = Play(["phone", "tablet"], connected: connected, seed: seed)
    var path: [Step] = []
    var left = Self.steps(0) + Self.steps(1) + Self.others
    left += [.quit(0), .quit(1), .pushUnsure(1), .pushLost(1), .unavailable(1), .reject(1), .rejectHTTP(1)]
    if random.next() % 2 == 0 { left += [.cancel, .timeout] }
    while true {
      let possible = left.filter { play.isPossible($0) }
      guard !possible.isEmpty else { return (play, path) }
      let step = possible[Int(random.next() % UInt64(possible.count))]
      left.removeAll { $0 == step }
      path.append(step)
      play.apply(step, resuming: random.next() % 2 == 0)
      play.pass(.milliseconds([0, 20, 700, 2_000, 9_000][Int(random.next() % 5)]))
    }
  }
}
