import TrunklineBytes
import Yams

/// One mapping of the file: its known keys by name. Every reader returns the default when the key is absent or wrong, and reports
/// a wrong one.
struct Section {
  let parser: ConfigurationParser
  let path: String
  /// The rows of `ConfigurationKeys` for this path: the only keys that may be written in a file, and read.
  private let keys: [String]
  private var nodes: [String: Node] = [:]

  /// Reports a node that is no mapping, and every key that has no row.
  init(_ node: Node?, _ path: String, _ parser: ConfigurationParser) {
    self.parser = parser
    self.path = path
    keys = ConfigurationKeys.names(at: path)
    guard let node, !node.isNull else { return }
    if !path.isEmpty { parser.visit(path, node) }
    guard case .mapping(let mapping) = node else {
      parser.problem(path, "expected a mapping with \(keys.joined(separator: ", ")), got \(shown(node))")
      return
    }
    for (key, value) in mapping {
      let name = key.text ?? shown(key)
      guard keys.contains(name) else {
        let own = self.path(name)
        parser.visit(own, key)
        if let name = ConfigurationKeys.renamed[own] {
          parser.problem(own, "this key is \(name) now: write \(name)")
          continue
        }
        let hint = nearest(to: name, in: keys).map { "did you mean \($0)? " } ?? ""
        parser.problem(own, "unknown key; \(hint)known here: \(keys.joined(separator: ", "))")
        continue
      }
      if !value.isNull {
        nodes[name] = value
        parser.visit(self.path(name), value)
      }
    }
  }

  /// Whether the key names a file with a secret in it (`ConfigurationKey.Value.secretFile`).
  func isSecret(_ key: String) -> Bool { ConfigurationKeys.isSecret(key, at: path) }

  func path(_ key: String) -> String { path.isEmpty ? key : path + "." + key }
  func node(_ key: String) -> Node? {
    assert(keys.contains(key), "ConfigurationKeys has no row for \(self.path(key))")
    return nodes[key]
  }
  func has(_ key: String) -> Bool { node(key) != nil }

  /// A mapping inside this one.
  func section(_ key: String) -> Section { Section(node(key), path(key), parser) }

  /// Items with their paths; a single value counts as a list of one.
  func items(_ key: String, limit: Int) -> [(node: Node, path: String)] {
    guard let node = self.node(key) else { return [] }
    guard case .sequence(let sequence) = node else {
      parser.visit(path(key) + "[0]", node)
      return [(node, path(key) + "[0]")]
    }
    if sequence.count > limit { parser.problem(path(key), "\(sequence.count) items are more than the limit of \(limit)") }
    return sequence.prefix(limit).enumerated().compactMap { index, item in
      let own = path(key) + "[\(index)]"
      parser.visit(own, item)
      if item.isNull { parser.problem(own, "is empty: write a value, or leave the item out") }
      return item.isNull ? nil : (item, own)
    }
  }

  /// The scalar parsed by `parse`; `expected` completes "expected …, got …".
  func value<Value>(_ key: String, _ expected: String, _ parse: (String) -> Value?) -> Value? {
    guard let node = self.node(key) else { return nil }
    return Self.value(node, path(key), parser, expected, parse)
  }

  static func value<Value>(
    _ node: Node, _ path: String, _ parser: ConfigurationParser, _ expected: String, _ parse: (String) -> Value?
  ) -> Value? {
    if let text = node.text, let value = parse(text) { return value }
    parser.problem(path, "expected \(expected), got \(shown(node))")
    return nil
  }

  func list<Value>(_ key: String, limit: Int, _ expected: String, _ parse: (String) -> Value?) -> [Value] {
    items(key, limit: limit).compactMap { Self.value($0.node, $0.path, parser, expected, parse) }
  }

  func string(_ key: String) -> String? { value(key, "a text") { $0.isEmpty ? nil : $0 } }

  /// A required text; reports a missing one.
  func required(_ key: String) -> String? {
    guard has(key) else {
      parser.problem(path, "\(key) is missing")
      return nil
    }
    return string(key)
  }

  func integer(_ key: String, in range: ClosedRange<Int>, default fallback: Int) -> Int {
    guard let number = value(key, "an integer", { Int($0) }) else { return fallback }
    guard range.contains(number) else {
      parser.problem(path(key), "\(number) is outside \(range.lowerBound)...\(range.upperBound)")
      return fallback
    }
    return number
  }

  func flag(_ key: String, default fallback: Bool) -> Bool {
    value(key, "true or false") { ["true": true, "yes": true, "on": true, "false": false, "no": false, "off": false][$0] }
      ?? fallback
  }

  func choice<Choice: RawRepresentable & CaseIterable>(_ key: String, default fallback: Choice) -> Choice
  where Choice.RawValue == String {
    let names = Choice.allCases.map(\.rawValue)
    let expected = names.count == 1 ? names[0] : names.dropLast().joined(separator: ", ") + " or " + names[names.count - 1]
    return value(key, expected) { Choice(rawValue: $0) } ?? fallback
  }

  func duration(_ key: String, in range: ClosedRange<Duration>, default fallback: Duration) -> Duration {
    guard let value = value(key, "a duration such as 45s or 500ms", durationValue) else { return fallback }
    guard range.contains(value) else {
      parser.problem(
        path(key), "\(durationText(value)) is outside \(durationText(range.lowerBound))...\(durationText(range.upperBound))")
      return fallback
    }
    return value
  }

  /// One address or a list of them.
  func socketAddresses(_ key: String) -> [SocketAddress] {
    if node(key)?.text != nil { return [socketAddress(key)].compactMap(\.self) }
    return items(key, limit: 16).compactMap { Self.socketAddress($0.node, $0.path, parser) }
  }

  func socketAddress(_ key: String) -> SocketAddress? {
    node(key).flatMap { Self.socketAddress($0, path(key), parser) }
  }

  static func socketAddress(_ node: Node, _ path: String, _ parser: ConfigurationParser) -> SocketAddress? {
    let expected = "an address with a port, such as 127.0.0.1:5060 or [::1]:5060"
    guard let address = value(node, path, parser, expected, { SocketAddress($0) }) else { return nil }
    guard address.port != 0 else {
      parser.problem(path, "port 0 is outside 1...65535")
      return nil
    }
    return address
  }
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
    (before, last) = (last, row)
  }
  return last[b.count]
}

/// `500ms`, `45s`, `1m`, `4h`.
func durationValue(_ text: String) -> Duration? {
  let digits = text.prefix { ("0"..."9").contains($0) }
  let unit = text.dropFirst(digits.count)
  guard !digits.isEmpty, digits.count <= (unit == "ms" ? 12 : 9), let number = Int64(digits) else { return nil }
  switch unit {
  case "ms": return .milliseconds(number)
  case "s": return .seconds(number)
  case "m": return .seconds(number * 60)
  case "h": return .seconds(number * 3600)
  case "d": return .seconds(number * 86_400)
  default: return nil
  }
}

/// The shortest form that `durationValue` reads back.
func durationText(_ value: Duration) -> String {
  let milliseconds = value.milliseconds
  if milliseconds % 1000 != 0 || milliseconds == 0 { return "\(milliseconds)ms" }
  let seconds = milliseconds / 1000
  if seconds % 3600 == 0 { return "\(seconds / 3600)h" }
  return seconds % 60 == 0 ? "\(seconds / 60)m" : "\(seconds)s"
}
