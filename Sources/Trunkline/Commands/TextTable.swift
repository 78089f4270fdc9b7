import TrunklineBytes

/// Columns as wide as their widest cell, two spaces between. A cell is one line, whatever a caller or an app has put into it.
enum TextTable {
  static func render(_ cells: [[String]]) -> String {
    guard let head = cells.first else { return "" }
    let cells = cells.map { $0.map(TerminalText.line) }
    let widths = head.indices.map { column in cells.map { $0[column].count }.max() ?? 0 }
    return cells.map { row in
      var line = zip(row, widths).map { $0 + String(repeating: " ", count: $1 - $0.count) }.joined(separator: "  ")
      while line.hasSuffix(" ") { line.removeLast() }
      return line
    }.joined(separator: "\n")
  }
}
