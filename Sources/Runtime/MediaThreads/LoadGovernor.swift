import TrunklineBytes

/// The load limit of a media thread. It gets the thread's share of a core and the lateness of its ticks ten times a second, and
/// returns a ceiling for the encoders' complexity and the number of calls that may still be reserved. No clock, no I/O.
///
/// The forecast is the share in use plus the cost of every reserved call without audio yet, so that a burst of INVITEs counts
/// before its audio does. `limit` below is the share a thread may fill (`MediaPlaneConfiguration.loadLimit`).
///
/// | state | seen | after |
/// |---|---|---|
/// | any ceiling but the lowest | forecast > 0.7 limit | next lower ceiling, at once |
/// | any ceiling but the lowest | 5 % of the ticks of a second late by > 2 ms | next lower ceiling, at most one a second |
/// | lowered | forecast at the next higher ceiling < 0.5 limit for 5 s | next higher ceiling |
/// | admitting, lowest ceiling | one more call passes the limit | refusing |
/// | admitting | 5 % of a second's ticks late by > 10 ms, or ticks left out | lowest ceiling, refusing |
/// | refusing | forecast < 0.9 limit and no such lateness for 1 s | admitting |
/// | any | no call left | as at the start |
///
/// Lateness of a thread that uses less than a quarter of its limit is caused by the machine, not the calls: it changes nothing.
struct LoadGovernor {
  /// The counts since the last sample.
  struct Sample {
    /// Time that passed and CPU time the thread used.
    var elapsed: Duration
    var used: Duration
    var ticks = 0
    /// Of those, late by more than `Limits.tickStrain` and by more than `Limits.tickOverload`.
    var strained = 0
    var overdue = 0
    var leftOut = 0
    /// Calls with audio, and all calls including reserved ones.
    var running: Int
    var reserved: Int
  }

  struct Verdict: Equatable {
    /// The highest complexity for any encoder of the thread.
    var ceiling: Int
    /// Further calls that may be reserved until the next verdict.
    var room: Int
    var isRefusing: Bool
  }

  /// The cost of a call at a ceiling, relative to complexity 5: encoder, decoder and the rest; `bench-media` measures it.
  private static let steps: [(ceiling: Int, cost: Double)] = [(10, 1.68), (7, 1.32), (5, 1.00), (3, 0.87), (1, 0.55)]

  private let steps: [(ceiling: Int, cost: Double)]
  private let limit: Double
  /// Share of a core that a call costs at the highest ceiling, as assumed before any has audio.
  private let prior: Double
  private var step = 0
  private var busy = 0.0
  private var isRefusing = false
  private var calm: Duration = .zero
  private var sinceLateness: Duration = .seconds(1)
  private var sinceStep: Duration = .seconds(1)
  private var recent = Window()

  /// - Parameters:
  ///   - limit: share of a core, 0…1.
  ///   - complexity: the encoders' configured complexity.
  ///   - assumedCost: share of a core that a call costs at that complexity, until calls have been measured.
  init(limit: Double, complexity: Int, assumedCost: Double) {
    let cost = Self.steps.last { $0.ceiling >= complexity }?.cost ?? 1
    steps = [(complexity, cost)] + Self.steps.filter { $0.ceiling < complexity }
    self.limit = limit
    prior = max(Limits.leastCallCost, min(Limits.mostCallCost, assumedCost))
  }

  /// Share of a core in use, smoothed.
  var load: Double { busy }

  /// Before the first sample. An idle thread always accepts one call.
  var initial: Verdict { Verdict(ceiling: steps[step].ceiling, room: max(1, Int(limit / prior)), isRefusing: false) }

  /// Evaluates a sample and decides.
  mutating func evaluate(_ sample: Sample) -> Verdict {
    guard sample.reserved > 0 else {
      self = LoadGovernor(copying: self)
      return initial
    }
    measure(sample)
    let isLate = recent.isOverdue(busy, limit: limit)
    let isStrained = recent.isStrained(busy, limit: limit)
    let pending = max(0, sample.reserved - sample.running)
    var cost = costOfCall(sample.running)
    var forecast = busy + Double(pending) * cost
    while step + 1 < steps.count, forecast > Limits.lowerAt * limit || isLate || (isStrained && sinceStep >= .seconds(1)) {
      lower(&forecast, &cost)
    }
    raise(forecast, isStrained)
    sinceLateness = isLate ? .zero : sinceLateness + sample.elapsed
    let isFull = step + 1 == steps.count && forecast + cost > limit
    if isFull || isLate {
      isRefusing = true
    } else if isRefusing, forecast + cost < Limits.admitAgainAt * limit, sinceLateness >= .seconds(1) {
      isRefusing = false
    }
    let room = isRefusing ? 0 : max(0, Int((limit - forecast) / cost))
    return Verdict(ceiling: steps[step].ceiling, room: room, isRefusing: isRefusing)
  }

  private mutating func measure(_ sample: Sample) {
    let share = Double(sample.used.nanoseconds) / Double(max(1, sample.elapsed.nanoseconds))
    // Quick to rise, slow to fall: a pause in speech is not room for a call. A short sample has little weight.
    let weight = min(1, sample.elapsed.inSeconds / Limits.loadInterval.inSeconds)
    busy += (share - busy) * weight * (share > busy ? 0.5 : 0.1)
    sinceStep = sinceStep + sample.elapsed
    recent.add(sample)
    calm = calm + sample.elapsed
  }

  /// The mean of the calls with audio; the assumption counts like some further calls, so that the first does not decide alone.
  private func costOfCall(_ running: Int) -> Double {
    let assumed = prior * steps[step].cost / steps[0].cost
    let weight = Limits.assumedCalls
    let mean = (busy + weight * assumed) / (Double(running) + weight)
    return max(Limits.leastCallCost, min(Limits.mostCallCost, mean))
  }

  /// The share in use is assumed to fall with the ceiling; the next samples show whether it did.
  private mutating func lower(_ forecast: inout Double, _ cost: inout Double) {
    let ratio = steps[step + 1].cost / steps[step].cost
    step += 1
    busy = busy * ratio
    forecast = forecast * ratio
    cost = cost * ratio
    sinceStep = .zero
    calm = .zero
  }

  private mutating func raise(_ forecast: Double, _ isStrained: Bool) {
    guard step > 0 else { return }
    let higher = forecast * steps[step - 1].cost / steps[step].cost
    if higher >= Limits.raiseBelow * limit || isStrained { calm = .zero }
    guard calm >= Limits.calmBeforeRaise else { return }
    step -= 1
    sinceStep = .zero
    calm = .zero
  }

  private init(copying other: LoadGovernor) { (steps, limit, prior) = (other.steps, other.limit, other.prior) }
}

/// The ticks of the last second.
private struct Window {
  private struct Counts {
    var ticks = 0, strained = 0, overdue = 0, leftOut = 0
  }
  private var ring = [Counts](repeating: Counts(), count: Limits.loadSamplesPerSecond)
  private var next = 0
  private var sum = Counts()

  mutating func add(_ sample: LoadGovernor.Sample) {
    let old = ring[next]
    let new = Counts(ticks: sample.ticks, strained: sample.strained, overdue: sample.overdue, leftOut: sample.leftOut)
    ring[next] = new
    next = (next + 1) % ring.count
    sum.ticks += new.ticks - old.ticks
    sum.strained += new.strained - old.strained
    sum.overdue += new.overdue - old.overdue
    sum.leftOut += new.leftOut - old.leftOut
  }

  func isStrained(_ busy: Double, limit: Double) -> Bool {
    busy >= Limits.lateByOwnFault * limit && sum.strained * 20 > sum.ticks
  }
  func isOverdue(_ busy: Double, limit: Double) -> Bool {
    busy >= Limits.lateByOwnFault * limit && (sum.overdue * 20 > sum.ticks || sum.leftOut > 0)
  }
}
