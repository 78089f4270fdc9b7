import GRDB

/// The directories and their changes.
extension DirectoryFile {
  /// The result of an import.
  public struct Change: Sendable, Equatable, Codable {
    /// The directory's version after the import; unchanged if nothing has changed.
    public var version: Int
    public var entries: Int
    public var added: Int
    public var changed: Int
    public var removed: Int
  }
  struct Scope {
    var id: Int64
    var version: Int
    var floor: Int
    var entries: Int
    var logged: Int
    /// See `SyncState`.
    var base = 0
  }
  struct Difference {
    var removed: [Int64] = []
    /// Positions in the list.
    var stored: [Int] = []
    var added = 0

    /// Both are read in the order of numbers. `position`: in the list, after the last compared contact.
    mutating func compare(_ stored: Contact, with list: ContactList, _ position: inout Int) {
      while position < list.count, list.contact(position).contact.number < stored.number {
        self.stored.append(position)
        added += 1
        position += 1
      }
      if position < list.count, list.contact(position).contact.number == stored.number {
        if list.contact(position).contact != stored { self.stored.append(position) }
        position += 1
      } else {
        removed.append(stored.number)
      }
    }
    mutating func finish(_ list: ContactList, _ position: Int) {
      added += list.count - position
      stored.append(contentsOf: position..<max(position, list.count))
    }
  }

  /// Replaces a directory by a list, or changes only the listed numbers. All or nothing.
  ///
  /// - Parameter scope: `user:ID` or `account:NAME`.
  public func write(_ list: ContactList, into scope: String, replaces: Bool, now: Int64) throws -> Change {
    try write("directory") { database in
      var row = try Self.scope(scope, database) ?? Self.make(scope, database)
      let difference =
        replaces ? try difference(list, in: row.id, database) : try Self.named(list, in: row.id, database)
      row.entries += difference.added - difference.removed.count
      try Self.checkRoom(row, database)
      let entries = row.entries
      let count = difference.stored.count + difference.removed.count
      guard count > 0 else { return Change(version: row.version, entries: entries, added: 0, changed: 0, removed: 0) }
      row.version = try Self.nextVersion(database, now: now)
      try apply(difference, of: list, in: row.id, database)
      try Self.log(
        difference.removed + difference.stored.map { list.contact($0).contact.number }, &row, database)
      try Self.store(row, database)
      try Self.disown(row, database)
      return Change(
        version: row.version, entries: entries, added: difference.added, changed: difference.stored.count - difference.added,
        removed: difference.removed.count)
    }
  }

  func versions() throws -> [String: Int] {
    try read("directories") { database in
      let rows = try Row.fetchAll(database, sql: "SELECT name, version FROM scope")
      return Dictionary(rows.map { ($0[0] as String, $0[1] as Int) }) { first, _ in first }
    }
  }

  /// All directories, by name.
  public func directories() throws -> [Listing] {
    try read("directories") { database in
      try Row.fetchAll(database, sql: "SELECT name, version, entries, shared_version FROM scope ORDER BY name").map {
        Listing(name: $0[0], version: $0[1], entries: $0[2], sharedStore: $0[3])
      }
    }
  }

  /// Blocked numbers of a directory, ascending.
  public func blocked(in scope: String) throws -> [Int64] {
    try read("directory") { database in
      try Int64.fetchAll(
        database,
        sql: "SELECT number FROM contact JOIN scope ON scope.id = contact.scope WHERE name = ? AND blocked ORDER BY number",
        arguments: [scope])
    }
  }

  /// Every contact of a directory, ascending.
  public func forEach(in scope: String, _ body: (Contact) throws -> Void) throws {
    try read("directory") { database in
      let rows = try Row.fetchCursor(
        database,
        sql: """
          SELECT number, label, blocked FROM contact JOIN scope ON scope.id = contact.scope WHERE name = ? ORDER BY number
          """, arguments: [scope])
      while let row = try rows.next() { try body(Contact(row[0], label: row[1], isBlocked: row[2])) }
    }
  }

  /// The label of `number` in the first of the directories that has one.
  func label(of number: Int64, in scopes: [Int64], _ database: Database) throws -> String? {
    for scope in scopes {
      let label = try String.fetchOne(
        database.cachedStatement(sql: "SELECT label FROM contact WHERE scope = ? AND number = ? AND label IS NOT NULL"),
        arguments: [scope, number])
      if let label { return label }
    }
    return nil
  }

  // MARK: rows

  static func scope(_ name: String, _ database: Database) throws -> Scope? {
    try Row.fetchOne(
      database.cachedStatement(sql: "SELECT id, version, floor, entries, logged, base FROM scope WHERE name = ?"),
      arguments: [name]
    ).map { Scope(id: $0[0], version: $0[1], floor: $0[2], entries: $0[3], logged: $0[4], base: $0[5]) }
  }

  static func checkRoom(_ row: Scope, _ database: Database) throws {
    guard row.entries <= Limits.contacts else { throw StoreError("more than \(Limits.contacts) contacts in a directory") }
    let others = try Int.fetchOne(database, sql: "SELECT sum(entries) FROM scope WHERE id <> ?", arguments: [row.id]) ?? 0
    guard row.entries + others <= Limits.allContacts else { throw StoreError("more than \(Limits.allContacts) contacts in all") }
  }

  static func make(_ name: String, _ database: Database) throws -> Scope {
    var row = try unmade(name, database)
    try database.execute(
      sql: "INSERT INTO scope (name, version, floor, entries, logged) VALUES (?, 0, 0, 0, 0)", arguments: [name])
    row.id = database.lastInsertedRowID
    return row
  }

  /// A directory that does not exist yet; throws if there are too many.
  static func unmade(_ name: String, _ database: Database) throws -> Scope {
    guard name.utf8.count <= Limits.directoryNameBytes else { throw StoreError("a name of more than 256 bytes") }
    guard try Int.fetchOne(database, sql: "SELECT count(*) FROM scope") ?? 0 < Limits.directories else {
      throw StoreError("more than \(Limits.directories) directories")
    }
    return Scope(id: -1, version: 0, floor: 0, entries: 0, logged: 0)
  }

  /// Marks the directory's version as made here: it is not a version of the shared store.
  static func disown(_ row: Scope, _ database: Database) throws {
    try database.execute(sql: "UPDATE scope SET base = 0 WHERE id = ?", arguments: [row.id])
  }

  static func store(_ row: Scope, _ database: Database) throws {
    try database.execute(
      sql: "UPDATE scope SET version = ?, floor = ?, entries = ?, logged = ? WHERE id = ?",
      arguments: [row.version, row.floor, row.entries, row.logged, row.id])
  }

  /// Compares list and directory in one pass, as both are in the order of numbers.
  func difference(_ list: ContactList, in scope: Int64, _ database: Database) throws -> Difference {
    var out = Difference()
    var position = 0
    let rows = try Row.fetchCursor(
      database, sql: "SELECT number, label, blocked FROM contact WHERE scope = ? ORDER BY number", arguments: [scope])
    var count = 0
    while let row = try rows.next() {
      out.compare(Contact(row[0], label: row[1], isBlocked: row[2]), with: list, &position)
      count += 1
      if count.isMultiple(of: Limits.rowsPerSign) { makesProgress() }
    }
    out.finish(list, position)
    return out
  }

  /// The difference that a list makes which changes only the listed numbers.
  static func named(_ list: ContactList, in scope: Int64, _ database: Database) throws -> Difference {
    var out = Difference()
    let find = try database.makeStatement(sql: "SELECT number, label, blocked FROM contact WHERE scope = ? AND number = ?")
    for position in 0..<list.count {
      let (contact, isRemoved) = list.contact(position)
      let row = try Row.fetchOne(find, arguments: [scope, contact.number])
      let stored = row.map { Contact($0[0], label: $0[1], isBlocked: $0[2]) }
      if isRemoved {
        if stored != nil { out.removed.append(contact.number) }
      } else if stored != contact {
        out.stored.append(position)
        if stored == nil { out.added += 1 }
      }
    }
    return out
  }

  func apply(_ difference: Difference, of list: ContactList, in scope: Int64, _ database: Database) throws {
    let delete = try database.makeStatement(sql: "DELETE FROM contact WHERE scope = ? AND number = ?")
    for (count, number) in difference.removed.enumerated() {
      if count.isMultiple(of: Limits.rowsPerSign) { makesProgress() }
      try delete.execute(arguments: [scope, number])
    }
    let insert = try database.makeStatement(sql: "INSERT OR REPLACE INTO contact VALUES (?, ?, ?, ?)")
    for (count, position) in difference.stored.enumerated() {
      if count.isMultiple(of: Limits.rowsPerSign) { makesProgress() }
      let contact = list.contact(position).contact
      try insert.execute(arguments: [scope, contact.number, contact.label, contact.isBlocked])
    }
  }

  /// Logs the changed numbers; if they are too many, only the version since which changes are unknown (`floor`).
  static func log(_ numbers: [Int64], _ row: inout Scope, _ database: Database) throws {
    let count = numbers.count
    guard count <= Limits.loggedPerImport else {
      try database.execute(sql: "DELETE FROM change WHERE scope = ?", arguments: [row.id])
      row.floor = row.version
      row.logged = 0
      return
    }
    let insert = try database.makeStatement(sql: "INSERT OR REPLACE INTO change VALUES (?, ?, ?)")
    for number in numbers { try insert.execute(arguments: [row.id, row.version, number]) }
    row.logged += count
    guard row.logged > Limits.logged else { return }
    let cut = try Int.fetchOne(
      database, sql: "SELECT version FROM change WHERE scope = ? ORDER BY version DESC LIMIT 1 OFFSET ?",
      arguments: [row.id, Limits.logged / 2])
    guard let cut else { return }
    try database.execute(sql: "DELETE FROM change WHERE scope = ? AND version <= ?", arguments: [row.id, cut])
    row.logged = try Int.fetchOne(database, sql: "SELECT count(*) FROM change WHERE scope = ?", arguments: [row.id]) ?? 0
    row.floor = cut
  }

  /// Empties a directory and returns how many contacts it had. A device that has a version of it gets the whole one.
  func empty(_ scope: String, now: Int64, _ database: Database) throws -> Int {
    guard var row = try Self.scope(scope, database), row.entries > 0 else { return 0 }
    let entries = row.entries
    try database.execute(sql: "DELETE FROM contact WHERE scope = ?", arguments: [row.id])
    try database.execute(sql: "DELETE FROM change WHERE scope = ?", arguments: [row.id])
    row.version = try Self.nextVersion(database, now: now)
    row.floor = row.version
    row.entries = 0
    row.logged = 0
    try Self.store(row, database)
    try Self.disown(row, database)
    return entries
  }
}
