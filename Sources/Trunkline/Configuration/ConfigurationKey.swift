/// A key of the configuration file, for the parser and for the reference.
struct ConfigurationKey: Sendable {
  /// The kinds of values.
  indirect enum Value: Sendable {
    /// A text, described in words.
    case text(String)
    /// The path of a file, and the file's content in words.
    case file(String)
    /// The same, with a secret in the file: it must not be readable by all users of the machine.
    case secretFile(String)
    case flag
    case oneOf([String])
    case integer(ClosedRange<Int>)
    case duration(ClosedRange<Duration>)
    /// A single item may be written without brackets.
    case list(Value, limit: Int)
    /// A section.
    case mapping
    case or(Value, Value)

    static func oneOf<Choice: RawRepresentable & CaseIterable>(_: Choice.Type) -> Value where Choice.RawValue == String {
      .oneOf(Choice.allCases.map(\.rawValue))
    }
  }

  /// The value that applies without the key.
  enum Default: Sendable {
    /// The hint completes the error "… is missing: "; it may be empty.
    case required(hint: String = "")
    /// As written in the file.
    case value(String)
    /// No value has the same effect, or it depends: in words.
    case none(String)
  }

  let name: String
  let value: Value
  let fallback: Default
  /// Unlike the rest of its section, a change applies only after a restart.
  let waitsForRestart: Bool
  /// One line: the purpose, the unit, a good value.
  let meaning: String

  init(_ name: String, value: Value, default fallback: Default, waitsForRestart: Bool, meaning: String) {
    (self.name, self.value, self.fallback) = (name, value, fallback)
    (self.waitsForRestart, self.meaning) = (waitsForRestart, meaning)
  }

}

/// The keys of one mapping of the file, which may be used at several paths.
struct ConfigurationSection: Sendable {
  /// Keys from the top, with `[]` after those of lists: `trunks[].numbers`. Empty for the file itself.
  let paths: [String]
  /// Whether a running gateway applies a change at SIGHUP.
  let isAppliedBySIGHUP: Bool
  let meaning: String
  let keys: [ConfigurationKey]

  /// `table` and all below it, those that stand at several paths once: each section before those in it.
  static func all(of table: any AnyKeyTable) -> [ConfigurationSection] {
    var tables: [any AnyKeyTable] = []
    var paths: [ObjectIdentifier: [String]] = [:]
    func visit(_ table: any AnyKeyTable, _ path: String) {
      let identity = ObjectIdentifier(table)
      if paths[identity] == nil { tables.append(table) }
      paths[identity, default: []].append(path)
      for inner in table.inner { visit(inner.table, path.isEmpty ? inner.path : path + "." + inner.path) }
    }
    visit(table, "")
    return tables.map { ConfigurationSection(paths[ObjectIdentifier($0)] ?? [], $0) }
  }

  private init(_ paths: [String], _ table: any AnyKeyTable) {
    (self.paths, isAppliedBySIGHUP) = (paths, table.reload == .atSIGHUP)
    (meaning, keys) = (table.meaning, table.described)
  }
}
