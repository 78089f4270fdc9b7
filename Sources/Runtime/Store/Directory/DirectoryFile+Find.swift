import AppSessions
import GRDB
import TrunklineAppProtocol

extension DirectoryFile {
  /// Names of a device's directories for `dir.find`: first those that begin with the text, then by name. A number in several
  /// directories has the name of the first one. Reads `Limits.searchedContacts` contacts of a directory at most.
  func names(for find: DirectoryFind, of device: DeviceKey, accounts: [String]) throws -> [Handle] {
    let (condition, values) = Self.condition(find.text)
    guard !values.isEmpty else { return [] }
    let limit = find.limit ?? Limits.foundNames
    return try read("directory") { database in
      var names: [Int64: String] = [:]
      for scope in try DirectoryScope.of(device, accounts: accounts).compactMap({ try Self.scope($0, database)?.id }) {
        let rows = try Row.fetchAll(
          database,
          sql: """
            SELECT number, label FROM (SELECT number, label FROM contact WHERE scope = ? AND label IS NOT NULL LIMIT ?)
            WHERE \(condition) ORDER BY label LIKE ? ESCAPE '\\' DESC, label COLLATE NOCASE LIMIT ?
            """,
          arguments: StatementArguments(
            [scope, Limits.searchedContacts] as [any DatabaseValueConvertible] + values + [Self.escaped(find.text) + "%", limit]))
        for row in rows where names[row[0]] == nil { names[row[0]] = row[1] }
      }
      let start = find.text.lowercased()
      return names.map { (number: $0.key, name: $0.value, key: $0.value.lowercased()) }
        .sorted { one, other in
          let (first, second) = (one.key.hasPrefix(start), other.key.hasPrefix(start))
          return first != second ? first : (one.key, one.number) < (other.key, other.number)
        }
        .prefix(limit).map { Handle(k: .phone, h: "+\($0.number)", n: $0.name) }
    }
  }

  /// Matches each word of a name, or the digits of a number. SQLite ignores case only in ASCII, so other letters are also matched
  /// in their usual spelling.
  private static func condition(_ text: String) -> (sql: String, values: [any DatabaseValueConvertible]) {
    let digits = text.unicodeScalars.filter { (48...57).contains($0.value) }
    let isNumber = digits.count >= Limits.searchedDigits && text.allSatisfy { !$0.isLetter }
    if isNumber { return ("CAST(number AS TEXT) LIKE ?", ["%\(String(String.UnicodeScalarView(digits)))%"]) }
    // SQLite ends a pattern at a zero
    let words = text.split { $0.isWhitespace || $0 == "\0" }.prefix(Limits.searchedWords).map(String.init)
    var values: [any DatabaseValueConvertible] = []
    let conditions = words.map { word in
      let spellings = Set([
        word, word.lowercased(), word.uppercased(), word.prefix(1).uppercased() + word.dropFirst().lowercased(),
      ])
      for spelling in spellings.sorted() { values.append("%" + escaped(spelling) + "%") }
      return "(" + spellings.map { _ in "label LIKE ? ESCAPE '\\'" }.joined(separator: " OR ") + ")"
    }
    return (conditions.joined(separator: " AND "), values)
  }

  private static func escaped(_ text: String) -> String {
    String(text.flatMap { "%_\\".contains($0) ? ["\\", $0] : [$0] })
  }
}
