import Yams

/// One mapping of the file: the values of its keys by name.
struct Section {
  let parser: ConfigurationParser
  let path: String
  /// False for a list or a text where a mapping is expected, which is reported; true for an absent mapping.
  let isMapping: Bool
  /// Whether a value stands in place of the mapping (`KeyTable.short`).
  let isShort: Bool
  private let table: any AnyKeyTable
  private var nodes: [String: Node] = [:]

  /// Reports a node that is no mapping, and every key that has no row in `table`.
  init(_ field: Field, _ table: any AnyKeyTable) {
    (parser, path, self.table) = (field.parser, field.path, table)
    isMapping = Self.isMapping(field, table)
    isShort = isMapping && field.node?.text != nil
    guard let node = field.node else { return }
    if !path.isEmpty { parser.visit(path, node) }
    guard case .mapping(let mapping) = node else {
      if let short = table.short, isShort {
        nodes[short] = node
      } else {
        parser.problem(at: path, "expected a mapping with \(table.names.joined(separator: ", ")), got \(shown(node))")
      }
      return
    }
    for (key, value) in mapping {
      let name = key.text ?? shown(key)
      guard table.names.contains(name) else {
        unknown(name, key)
        continue
      }
      if !value.isNull {
        nodes[name] = value
        parser.visit(path(name), value)
      }
    }
  }

  private func unknown(_ name: String, _ key: Node) {
    let own = path(name)
    parser.visit(own, key)
    if let name = table.renamed[name] {
      parser.problem(at: own, "this key is \(name) now: write \(name)")
    } else {
      let hint = nearest(to: name, in: table.names).map { "did you mean \($0)? " } ?? ""
      parser.problem(at: own, "unknown key; \(hint)known here: \(table.names.joined(separator: ", "))")
    }
  }

  static func isMapping(_ field: Field, _ table: any AnyKeyTable) -> Bool {
    switch field.node {
    case nil, .mapping: true
    case .scalar where table.short != nil: true
    default: false
    }
  }

  private func path(_ key: String) -> String { path.isEmpty ? key : path + "." + key }

  subscript(_ key: String) -> Field {
    assert(table.names.contains(key), "\(path) has no row for \(key)")
    let isShort = isShort && key == table.short
    return Field(
      parser: parser, node: nodes[key], path: isShort ? path : path(key), isSecret: table.secrets.contains(key), isShort: isShort)
  }

  func has(_ key: String) -> Bool { self[key].isWritten }

  func problem(_ message: String, _ severity: Problem.Severity = .error) { parser.problem(at: path, message, severity) }
}

/// The known word that `name` probably misspells: at most one letter in three is wrong, missing, extra or swapped with the next.
func nearest(to name: String, in words: [String]) -> String? {
  let letters = Array(name.utf8.prefix(64))
  let near = words.map { (word: $0, distance: editDistance(letters, Array($0.utf8))) }
  return near.min { $0.distance < $1.distance }.flatMap { $0.distance * 3 <= max(3, letters.count) ? $0.word : nil }
}

/// Optimal string alignment: letters inserted, removed, changed, or swapped with their neighbour.
private func editDistance(_ a: [UInt8], _ b: [UInt8]) -> Int {
  var (before, last) = ([Int](), Array(0...b.count))
  for i in 0..<a.count {
    var row = [i + 1]
    for j in 0..<b.count {
      var cost = min(last[j + 1] + 1, row[j] + 1, last[j] + (a[i] == b[j] ? 0 : 1))
      if i > 0, j > 0, a[i] == b[j - 1], a[i - 1] == b[j] { cost = min(cost, before[j - 1] + 1) }
      row.append(cost)
    }
    before = last
    last = row
  }
  return last[b.count]
}
