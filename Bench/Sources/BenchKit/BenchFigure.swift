/// The result of one implementation in a row: ours, a peer's, or the limit (the cost of the parts alone).
public struct BenchFigure: Sendable, Codable {
  /// "ours", or the peer's name with its version where known.
  public var name: String
  /// In the unit of the row.
  public var value: Double
  /// CPU time of one operation.
  public var nanoseconds: Double?
  /// Of one operation, counted by callgrind; nil where valgrind is not installed or the run is a small one.
  public var instructions: Double?
  /// Heap allocations of one operation.
  public var mallocs: Double?
  /// A hexadecimal hash of what the operations produced. It is the same on every machine; another hash means other results.
  public var hash: String?
  /// The 95 % interval of `value`, where that is a mean over voices or calls.
  public var interval: Interval?

  public init(
    _ name: String, _ value: Double, nanoseconds: Double? = nil, instructions: Double? = nil, mallocs: Double? = nil,
    hash: UInt64? = nil, interval: Interval? = nil
  ) {
    self.name = name
    self.value = value
    self.nanoseconds = nanoseconds
    self.instructions = instructions
    self.mallocs = mallocs
    self.hash = hash.map { String($0, radix: 16) }
    self.interval = interval
  }
}

/// The goal of a row: a bound on our value, or on its ratio to another value.
public struct BenchGoal: Sendable, Codable {
  public enum Subject: String, Sendable, Codable { case value, peer, limit }
  public var subject: Subject
  /// At most the bound if true, at least it otherwise.
  public var isUpper: Bool
  public var bound: Double

  public static func atMost(_ bound: Double, of subject: Subject = .value) -> BenchGoal {
    BenchGoal(subject: subject, isUpper: true, bound: bound)
  }
  public static func atLeast(_ bound: Double, of subject: Subject = .value) -> BenchGoal {
    BenchGoal(subject: subject, isUpper: false, bound: bound)
  }
}

/// One row of a bench's result: ours, the peers and the limit, all from the same run.
public struct BenchRow: Sendable, Codable {
  public var name: String
  /// The unit of every figure's value: "ns", "calls/core", "ms", "%".
  public var unit: String
  public var ours: BenchFigure
  /// The ratio is taken to the first peer.
  public var peers: [BenchFigure]
  public var limit: BenchFigure?
  public var goal: BenchGoal?
  /// Ours less the first peer's, pair by pair (the same voice on the same losses), with its 95 % interval.
  public var lead: Interval?
  public var note: String

  public init(
    _ name: String, unit: String, ours: BenchFigure, peers: [BenchFigure] = [], limit: BenchFigure? = nil, goal: BenchGoal? = nil,
    lead: Interval? = nil, note: String = ""
  ) {
    self.name = name
    self.unit = unit
    self.ours = ours
    self.peers = peers
    self.limit = limit
    self.goal = goal
    self.lead = lead
    self.note = note
  }

  /// Ours divided by the limit if the goal is about the limit, else by the first peer, else by the limit.
  public var ratio: (to: String, value: Double)? {
    let other = goal?.subject == .limit ? limit ?? peers.first : peers.first ?? limit
    guard let other, other.value != 0 else { return nil }
    return (other.name, ours.value / other.value)
  }

  /// Whether the goal is reached; nil without a goal, or without the figure that the goal compares with.
  public var isMet: Bool? {
    guard let goal else { return nil }
    let other: BenchFigure?
    switch goal.subject {
    case .value: return goal.isUpper ? ours.value <= goal.bound : ours.value >= goal.bound
    case .peer: other = peers.first
    case .limit: other = limit
    }
    guard let other, other.value != 0 else { return nil }
    // As good as a peer: the measurement shows no difference.
    if let lead, goal.subject == .peer, goal.bound == 1, lead.text == Interval.equal { return true }
    let ratio = ours.value / other.value
    return goal.isUpper ? ratio <= goal.bound : ratio >= goal.bound
  }
}
