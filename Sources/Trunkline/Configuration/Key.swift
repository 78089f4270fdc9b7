import TrunklineBytes

/// A row of a `KeyTable`: all that is known of one key. `Target` is what the keys of the table set.
struct Key<Target: Sendable>: Sendable {
  typealias Read = @Sendable (Field, inout Target) -> Void
  typealias Default = ConfigurationKey.Default

  let name: String
  let value: ConfigurationKey.Value
  /// One line: the purpose, the unit, a good value.
  let meaning: String
  /// Of a required key: completes "… is missing"; may be empty.
  let hint: String?
  let inner: InnerTable?
  let read: Read
  private let fallback: @Sendable (Target) -> Default
  private var waitsForRestart = false

  /// A key with a reading of its own.
  init(
    _ name: String, _ value: ConfigurationKey.Value, default fallback: Default = .none("–"), _ meaning: String,
    inner: (any AnyKeyTable)? = nil, read: @escaping Read
  ) {
    if case .required(let hint) = fallback { self.hint = hint } else { hint = nil }
    (self.name, self.value, self.meaning, self.read) = (name, value, meaning, read)
    self.inner = inner.map { .init(path: name + (value.isListOfMappings ? "[]" : ""), table: $0) }
    self.fallback = { _ in fallback }
  }

  /// A key whose default is that of the type which has the setting.
  init(
    _ name: String, _ value: ConfigurationKey.Value, standard fallback: @escaping @Sendable (Target) -> Default,
    _ meaning: String,
    read: @escaping Read
  ) {
    (self.name, self.value, self.meaning, self.read) = (name, value, meaning, read)
    (self.fallback, hint, inner) = (fallback, nil, nil)
  }

  /// Unlike the rest of its section, a change applies only after a restart.
  var atRestart: Key {
    var out = self
    out.waitsForRestart = true
    return out
  }

  /// The key for the reference. `standard`: the defaults.
  func described(_ standard: Target) -> ConfigurationKey {
    ConfigurationKey(name, value: value, default: fallback(standard), waitsForRestart: waitsForRestart, meaning: meaning)
  }
}

/// The usual kinds of rows.
extension Key {
  typealias Path<Value> = WritableKeyPath<Target, Value> & Sendable

  static func flag(_ name: String, _ path: Path<Bool>, _ meaning: String) -> Key {
    Key(name, .flag, standard: { .value("\($0[keyPath: path])") }, meaning) { field, out in
      if let value = field.flag() { out[keyPath: path] = value }
    }
  }

  static func integer<Number: BinaryInteger & Sendable>(
    _ name: String, _ path: Path<Number>, _ range: ClosedRange<Int>, _ meaning: String
  ) -> Key {
    Key(name, .integer(range), standard: { .value("\($0[keyPath: path])") }, meaning) { field, out in
      if let value = field.integer(in: range) { out[keyPath: path] = Number(value) }
    }
  }

  /// An integer that may be absent. `none`: what that means.
  static func limit(
    _ name: String, _ path: Path<Int?>, _ range: ClosedRange<Int>, none: String = "no limit", _ meaning: String
  ) -> Key {
    let standard: @Sendable (Target) -> Default = { target in
      guard let number = target[keyPath: path] else { return .none(none) }
      return .value("\(number)")
    }
    return Key(name, .integer(range), standard: standard, meaning) { field, out in
      if let value = field.integer(in: range) { out[keyPath: path] = value }
    }
  }

  static func duration(_ name: String, _ path: Path<Duration>, _ range: ClosedRange<Duration>, _ meaning: String) -> Key {
    Key(name, .duration(range), standard: { .value(durationText($0[keyPath: path])) }, meaning) { field, out in
      if let value = field.duration(in: range) { out[keyPath: path] = value }
    }
  }

  /// A duration, or `off` for none.
  static func durationOrOff(_ name: String, _ path: Path<Duration?>, _ range: ClosedRange<Duration>, _ meaning: String) -> Key {
    Key(
      name, .or(.duration(range), .oneOf(["off"])), standard: { .value($0[keyPath: path].map(durationText) ?? "off") }, meaning
    ) { field, out in
      if field.text == "off" {
        out[keyPath: path] = nil
      } else if let value = field.duration(in: range) {
        out[keyPath: path] = value
      }
    }
  }

  /// A case of an enumeration by its raw value.
  static func choice<Choice: RawRepresentable & CaseIterable & Sendable>(_ name: String, _ path: Path<Choice>, _ meaning: String)
    -> Key
  where Choice.RawValue == String {
    Key(name, .oneOf(Choice.self), standard: { .value($0[keyPath: path].rawValue) }, meaning) { field, out in
      if let value = field.choice(Choice.self) { out[keyPath: path] = value }
    }
  }

  /// One of some words, each of which stands for a value.
  static func words<Value: Sendable & Equatable>(
    _ name: String, _ path: Path<Value>, _ words: [(word: String, value: Value)], _ meaning: String
  ) -> Key {
    Key(
      name, .oneOf(words.map(\.word)),
      standard: { standard in .value(words.first { $0.value == standard[keyPath: path] }?.word ?? "") }, meaning
    ) { field, out in
      let value = field.value(orList(words.map(\.word))) { text in words.first { $0.word == text }?.value }
      if let value { out[keyPath: path] = value }
    }
  }

  /// Any text that is not empty. `none`: what holds without it.
  static func text(
    _ name: String, _ path: Path<String?>, kind: String = "text", none: String = "–", _ meaning: String
  ) -> Key {
    Key(name, .text(kind), default: .none(none), meaning) { field, out in
      if let value = field.string() { out[keyPath: path] = value }
    }
  }

  /// The same with a default.
  static func string(_ name: String, _ path: Path<String>, _ meaning: String) -> Key {
    Key(name, .text("text"), standard: { .value($0[keyPath: path]) }, meaning) { field, out in
      if let value = field.string() { out[keyPath: path] = value }
    }
  }

  /// A text that must be given, of any content.
  static func requiredText(_ name: String, _ path: Path<String>, kind: String = "text", _ meaning: String) -> Key {
    Key(name, .text(kind), default: .required(), meaning) { field, out in
      if let value = field.string() { out[keyPath: path] = value }
    }
  }

  /// A text that `parse` understands. `kind` is for the reference; `expected` completes the error "expected …, got …".
  static func value<Value>(
    _ name: String, _ path: Path<Value>, _ kind: String, default fallback: Default, expected: String, _ meaning: String,
    parse: @escaping @Sendable (String) -> Value?
  ) -> Key {
    Key(name, .text(kind), default: fallback, meaning) { field, out in
      if let value = field.value(expected, parse) { out[keyPath: path] = value }
    }
  }

  /// The same for a setting that may be absent.
  static func optional<Value>(
    _ name: String, _ path: Path<Value?>, _ kind: String, default fallback: Default = .none("–"), expected: String,
    _ meaning: String,
    parse: @escaping @Sendable (String) -> Value?
  ) -> Key {
    Key(name, .text(kind), default: fallback, meaning) { field, out in
      if let value = field.value(expected, parse) { out[keyPath: path] = value }
    }
  }

  /// An address with its port.
  static func address(_ name: String, _ path: Path<SocketAddress>, default fallback: Default? = nil, _ meaning: String) -> Key {
    let read: Read = { field, out in
      if let address = field.socketAddress() { out[keyPath: path] = address }
    }
    let value = ConfigurationKey.Value.text("address with port")
    if let fallback { return Key(name, value, default: fallback, meaning, read: read) }
    return Key(name, value, standard: { .value("\($0[keyPath: path])") }, meaning, read: read)
  }

  /// A list of what `parse` understands; a single item goes without brackets.
  static func list<Value>(
    _ name: String, _ path: Path<[Value]>, _ kind: ConfigurationKey.Value, limit: Int, default fallback: Default = .none("–"),
    expected: String, _ meaning: String, parse: @escaping @Sendable (String) -> Value?
  ) -> Key {
    Key(name, .list(kind, limit: limit), default: fallback, meaning) { field, out in
      if field.isWritten { out[keyPath: path] = field.list(limit: limit, expected, parse) }
    }
  }

  /// A file that is created if it is missing, or a folder.
  static func path(_ name: String, _ path: Path<String>, kind: String = "path", _ meaning: String) -> Key {
    Key(name, .text(kind), standard: { .value($0[keyPath: path]) }, meaning) { field, out in
      out[keyPath: path] = field.parser.resolve(field.string() ?? out[keyPath: path])
    }
  }

  /// The path of a file that must be readable; `kind` is its content in words.
  static func file(
    _ name: String, _ path: Path<String?>, _ kind: ConfigurationKey.Value, default fallback: Default = .none("–"),
    _ meaning: String
  ) -> Key {
    Key(name, kind, default: fallback, meaning) { field, out in
      if let file = field.readableFile() { out[keyPath: path] = file }
    }
  }

  /// PEM of the authorities that a peer's certificate is checked with.
  static func authorities(_ name: String, _ path: Path<String?>, _ meaning: String) -> Key {
    .file(name, path, .file("PEM certificates"), default: .none("the system's authorities"), meaning)
  }
}

/// Rows for the sections below.
extension Key {
  /// A mapping whose defaults hold without it, too.
  static func section<Inner>(
    _ name: String, _ table: KeyTable<Inner>, _ path: Path<Inner>, default fallback: Default = .none("–"), _ meaning: String
  ) -> Key {
    // What is required in it is missed there.
    Key(name, table.form, default: fallback, meaning, inner: table, hint: nil) { field, out in
      table.read(field, into: &out[keyPath: path])
    }
  }

  /// A mapping without which a feature is off.
  static func optionalSection<Inner>(
    _ name: String, _ table: KeyTable<Inner>, _ path: Path<Inner?>, none: String, _ meaning: String
  ) -> Key {
    Key(name, table.form, default: .none(none), meaning, inner: table) { field, out in
      if field.isWritten { out[keyPath: path] = table.value(field) }
    }
  }

  /// A list of mappings; what is no mapping is left out.
  static func sections<Inner>(
    _ name: String, _ table: KeyTable<Inner>, _ path: Path<[Inner]>, limit: Int, default fallback: Default = .none("–"),
    _ meaning: String
  ) -> Key {
    Key(name, .list(table.form, limit: limit), default: fallback, meaning, inner: table) { field, out in
      if field.isWritten { out[keyPath: path] = field.items(limit: limit).compactMap(table.value) }
    }
  }

  private init(
    _ name: String, _ value: ConfigurationKey.Value, default fallback: Default, _ meaning: String, inner: any AnyKeyTable,
    hint: String?,
    read: @escaping Read
  ) {
    (self.name, self.value, self.meaning, self.read, self.hint) = (name, value, meaning, read, hint)
    self.inner = .init(path: name, table: inner)
    self.fallback = { _ in fallback }
  }
}

extension ConfigurationKey.Value {
  var isListOfMappings: Bool {
    switch self {
    case .list(let item, _): item.isMapping
    case .or(let one, let other): one.isListOfMappings || other.isListOfMappings
    default: false
    }
  }

  private var isMapping: Bool {
    switch self {
    case .mapping: true
    case .or(let one, let other): one.isMapping || other.isMapping
    default: false
    }
  }
}

/// `a, b or c`.
func orList(_ words: [String]) -> String {
  words.count < 2 ? words.joined() : words.dropLast().joined(separator: ", ") + " or " + words[words.count - 1]
}
