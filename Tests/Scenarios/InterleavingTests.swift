import Testing
import TrunklineBytes

/// Every order of what can happen to a parked call, through the real call and session machines, with what must hold checked
/// after each. A step that would do nothing is left out: the order without it is played too.
@Suite struct InterleavingTests {
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
    var orders = Orders()
    let play = Play(["phone"], connected: isConnected ? ["phone"] : [])
    orders.explore(play, Self.oneDevice, gap: .milliseconds(gap), resuming: resuming)
    orders.expect(orders: 1_500, won: 1_000, reasons: Self.ends)
  }

  /// What a device may do besides, and what a push may come to.
  private static let others: [Step] = [.pushUnsure(0), .pushLost(0), .unavailable(0), .reject(0), .rejectHTTP(0)]

  @Test(arguments: [false, true])
  func `INV: a push without an answer, a device that is unavailable or rejects, in every order with the rest`(isConnected: Bool) {
    var orders = Orders()
    let steps = Self.others + [.quit(0), .push(0), .offer(0), .tap(0), .cancel, .timeout, .drop(0), .back(0)]
    let play = Play(["phone"], connected: isConnected ? ["phone"] : [])
    orders.explore(play, steps, gap: .milliseconds(50), resuming: false, depth: 5)
    orders.expect(orders: 400, won: 100, reasons: ["callerCancelled", "unanswered", "declined", "dnd"])
  }

  private static func steps(_ device: Int) -> [Step] {
    [.push(device), .offer(device), .tap(device), .ready(device), .fail(device), .drop(device), .back(device)]
  }

  @Test(arguments: [[], ["phone"], ["phone", "tablet"]] as [Set<String>])
  func `INV: the first steps of two devices in every order`(connected: Set<String>) {
    var orders = Orders()
    orders.explore(
      Play(["phone", "tablet"], connected: connected), Self.steps(0) + Self.steps(1) + [.cancel, .timeout],
      gap: .milliseconds(50),
      resuming: connected.count == 1, depth: 3)
    orders.expect(orders: 150, won: 5, reasons: ["callerCancelled", "unanswered"])
  }

  @Test func `INV: two devices, everything that can happen to each, in random orders to the end`() {
    var orders = Orders()
    for seed in 1...600 as ClosedRange<UInt64> {
      let (play, path) = walk(seed)
      orders.look(play, path, "seed \(seed): ")
    }
    orders.expect(orders: 600, won: 100, reasons: Self.ends.union(["declined", "dnd"]))
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
