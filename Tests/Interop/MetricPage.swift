import Foundation

/// A page of `/metrics`: what families there are, and the labels of their samples.
struct MetricPage {
  struct Family {
    var help = ""
    var kind = ""
    var labels: Set<String> = []
    var hasSamples = false
  }
  var families: [String: Family] = [:]

  init(_ text: String) {
    for line in text.split(separator: "\n") {
      let words = line.split(separator: " ", maxSplits: 3)
      if line.hasPrefix("# HELP ") {
        families[String(words[2]), default: Family()].help = words.count > 3 ? String(words[3]) : ""
      } else if line.hasPrefix("# TYPE ") {
        families[String(words[2]), default: Family()].kind = String(words[3])
      } else if let name = line.firstMatch(of: /^[a-z_]+/).map({ family(of: String($0.0)) }) {
        let labels = line.prefix { $0 != "}" }.matches(of: /[{,]([a-z_]+)="/).map { String($0.1) }
        families[name]?.labels.formUnion(labels.filter { $0 != "le" })
        families[name]?.hasSamples = true
      }
    }
  }

  /// Of a sample; those of histograms end in `_bucket`, `_sum` and `_count`.
  private func family(of sample: String) -> String {
    if families[sample] != nil { return sample }
    return ["_bucket", "_sum", "_count"].first { sample.hasSuffix($0) }.map { String(sample.dropLast($0.count)) } ?? sample
  }

  /// What an expression names that is not there. Labels of a family without samples are not known, so they pass.
  func unknown(in expression: String) -> [String] {
    var out: [String] = []
    for match in expression.matches(of: /\b((?:trunkline|process)_[a-z_]+)(\{[^}]*\})?/) {
      let name = family(of: String(match.1))
      guard let known = families[name] else {
        out.append(String(match.1))
        continue
      }
      let labels = (match.2 ?? "").matches(of: /([a-z_]+)\s*(?:=~|!~|!=|=)/).map { String($0.1) }
      for label in labels where known.hasSamples && !known.labels.contains(label) && !Self.scraped.contains(label) {
        out.append("\(name){\(label)}")
      }
    }
    let everywhere = families.values.reduce(into: Self.scraped) { $0.formUnion($1.labels) }
    for match in expression.matches(of: /\bby \(([^)]*)\)/) {
      let labels = match.1.split { $0 == "," || $0 == " " }.map(String.init)
      out += labels.filter { !everywhere.contains($0) && !Self.rare.contains($0) }.map { "by \($0)" }
    }
    return out
  }
  /// Prometheus adds these.
  private static let scraped: Set<String> = ["instance", "job", "le"]
  /// Of families that have no samples in the test's call.
  private static let rare: Set<String> = ["silent", "service"]

  /// docs/metrics.md.
  var reference: String {
    let rows = families.sorted { $0.key < $1.key }.map { name, family in
      "| `\(name)` | \(family.kind) | \(family.labels.sorted().map { "`\($0)`" }.joined(separator: " ")) | \(family.help) |"
    }
    return """
      # Metrics

      What `/metrics` of the admin port holds, in the Prometheus text format. Counters count since the start of the process; a trunk that left the
      configuration is counted on as `removed`. Dashboards for Grafana and alerts with [runbooks](runbooks.md) are in `Deploy`.

      | metric | kind | labels | what |
      |---|---|---|---|
      \(rows.joined(separator: "\n"))

      """
  }
}
