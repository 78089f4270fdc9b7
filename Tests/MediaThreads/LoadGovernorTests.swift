import Testing
import TrunklineBytes

@testable import MediaThreads

/// A core with calls on virtual time: what they cost, and how late their ticks are when there are too many.
private struct Core {
  /// Share of a core of one call at complexity 5.
  var callCost: Double
  /// Relayed calls cost the same at every ceiling.
  var isRelaying = false
  /// What other processes leave of the core.
  var left = 1.0
  var governor: LoadGovernor
  var verdict: LoadGovernor.Verdict
  /// Calls heard, and when those that are being set up will be.
  var running = 0
  var settingUp: [Int] = []
  var sample = 0
  var admitted = 0, refused = 0
  var worstDemand = 0.0
  var log: [LoadGovernor.Verdict] = []

  init(callCost: Double, assumed: Double, limit: Double = 0.85, complexity: Int = 5) {
    self.callCost = callCost
    governor = LoadGovernor(limit: limit, complexity: complexity, assumedCost: assumed)
    verdict = governor.initial
  }

  var demand: Double {
    let relative: [Int: Double] = [10: 1.7, 7: 1.3, 5: 1, 3: 0.85, 1: 0.5]
    return Double(running) * callCost * (isRelaying ? 1 : relative[verdict.ceiling] ?? 1)
  }

  mutating func offer(_ calls: Int) {
    for _ in 0..<calls {
      guard verdict.room > 0 else {
        refused += 1
        continue
      }
      verdict.room -= 1
      admitted += 1
      settingUp.append(sample + 4)
    }
  }

  /// 100 ms; `overdue`: ticks late by more than 10 ms, as a share, beyond those this core makes itself.
  mutating func step(strained: Double = 0, overdue: Double = 0) {
    sample += 1
    running += settingUp.count { $0 <= sample }
    settingUp.removeAll { $0 <= sample }
    let share = min(left, demand)
    worstDemand = max(worstDemand, demand)
    let ticks = running * 5
    let own = demand > left ? 1.0 : 0
    verdict = governor.evaluate(
      .init(
        elapsed: .milliseconds(100), used: .nanoseconds(Int64(share * 1e8)), ticks: ticks,
        strained: Int(Double(ticks) * max(own, strained, overdue)), overdue: Int(Double(ticks) * max(own, overdue)),
        running: running,
        reserved: running + settingUp.count))
    log.append(verdict)
  }

  mutating func end(_ calls: Int) { running -= min(running, calls) }
}

@Suite struct LoadGovernorTests {
  @Test(arguments: [(0.006, 0.006), (0.006, 0.002), (0.006, 0.02), (0.012, 0.006), (0.0005, 0.006)], [10, 100])
  func `one and a half times the capacity is offered: complexity falls, then calls are refused, and none breaks up`(
    cost: (true: Double, assumed: Double), perSecond: Int
  ) {
    var core = Core(callCost: cost.true, assumed: cost.assumed)
    let capacity = Int(0.85 / (cost.true * 0.5))
    let offered = capacity * 3 / 2
    var left = offered
    while left > 0 {
      if core.sample % (perSecond >= 10 ? 1 : 10) == 0 {
        let now = min(left, max(1, perSecond / 10))
        core.offer(now)
        left -= now
      }
      core.step()
    }
    for _ in 0..<100 { core.step() }
    // Never more than the core has, or admitted calls would break up.
    #expect(core.worstDemand < 1, "worst \(core.worstDemand)")
    #expect(core.refused > 0)
    #expect(core.admitted + core.refused == offered)
    // The room was used: the last state is near the limit and at the lowest ceiling.
    #expect(core.demand > 0.6, "\(core.demand) with \(core.running)")
    #expect(core.log.contains { $0.ceiling == 3 } && core.verdict.ceiling == 1)
    // No call was refused before complexity had fallen.
    for verdict in core.log where verdict.isRefusing { #expect(verdict.ceiling == 1) }
  }

  @Test func `relayed calls, which no ceiling makes cheaper, are refused at the limit as well`() {
    var core = Core(callCost: 0.002, assumed: 0.006)
    core.isRelaying = true
    for _ in 0..<600 {
      core.offer(2)
      core.step()
    }
    #expect(core.worstDemand < 0.95, "\(core.worstDemand)")
    #expect(core.running > 350 && core.refused > 0)
  }

  @Test func `a burst of calls that are not heard yet is seen before its audio is`() {
    var core = Core(callCost: 0.006, assumed: 0.006)
    core.offer(1_000)
    #expect(core.admitted == 141)
    core.step()
    // Still nothing heard: at the lowest ceiling there is room for more, and no more than that.
    core.offer(1_000)
    core.step()
    core.offer(1_000)
    #expect(core.admitted <= 260 && core.log.allSatisfy { $0.ceiling == 1 })
    for _ in 0..<50 { core.step() }
    #expect(core.worstDemand < 0.95)
  }

  @Test func `refusing has hysteresis: calls that come and go at the limit do not make it flap`() {
    var core = Core(callCost: 0.006, assumed: 0.006)
    var random = SplitMix64(seed: 5)
    for _ in 0..<3_000 {
      core.offer(3)
      if core.sample % 10 == 0 { core.end(Int(random.next() % 12)) }
      core.step()
    }
    let changes = zip(core.log, core.log.dropFirst()).count { $0.isRefusing != $1.isRefusing }
    let ceilings = zip(core.log, core.log.dropFirst()).count { $0.ceiling != $1.ceiling }
    #expect(core.worstDemand < 0.95)
    // 300 s: without hysteresis it would change several times a second.
    #expect(changes < 120, "\(changes)")
    #expect(ceilings < 6, "\(ceilings)")
  }

  @Test func `when calls have gone, room comes back at once and complexity step by step`() {
    var core = Core(callCost: 0.006, assumed: 0.006)
    for _ in 0..<400 {
      core.offer(1)
      core.step()
    }
    #expect(core.verdict.isRefusing && core.verdict.ceiling == 1)
    core.end(core.running * 4 / 5)
    for _ in 0..<30 { core.step() }
    #expect(!core.verdict.isRefusing && core.verdict.room > 50 && core.verdict.ceiling == 1)
    for _ in 0..<60 { core.step() }
    #expect(core.verdict.ceiling == 3)
    for _ in 0..<60 { core.step() }
    #expect(core.verdict.ceiling == 5)
    core.end(core.running)
    core.step()
    let start = core.governor.initial
    #expect(core.verdict == start)
  }

  @Test func `late ticks lower complexity, then refuse, also when the CPU share looks harmless`() {
    var core = Core(callCost: 0.006, assumed: 0.006)
    core.offer(90)
    for _ in 0..<20 { core.step() }
    #expect(core.verdict == .init(ceiling: 5, room: core.verdict.room, isRefusing: false) && core.verdict.room > 20)
    for _ in 0..<12 { core.step(strained: 0.2) }
    #expect(core.verdict.ceiling == 3 && !core.verdict.isRefusing)
    for _ in 0..<5 { core.step(overdue: 0.2) }
    #expect(core.verdict == .init(ceiling: 1, room: 0, isRefusing: true))
    // A second without lateness, counted from when it has left the window.
    for _ in 0..<22 { core.step() }
    #expect(!core.verdict.isRefusing && core.verdict.room > 0)
  }

  @Test func `a busy neighbour makes the ticks of few calls late: that is no reason to refuse any`() {
    var core = Core(callCost: 0.006, assumed: 0.006)
    core.offer(5)
    for _ in 0..<50 { core.step(overdue: 0.5) }
    #expect(core.verdict.ceiling == 5 && core.verdict.room > 50)
  }

  @Test func `a neighbour that takes half of the core is met by taking half of the calls`() {
    var core = Core(callCost: 0.006, assumed: 0.006)
    core.left = 0.5
    for _ in 0..<600 {
      core.offer(1)
      core.step()
    }
    #expect(core.verdict.isRefusing && core.demand < 0.55, "\(core.demand)")
  }

  @Test func `an idle thread takes one call however small its limit`() {
    let governor = LoadGovernor(limit: 0.001, complexity: 5, assumedCost: 0.02)
    #expect(governor.initial == .init(ceiling: 5, room: 1, isRefusing: false))
  }
}
