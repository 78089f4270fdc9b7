import Foundation

/// One line of a bench's results file.
struct Row: Decodable {
  struct Figure: Decodable {
    var name: String
    var value: Double
    var ns: Double?
    var instructions: Double?
    var mallocs: Double?
    var hash: String?
    /// Half of the 95 % interval, of a mean over voices or calls.
    var half: Double?
  }
  var bench: String
  var row: String
  var unit: String
  var ours: Double
  var ratio: Double?
  var ratioTo: String?
  var limitName: String?
  var goal: String?
  var met: Bool?
  var ns: Double?
  var instructions: Double?
  var mallocs: Double?
  var hash: String?
  var half: Double?
  /// Ours less the first peer's, pair by pair, in words.
  var lead: String?
  var others: [Figure]
  var note: String

  var isTimed: Bool { ns != nil }
  /// The others, the limit called so.
  var named: [Figure] {
    others.map { other in
      var other = other
      if other.name == limitName { other.name = "limit: " + other.name }
      return other
    }
  }
  /// Everybody beside ours in these rows, in the order of appearance.
  static func names(_ rows: [Row]) -> [String] {
    rows.flatMap { $0.named.map(\.name) }.reduce(into: []) { names, name in
      if !names.contains(name) { names.append(name) }
    }
  }
}

struct Picture: Decodable {
  var bench: String
  var picture: String
  var caption: String
}

/// What is said in words, where a picture would show two numbers only.
struct Sentence: Decodable {
  var bench: String
  var sentence: String
}

/// What one bench left in the results folder.
struct BenchResults {
  var name: String
  var rows: [Row] = []
  var pictures: [Picture] = []
  var sentences: [String] = []

  /// Every `NAME.jsonl` of the folder, in the order wanted, then the rest by name.
  static func read(_ folder: URL, order: [String]) throws -> [BenchResults] {
    let files = try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)
      .filter { $0.pathExtension == "jsonl" }
    func position(_ name: String) -> Int { order.firstIndex(of: name) ?? order.count }
    let results = try files.map { file in
      var results = BenchResults(name: file.deletingPathExtension().lastPathComponent)
      for line in try String(contentsOf: file, encoding: .utf8).split(separator: "\n") {
        let data = Data(line.utf8)
        if let row = try? JSONDecoder().decode(Row.self, from: data) {
          results.rows.append(row)
        } else if let picture = try? JSONDecoder().decode(Picture.self, from: data) {
          results.pictures.append(picture)
        } else if let sentence = try? JSONDecoder().decode(Sentence.self, from: data) {
          results.sentences.append(sentence.sentence)
        }
      }
      return results
    }
    return results.filter { !$0.rows.isEmpty || !$0.pictures.isEmpty }
      .sorted { (position($0.name), $0.name) < (position($1.name), $1.name) }
  }
}

/// What the machine is, as Scripts/bench found out: `key: value` lines.
struct Machine {
  var facts: [(key: String, value: String)] = []

  init(_ file: URL) {
    let text = (try? String(contentsOf: file, encoding: .utf8)) ?? ""
    for line in text.split(separator: "\n") {
      let parts = line.split(separator: ":", maxSplits: 1)
      guard parts.count == 2 else { continue }
      facts.append((String(parts[0]), parts[1].trimmingCharacters(in: .whitespaces)))
    }
  }
}

enum Number {
  /// As many digits as say something.
  static func text(_ value: Double) -> String {
    switch abs(value) {
    case 1_000_000...: String(format: "%.2f M", value / 1_000_000)
    case 10_000...: grouped(value)
    case 100...: String(format: "%.0f", value)
    case 10...: String(format: "%.1f", value)
    case 0.1...: String(format: "%.2f", value)
    case 0: "0"
    default: String(format: "%.3f", value)
    }
  }
  private static func grouped(_ value: Double) -> String {
    let digits = String(format: "%.0f", abs(value))
    var out = ""
    for (index, digit) in digits.enumerated() {
      if index > 0, (digits.count - index) % 3 == 0 { out += "," }
      out.append(digit)
    }
    return (value < 0 ? "-" : "") + out
  }
  static func text(_ value: Double?) -> String { value.map { text($0) } ?? "" }
  /// Calls are whole, and counted in steps: no digit behind the point.
  static func text(_ value: Double, of unit: String) -> String {
    unit.hasPrefix("calls") && abs(value) >= 10 ? grouped(value) : text(value)
  }
  /// A mean of voices or calls with half of its 95 % interval.
  static func text(_ value: Double?, plusMinus half: Double?, of unit: String = "") -> String {
    guard let value else { return "" }
    guard let half else { return text(value, of: unit) }
    return String(format: half < 0.995 ? "%.2f ± %.2f" : "%.0f ± %.0f", value, half)
  }
  /// A share of allocations is worth three decimals.
  static func mallocs(_ value: Double?) -> String { value.map { $0 == 0 ? "0" : String(format: "%.2f", $0) } ?? "" }
}
