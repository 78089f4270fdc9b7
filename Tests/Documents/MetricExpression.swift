import Foundation

/// The names and labels in a PromQL expression, as far as our dashboards and alerts use the language.
struct MetricExpression {
  /// A metric and the labels that its matchers name.
  var selectors: [(metric: String, labels: [String])] = []
  /// Labels of `by`, `without`, `on`, `ignoring` and `group_left`.
  var grouping: [String] = []

  private static let words: Set<String> = [
    "absent", "sum", "min", "max", "rate", "increase", "histogram_quantile", "time", "label_values", "and", "or", "unless",
    "offset",
  ]

  init(_ expression: String) {
    var text = expression.replacing(/"[^"]*"/, with: "\"\"").replacing(/\[[^\]]*\]/, with: " ").replacing(
      /\boffset\s+\w+/, with: " ")
    for match in text.matches(of: /\b(?:by|without|on|ignoring|group_left|group_right)\b\s*(?:\(([^)]*)\))?/) {
      grouping += (match.1 ?? "").split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) }
    }
    text.replace(/\b\d[\w.]*/, with: " ")
    text.replace(/\b(?:by|without|on|ignoring|group_left|group_right)\b\s*(?:\([^)]*\))?/, with: " ")
    // label_values(metric, label) of a dashboard's variable
    if let match = text.firstMatch(of: /label_values\(\s*(\w+)\s*,\s*(\w+)\s*\)/) {
      selectors = [(String(match.1), [String(match.2)])]
      return
    }
    for match in text.matches(of: /([A-Za-z_:][A-Za-z0-9_:]*)\s*(?:\{([^}]*)\})?/) where !Self.words.contains(String(match.1)) {
      let labels = (match.2 ?? "").matches(of: /([A-Za-z_]\w*)\s*(?:=~|!~|!=|=)/).map { String($0.1) }
      selectors.append((String(match.1), labels))
    }
  }

  /// What is wrong with it: a metric or label that the gateway does not have. `metrics` has the labels of each; Prometheus adds
  /// `instance` and `job`.
  func problems(_ metrics: [String: Set<String>], alsoUsed: [String] = []) -> [String] {
    var known: Set<String> = ["instance", "job"]
    var found: [String] = selectors.isEmpty ? ["no metric"] : []
    for (metric, labels) in selectors {
      guard let own = metrics[metric] else {
        found.append("no metric \(metric)")
        continue
      }
      known.formUnion(own)
      found += labels.filter { !own.contains($0) && $0 != "instance" && $0 != "job" }.map { "\(metric) has no label \($0)" }
    }
    return found + (grouping + alsoUsed).filter { !known.contains($0) }.map { "no metric here has the label \($0)" }
  }

  /// The table of docs/operate/monitoring.md; a histogram is its three series.
  static func metrics(_ page: String) -> [String: Set<String>] {
    var found: [String: Set<String>] = [:]
    for line in page.split(separator: "\n") {
      guard let row = line.wholeMatch(of: /\| `(\w+)` \| (counter|gauge|histogram) \| ([\w, ]*) \| .*\|/) else { continue }
      let labels = Set(row.3.split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) }.filter { !$0.isEmpty })
      let name = String(row.1)
      guard row.2 == "histogram" else {
        found[name] = labels
        continue
      }
      found[name + "_bucket"] = labels.union(["le"])
      (found[name + "_sum"], found[name + "_count"]) = (labels, labels)
    }
    return found
  }
}
