/// A key of the configuration file: what the parser admits and the reference shows.
struct ConfigurationKey: Sendable {
  /// What may stand behind the key.
  indirect enum Value: Sendable {
    /// What the text is, in words.
    case text(String)
    /// The path of a file, and what is in it.
    case file(String)
    /// The same, with a secret in it: it must not be readable by all users.
    case secretFile(String)
    case flag
    case oneOf([String])
    case integer(ClosedRange<Int>)
    case duration(ClosedRange<Duration>)
    /// One item may stand without brackets.
    case list(Value, limit: Int)
    /// A section of its own.
    case mapping
    case or(Value, Value)

    static func oneOf<Choice: RawRepresentable & CaseIterable>(_: Choice.Type) -> Value where Choice.RawValue == String {
      .oneOf(Choice.allCases.map(\.rawValue))
    }
  }

  /// What holds without the key.
  enum Default: Sendable {
    case required
    /// As one would write it.
    case value(String)
    /// No value does the same, or it depends: in words.
    case none(String)
  }

  let name: String
  let value: Value
  let fallback: Default
  /// Unlike the section it is in.
  let waitsForRestart: Bool
  /// One line: what it is, its unit, a good value.
  let meaning: String

  init(_ name: String, _ value: Value, _ fallback: Default, waitsForRestart: Bool = false, _ meaning: String) {
    (self.name, self.value, self.fallback) = (name, value, fallback)
    (self.waitsForRestart, self.meaning) = (waitsForRestart, meaning)
  }

  /// Without the key there is nothing of the kind.
  init(_ name: String, _ value: Value, waitsForRestart: Bool = false, _ meaning: String) {
    self.init(name, value, .none("–"), waitsForRestart: waitsForRestart, meaning)
  }
}

/// The keys of one mapping of the file, which may occur at several paths.
struct ConfigurationSection: Sendable {
  /// Keys from the top, `[]` behind those of lists: `trunks[].numbers`. Empty for the file itself.
  let paths: [String]
  /// Whether a running gateway takes a change of it at SIGHUP.
  let isAppliedBySIGHUP: Bool
  let meaning: String
  let keys: [ConfigurationKey]

  init(_ paths: String..., isAppliedBySIGHUP: Bool, _ meaning: String, _ keys: [ConfigurationKey]) {
    (self.paths, self.isAppliedBySIGHUP, self.meaning, self.keys) = (paths, isAppliedBySIGHUP, meaning, keys)
  }
}
