/// Rows as aligned text and as JSON.
enum BenchTable {
  private static let nameWidth = 66

  static var heading: String {
    left("row", nameWidth) + right("value", 12) + "  " + left("unit", 12) + right("ratio", 8) + right("ns", 11)
      + right("instructions", 14) + right("mallocs", 9) + "  " + left("result", 18) + "goal, note"
  }

  static func lines(_ row: BenchRow) -> [String] {
    var lines = [line(row.name, row.ours, row, ratio: row.ratio.map { fixed($0.value, 3) } ?? "") + remark(row)]
    for peer in row.peers { lines.append(line("  " + peer.name, peer, row, ratio: "")) }
    if let limit = row.limit { lines.append(line("  limit: " + limit.name, limit, row, ratio: "")) }
    return lines
  }

  private static func line(_ name: String, _ figure: BenchFigure, _ row: BenchRow, ratio: String) -> String {
    left(name, nameWidth)
      + right(number(figure.value, of: row.unit) + (figure.interval.map { " ± " + fixed($0.half, 2) } ?? ""), 12) + "  "
      + left(row.unit, 12) + right(ratio, 8)
      + right(figure.nanoseconds.map { fixed($0, 1) } ?? "", 11) + right(figure.instructions.map { fixed($0, 0) } ?? "", 14)
      + right(figure.mallocs.map { fixed($0, 3) } ?? "", 9) + "  " + left(figure.hash ?? "", 18)
  }

  private static func remark(_ row: BenchRow) -> String {
    var parts: [String] = []
    if let goal = row.goal { parts.append(goal.text + (row.isMet.map { $0 ? ", met" : ", MISSED" } ?? ", not compared")) }
    if let lead = row.lead { parts.append(lead.text) }
    if !row.note.isEmpty { parts.append(row.note) }
    return parts.joined(separator: "; ")
  }

  /// As many digits as say something: calls are whole.
  static func number(_ value: Double, of unit: String = "") -> String {
    if unit.hasPrefix("calls"), abs(value) >= 10 { return fixed(value, 0) }
    return switch abs(value) {
    case 100_000...: fixed(value, 0)
    case 100...: fixed(value, 1)
    case 1...: fixed(value, 2)
    default: fixed(value, 3)
    }
  }
  static func left(_ text: String, _ width: Int) -> String { text + String(repeating: " ", count: max(0, width - text.count)) }
  static func right(_ text: String, _ width: Int) -> String { String(repeating: " ", count: max(0, width - text.count)) + text }
}

extension BenchGoal {
  public var text: String {
    let bound = BenchTable.number(self.bound)
    let sign = isUpper ? "≤" : "≥"
    return subject == .value ? "\(sign) \(bound)" : "\(sign) \(bound) × \(subject.rawValue)"
  }
}

extension BenchRow {
  /// One object on one line; the figures of ours also stand at the top level.
  func json(bench: String) -> String {
    var fields = [
      #""bench":\#(jsonQuoted(bench))"#, #""row":\#(jsonQuoted(name))"#, #""unit":\#(jsonQuoted(unit))"#,
      #""ours":\#(fixed(ours.value, 6))"#,
    ]
    if let peer = peers.first { fields += [#""peer":\#(fixed(peer.value, 6))"#, #""peerName":\#(jsonQuoted(peer.name))"#] }
    if let limit { fields += [#""limit":\#(fixed(limit.value, 6))"#, #""limitName":\#(jsonQuoted(limit.name))"#] }
    if let ratio { fields += [#""ratio":\#(fixed(ratio.value, 6))"#, #""ratioTo":\#(jsonQuoted(ratio.to))"#] }
    if let lead { fields.append(#""lead":\#(jsonQuoted(lead.text))"#) }
    if let goal { fields.append(#""goal":\#(jsonQuoted(goal.text))"#) }
    if let isMet { fields.append(#""met":\#(isMet)"#) }
    fields += ours.json
    let others = (peers + (limit.map { [$0] } ?? [])).map { figure in
      #"{"name":\#(jsonQuoted(figure.name)),"value":\#(fixed(figure.value, 6))"#
        + figure.json.map { "," + $0 }.joined() + "}"
    }
    fields.append(#""others":[\#(others.joined(separator: ","))]"#)
    fields.append(#""note":\#(jsonQuoted(note))"#)
    return "{" + fields.joined(separator: ",") + "}"
  }
}

extension BenchFigure {
  fileprivate var json: [String] {
    var fields: [String] = []
    if let nanoseconds { fields.append(#""ns":\#(fixed(nanoseconds, 3))"#) }
    if let instructions { fields.append(#""instructions":\#(fixed(instructions, 1))"#) }
    if let mallocs { fields.append(#""mallocs":\#(fixed(mallocs, 6))"#) }
    if let hash { fields.append(#""hash":"\#(hash)""#) }
    if let interval { fields.append(#""half":\#(fixed(interval.half, 6))"#) }
    return fields
  }
}

extension Interval {
  static let equal = "equal"
  /// A difference in words: "equal" where the interval as it is printed holds zero, or where no digit that is shown differs.
  public var text: String {
    holdsZero || abs(mean) < max(half, 0.005) ? Self.equal : "\(mean > 0 ? "+" : "−")\(fixed(abs(mean), 2)) ± \(fixed(half, 2))"
  }
}

/// A number with a fixed count of decimals; "-" when it is none.
public func fixed(_ value: Double, _ decimals: Int) -> String {
  guard value.isFinite, abs(value) < 1e15 else { return "-" }
  var scale = 1.0
  for _ in 0..<decimals { scale *= 10 }
  let scaled = Int64((abs(value) * scale).rounded())
  let whole = scaled / Int64(scale)
  let sign = value < 0 && scaled > 0 ? "-" : ""
  guard decimals > 0 else { return sign + String(whole) }
  let fraction = String(scaled % Int64(scale))
  return sign + String(whole) + "." + String(repeating: "0", count: decimals - fraction.count) + fraction
}
