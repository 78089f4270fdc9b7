import Foundation

/// One HTML file with everything in it: tables and pictures, for light and dark.
enum Page {
  private static let style = """
    :root{color-scheme:light dark;--line:#d0d7de;--soft:#57606a;--good:#1a7f37;--bad:#cf222e}
    @media(prefers-color-scheme:dark){:root{--line:#30363d;--soft:#8b949e;--good:#3fb950;--bad:#ff7b72}}
    body{font:15px/1.45 system-ui,sans-serif;max-width:1100px;margin:2rem auto;padding:0 1rem}
    .wide{overflow-x:auto}table{border-collapse:collapse;font-size:13px;margin:1rem 0}
    td,th{border-bottom:1px solid var(--line);padding:.25rem .6rem;text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}
    td:first-child,th:first-child,td.left{text-align:left;white-space:normal}
    tr.other td{color:var(--soft);border-bottom-color:transparent}tr.other td:first-child{padding-left:1.6rem}
    .met{color:var(--good)}.missed{color:var(--bad);font-weight:600}figure{margin:1.5rem 0}figcaption{color:var(--soft)}svg{max-width:100%}
    """

  static func html(_ results: [BenchResults], _ machine: Machine, pictures: (String) -> String?) -> String {
    var out = "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">"
    out += "<title>Trunkline benchmarks</title><style>\(style)</style><h1>Trunkline benchmarks</h1><table>"
    for fact in machine.facts { out += "<tr><td>\(escaped(fact.key))<td class=left>\(escaped(fact.value))" }
    out += "</table>"
    for bench in results {
      out += "<h2>\(escaped(bench.name))</h2>" + table(bench)
      for sentence in bench.sentences { out += "<p>\(escaped(sentence))</p>" }
      for picture in bench.pictures {
        guard let svg = pictures(picture.picture) else { continue }
        out += "<figure>\(svg)<figcaption>\(escaped(picture.caption))</figcaption></figure>"
      }
    }
    return out + "</html>\n"
  }

  private static func table(_ bench: BenchResults) -> String {
    timed(bench.rows.filter(\.isTimed)) + plain(bench.rows.filter { !$0.isTimed })
  }

  private static func timed(_ rows: [Row]) -> String {
    guard !rows.isEmpty else { return "" }
    var out =
      "<div class=wide><table><tr><th>row<th>value<th>unit<th>ratio<th>ns<th>instructions<th>mallocs<th>result<th>goal, note"
    for row in rows {
      let ours = Row.Figure(
        name: row.row, value: row.ours, ns: row.ns, instructions: row.instructions, mallocs: row.mallocs, hash: row.hash)
      out += "<tr>" + cells(ours, row.unit, ratio(row)) + remark(row)
      for other in row.named { out += "<tr class=other>" + cells(other, row.unit, "") + "<td>" }
    }
    return out + "</table></div>"
  }

  private static func plain(_ rows: [Row]) -> String {
    guard !rows.isEmpty else { return "" }
    let names = Row.names(rows)
    var out =
      "<div class=wide><table><tr><th>row<th>unit<th>ours" + names.map { "<th>" + escaped($0) }.joined()
      + "<th>ratio<th>goal, note"
    for row in rows {
      out += "<tr><td>\(escaped(row.row))<td>\(escaped(row.unit))<td>\(Number.text(row.ours, plusMinus: row.half, of: row.unit))"
      for name in names {
        let figure = row.named.first { $0.name == name }
        out += "<td>" + Number.text(figure?.value, plusMinus: figure?.half, of: row.unit)
      }
      out += "<td>\(escaped(ratio(row)))" + remark(row)
    }
    return out + "</table></div>"
  }

  private static func ratio(_ row: Row) -> String {
    row.lead ?? row.ratio.map { String(format: "%.3f × ", $0) + (row.ratioTo ?? "") } ?? ""
  }

  private static func remark(_ row: Row) -> String {
    let verdict = row.met.map { $0 ? " class=\"left met\"" : " class=\"left missed\"" } ?? " class=left"
    let goal = row.goal.map { $0 + (row.met.map { $0 ? ", met" : ", missed" } ?? "") } ?? ""
    return "<td\(verdict)>\(escaped([goal, row.note].filter { !$0.isEmpty }.joined(separator: "; ")))"
  }

  private static func cells(_ figure: Row.Figure, _ unit: String, _ ratio: String) -> String {
    "<td>\(escaped(figure.name))<td>\(Number.text(figure.value, of: unit))<td>\(escaped(unit))<td>\(escaped(ratio))<td>\(Number.text(figure.ns))"
      + "<td>\(Number.text(figure.instructions))<td>\(Number.mallocs(figure.mallocs))<td>\(figure.hash.map { String($0.prefix(8)) } ?? "")"
  }

  private static func escaped(_ text: String) -> String {
    text.replacingOccurrences(of: "&", with: "&amp;").replacingOccurrences(of: "<", with: "&lt;")
  }
}
