public import TrunklineBytes
public import TrunklinePhoneLog

/// The findings of a trace by rule.
public struct TraceVerdict: Sendable {
  public typealias Rule = SystemMachine.Rule

  /// A contradiction of a rule.
  public struct Finding: Sendable {
    public enum Side: String, Sendable {
      /// The app broke the rule.
      case app
      /// The system's behaviour contradicts the rule: an uncertainty is settled.
      case system
    }
    public var rule: Rule
    public var side: Side
    public var position: Position
    public var text: String
  }

  /// A line of the file; `time` is the line's own, since its trace began.
  public struct Position: Sendable, Equatable {
    public var line: Int
    public var time: Instant
  }

  /// Durations measured in the trace, to compare with a rule's number.
  public struct Measurement: Sendable {
    public var rule: Rule
    public var what: String
    public var count: Int
    public var least: Duration
    public var most: Duration
  }

  public internal(set) var findings: [Finding] = []
  /// Contradictions beyond `limit`, which are only counted.
  public internal(set) var furtherFindings = 0
  static let limit = 1_000
  /// The first line that confirms the rule. Other lines may contradict it.
  public internal(set) var seen: [Rule: Int] = [:]
  public internal(set) var measurements: [Measurement] = []
  public internal(set) var headers: [TraceHeader] = []
  public internal(set) var lines = 0
  /// Total of all traces of the file.
  public internal(set) var duration = Duration.zero
  /// Where reading stopped, and what to do; the lines before it are judged.
  public internal(set) var problem: TraceReader.Problem?

  public var contradicted: Set<Rule> { Set(findings.map(\.rule)) }
  public var confirmed: [Rule] { Rule.allCases.filter { seen[$0] != nil && !contradicted.contains($0) } }
  public var silent: [Rule] { Rule.allCases.filter { seen[$0] == nil && !contradicted.contains($0) } }

  /// 0: no rule is contradicted. 1: a rule is contradicted. 2: the trace cannot be read to its end, and the readable part
  /// contradicts no rule.
  public var exitCode: Int32 { findings.isEmpty ? problem == nil ? 0 : 2 : 1 }

  mutating func found(_ finding: Finding) {
    guard findings.count < Self.limit else { return furtherFindings += 1 }
    findings.append(finding)
  }

  mutating func measure(_ rule: Rule, _ what: String, _ time: Duration) {
    guard let index = measurements.firstIndex(where: { $0.rule == rule && $0.what == what }) else {
      return measurements.append(Measurement(rule: rule, what: what, count: 1, least: time, most: time))
    }
    measurements[index].count += 1
    measurements[index].least = min(measurements[index].least, time)
    measurements[index].most = max(measurements[index].most, time)
  }
}

extension TraceVerdict {
  private static let shown = 5

  /// For a person: the rules that the trace contradicts (with line, time and sentence), confirms, measures, and does not show.
  public func text(name: String) -> String {
    var out = [summary(name)]
    if let problem { out.append("\(name) cannot be read to its end. \(problem)") }
    for rule in Rule.allCases where contradicted.contains(rule) {
      out.append("\(Self.padded(rule)) contradicted: \(rule.title)")
      let own = findings.filter { $0.rule == rule }
      for finding in own.prefix(Self.shown) {
        let who = finding.side == .app ? "the app" : "the system"
        out.append("       line \(finding.position.line), \(LogLine.text(finding.position.time)) s, by \(who): \(finding.text)")
      }
      if own.count > Self.shown { out.append("       and \(own.count - Self.shown) times more") }
    }
    if furtherFindings > 0 { out.append("\(furtherFindings) contradictions more") }
    for rule in confirmed {
      out.append("\(Self.padded(rule)) confirmed: \(rule.title) (first at line \(seen[rule] ?? 0)\(settled(rule)))")
    }
    for measurement in measurements.sorted(by: { Self.order($0.rule) < Self.order($1.rule) }) {
      out.append("\(Self.padded(measurement.rule)) measured: \(Self.text(measurement))")
    }
    let nothing = silent.filter { $0.unseen == nil }
    if !nothing.isEmpty { out.append("not observed: " + nothing.map(\.rawValue).joined(separator: " ")) }
    out += silent.compactMap { rule in rule.unseen.map { "\(Self.padded(rule)) cannot be seen: \($0)" } }
    return out.joined(separator: "\n")
  }

  private func summary(_ name: String) -> String {
    let writers = Set(headers.compactMap { $0.writer?.rawValue }).sorted().joined(separator: ", ")
    let systems = Set(headers.compactMap(\.os)).sorted().joined(separator: ", ")
    let dropped = headers.reduce(0) { $0 &+ $1.dropped }
    return "\(name): \(lines) lines, \(headers.count) \(headers.count == 1 ? "trace" : "traces"), "
      + "\(LogLine.text(.zero + duration)) s" + (writers.isEmpty ? "" : ", by \(writers)")
      + (systems.isEmpty ? "" : ", \(systems)") + (dropped > 0 ? "; \(dropped) lines before it are not there" : "")
  }

  /// The open question (`?` in the table) that a finding settles.
  private func settled(_ rule: Rule) -> String {
    guard rule.remainingUncertainty == nil, let uncertainty = rule.uncertainty else { return "" }
    return "; this was an open question: \(uncertainty)"
  }
  private static func order(_ rule: Rule) -> Int { Rule.allCases.firstIndex(of: rule) ?? 0 }
  private static func padded(_ rule: Rule) -> String {
    rule.rawValue + String(repeating: " ", count: max(0, 6 - rule.rawValue.count))
  }
  private static func text(_ measurement: Measurement) -> String {
    let (least, most) = (LogLine.text(.zero + measurement.least), LogLine.text(.zero + measurement.most))
    return "\(measurement.what), \(measurement.count == 1 ? "once" : "\(measurement.count) times"), "
      + (least == most ? "\(least) s" : "\(least) to \(most) s")
  }
}
