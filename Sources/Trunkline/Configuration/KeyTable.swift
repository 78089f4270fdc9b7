/// The keys of one kind of mapping in the file, in the order of the reference, and the rules between them. The parser, its errors,
/// `trunkline config reference` and `serve --check` come from it. A table may stand at several paths.
///
///     static let log = KeyTable<Settings.Log>(
///       .init(), .atRestart,
///       [ .choice("level", \.level, "The least severe that is written."), … ])
final class KeyTable<Target: Sendable>: AnyKeyTable {
  /// What several keys must fulfil together: reports problems, or completes the target.
  typealias Rule = @Sendable (Section, inout Target) -> Void

  /// What a mapping without keys means: every default.
  let standard: Target
  let reload: Reload
  let meaning: String
  /// The key that a value in place of the mapping is for: `hep: ADDRESS` is `hep: { address: ADDRESS }`.
  let short: String?
  /// Former names of keys, with the names of today.
  let renamed: [String: String]
  let names: [String]
  let secrets: Set<String>
  private let keys: [Key<Target>]
  private let rules: [Rule]

  init(
    _ standard: Target, _ reload: Reload, about meaning: String = "", short: String? = nil, _ keys: [Key<Target>]...,
    renamed: [String: String] = [:], rules: [Rule] = []
  ) {
    let all = keys.flatMap(\.self)
    (self.standard, self.reload, self.meaning, self.short) = (standard, reload, meaning, short)
    (self.keys, self.rules, self.renamed, names) = (all, rules, renamed, all.map(\.name))
    secrets = Set(all.compactMap { if case .secretFile = $0.value { $0.name } else { nil } })
  }

  /// Reads the keys in their order, then applies the rules. What is no mapping was reported, and changes nothing.
  func read(_ field: Field, into out: inout Target) {
    let section = Section(field, self)
    guard section.isMapping else { return }
    for key in keys {
      let field = section[key.name]
      if let hint = key.hint, !field.isWritten {
        section.problem("\(key.name) is missing\(hint.isEmpty ? "" : ": " + hint)")
      } else {
        key.read(field, &out)
      }
    }
    for rule in rules { rule(section, &out) }
  }

  /// Nil for what is no mapping, which is reported.
  func value(_ field: Field) -> Target? {
    var out = standard
    read(field, into: &out)
    return Section.isMapping(field, self) ? out : nil
  }

  var described: [ConfigurationKey] { keys.map { $0.described(standard) } }
  var inner: [InnerTable] { keys.compactMap(\.inner) }
  func kind(_ name: String) -> ConfigurationKey.Value? { keys.first { $0.name == name }?.value }
}

/// When a changed value is used.
enum Reload: Sendable { case atSIGHUP, atRestart }

/// A table below another: `path` is the key, with `[]` if it is a list.
struct InnerTable: Sendable {
  let path: String
  let table: any AnyKeyTable
}

/// A table of whatever the keys are for.
protocol AnyKeyTable: AnyObject, Sendable {
  var reload: Reload { get }
  var meaning: String { get }
  var short: String? { get }
  var renamed: [String: String] { get }
  var names: [String] { get }
  /// The keys that name a file with a secret.
  var secrets: Set<String> { get }
  var described: [ConfigurationKey] { get }
  var inner: [InnerTable] { get }
  func kind(_ name: String) -> ConfigurationKey.Value?
}

extension AnyKeyTable {
  /// The value that a mapping of this table has in the reference: with the short form, if it has one.
  var form: ConfigurationKey.Value {
    guard let short, let kind = kind(short) else { return .mapping }
    if case .list(let item, _) = kind { return .or(item, .mapping) }
    return .or(kind, .mapping)
  }
}
