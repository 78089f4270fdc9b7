import Foundation

/// docs/benchmarks/index.md, with its pictures beside it.
enum Markdown {
  static func page(_ results: [BenchResults], _ machine: Machine) -> String {
    var out = """
      # Benchmarks

      Compare the figures here; `make bench` makes this page, so do not edit it. Absolute times move from machine to machine,
      ratios of one run hold. What the columns mean and how to run one bench alone: [Bench/README.md](../../Bench/README.md).

      | | |
      |---|---|

      """
    for fact in machine.facts { out += "| \(fact.key) | \(escaped(fact.value)) |\n" }
    out += "\n## At a glance\n\(Headlines.table(results))\n\(Headlines.remarks)\n" + goals(results)
    for bench in results {
      out += "\n## \(bench.name)\n`swift run -c release --package-path Bench bench-\(bench.name)`\n\n"
      out += table(bench)
      for sentence in bench.sentences { out += "\n\(escaped(sentence))\n" }
      for picture in bench.pictures {
        out += "\n![\(escaped(picture.caption))](\(picture.picture))\n\n*\(picture.caption)*\n"
      }
    }
    return out
  }

  private static func goals(_ results: [BenchResults]) -> String {
    let judged = results.flatMap(\.rows).filter { $0.met != nil }
    guard !judged.isEmpty else { return "" }
    let missed = judged.filter { $0.met == false }
    var out = "## Goals\n\(judged.count - missed.count) of \(judged.count) rows with a goal reach it."
    guard !missed.isEmpty else { return out + "\n" }
    out += " These do not:\n\n| bench | row | ours | ratio | goal |\n|---|---|---:|---:|---|\n"
    for row in missed {
      let ours = Number.text(row.ours, plusMinus: row.half, of: row.unit)
      out += "| \(row.bench) | \(escaped(row.row)) | \(ours) \(row.unit) | \(ratio(row)) | \(row.goal ?? "") |\n"
    }
    return out
  }

  private static func table(_ bench: BenchResults) -> String {
    timed(bench.rows.filter(\.isTimed)) + plain(bench.rows.filter { !$0.isTimed })
  }

  /// A line for each implementation: its time, instructions and allocations.
  private static func timed(_ rows: [Row]) -> String {
    guard !rows.isEmpty else { return "" }
    var out = "| row | | value | ratio | ns | instructions | mallocs | result | goal, note |\n"
    out += "|---|---|---:|---:|---:|---:|---:|---|---|\n"
    for row in rows {
      let ours = Row.Figure(
        name: "ours", value: row.ours, ns: row.ns, instructions: row.instructions, mallocs: row.mallocs, hash: row.hash)
      out += "| \(escaped(row.row)) " + cells(ours, row.unit, ratio: ratio(row)) + "| \(remark(row)) |\n"
      for other in row.named { out += "| " + cells(other, row.unit, ratio: "") + "| |\n" }
    }
    return out + "\n"
  }

  /// A column for each implementation: one figure each.
  private static func plain(_ rows: [Row]) -> String {
    guard !rows.isEmpty else { return "" }
    let names = Row.names(rows)
    var out = "| row | ours | \(names.map { escaped($0) + " | " }.joined())ratio or lead | goal, note |\n"
    out += "|---|---:|\(names.map { _ in "---:|" }.joined())---:|---|\n"
    for row in rows {
      let others = names.map { name in named(row, name) + " | " }.joined()
      let ours = Number.text(row.ours, plusMinus: row.half, of: row.unit)
      out += "| \(escaped(row.row)), \(row.unit) | **\(ours)** | \(others)\(ratio(row)) | \(remark(row)) |\n"
    }
    return out
  }

  private static func remark(_ row: Row) -> String {
    let goal = [row.goal.map { $0 + (row.met.map { $0 ? " ✓" : " **missed**" } ?? "") } ?? "", escaped(row.note)]
    return goal.filter { !$0.isEmpty }.joined(separator: "; ")
  }

  private static func named(_ row: Row, _ name: String) -> String {
    let figure = row.named.first { $0.name == name }
    return Number.text(figure?.value, plusMinus: figure?.half, of: row.unit)
  }

  private static func ratio(_ row: Row) -> String {
    if let lead = row.lead { return lead }
    guard let ratio = row.ratio, let to = row.ratioTo else { return "" }
    return "\(String(format: "%.3f", ratio)) × \(escaped(to))"
  }

  private static func cells(_ figure: Row.Figure, _ unit: String, ratio: String) -> String {
    let name = figure.name == "ours" ? "**ours**" : escaped(figure.name)
    // A value in nanoseconds is the time itself.
    let time = unit == "ns" ? "" : Number.text(figure.ns)
    let value = Number.text(figure.value, of: unit)
    return "| \(name) | \(value) \(unit) | \(ratio) | \(time) | \(Number.text(figure.instructions)) "
      + "| \(Number.mallocs(figure.mallocs)) | \(figure.hash.map { "`\($0.prefix(8))`" } ?? "") "
  }

  private static func escaped(_ text: String) -> String { text.replacingOccurrences(of: "|", with: "\\|") }
}
