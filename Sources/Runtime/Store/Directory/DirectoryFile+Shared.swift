import GRDB

/// Directories of a cluster's node: copies of the shared store's. `base` is the version of the shared store that a copy has; 0:
/// the directory was made here, by a gateway without a cluster. The parts of the shared store's version are recorded (`part`), so
/// that only the differing parts of a later version are read.
extension DirectoryFile {
  /// A local directory compared with the shared store's.
  struct SyncState: Equatable {
    var version = 0
    var base = 0
    /// The last seen version of the shared store; 0: none.
    var sharedStore = 0
    /// The local version is one of the shared store.
    var isCopy: Bool { base > 0 && base == version }
  }
  /// The version of a directory that an import would make.
  struct Draft {
    enum Part { case kept(DirectoryPartName), made(first: Int64, lines: String) }
    var parts: [Part] = []
    /// Parts of the shared store's version that this one does not contain.
    var dropped: [DirectoryPartName] = []
    /// The contacts of the new parts, ascending.
    var made = ContactList()
    /// Holds the version before the import.
    var change: Change
  }

  static func makeShared(_ database: Database) throws {
    try database.execute(
      sql: """
        ALTER TABLE scope ADD COLUMN base INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE scope ADD COLUMN whole INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE clock ADD COLUMN slot INTEGER NOT NULL DEFAULT 0;
        """)
  }

  /// Directories that nodes merged until then become each node's own: one of the nodes writes them to the shared store.
  static func makeOwned(_ database: Database) throws {
    try database.execute(
      sql: """
        ALTER TABLE scope DROP COLUMN whole;
        ALTER TABLE clock DROP COLUMN slot;
        ALTER TABLE scope ADD COLUMN shared_version INTEGER NOT NULL DEFAULT 0;
        UPDATE scope SET base = 0;
        CREATE TABLE part (
          scope INTEGER NOT NULL, first INTEGER NOT NULL, name TEXT NOT NULL, PRIMARY KEY (scope, first)) WITHOUT ROWID;
        CREATE TABLE gap (
          scope INTEGER NOT NULL, low INTEGER NOT NULL, high INTEGER NOT NULL, PRIMARY KEY (scope, high)) WITHOUT ROWID;
        """)
  }

  func syncState(_ scope: String) throws -> SyncState {
    try read("directory") { database in
      let row = try Row.fetchOne(
        database.cachedStatement(sql: "SELECT version, base, shared_version FROM scope WHERE name = ?"), arguments: [scope])
      return row.map { SyncState(version: $0[0], base: $0[1], sharedStore: $0[2]) } ?? SyncState()
    }
  }

  /// The sync state of every local directory.
  func syncStates() throws -> [String: SyncState] {
    try read("directories") { database in
      let rows = try Row.fetchAll(database, sql: "SELECT name, version, base, shared_version FROM scope")
      let all = rows.map { ($0[0] as String, SyncState(version: $0[1], base: $0[2], sharedStore: $0[3])) }
      return Dictionary(all) { first, _ in first }
    }
  }

  /// Directories that were made here and are not in the shared store.
  func ownScopes() throws -> [String] {
    try read("directories") {
      try String.fetchAll($0, sql: "SELECT name FROM scope WHERE base = 0 AND version > 0 ORDER BY version")
    }
  }

  /// Notes the shared store's versions of these directories.
  func saw(_ versions: [String: Int]) throws {
    guard !versions.isEmpty else { return }
    try write("directories") { database in
      let statement = try database.makeStatement(
        sql: "UPDATE scope SET shared_version = ? WHERE name = ? AND shared_version <> ?")
      for (scope, version) in versions { try statement.execute(arguments: [version, scope, version]) }
    }
  }

  /// Marks the directories that the shared store has lost, or all, as made here: this node writes them to the shared store unless
  /// it has a readable version. Returns how many.
  public func restore(all: Bool = false) throws -> Int {
    try write("directories") { database in
      try database.execute(sql: "UPDATE scope SET base = 0 WHERE base > 0 AND (shared_version = 0 OR ?)", arguments: [all])
      return database.changesCount
    }
  }

  /// The highest version that any local directory ever had.
  func highest() throws -> Int {
    try read("directories") { try Int.fetchOne($0, sql: "SELECT version FROM clock") ?? 0 }
  }

  /// True if devices may have this or a later version, of this directory or of another that they have: they would never be
  /// notified of it.
  func isLate(_ version: Int, _ scope: String) throws -> Bool {
    try read("directories") { database in
      let accounts = "name >= 'account:' AND name < 'account;'"
      let highest = try Int.fetchOne(
        database,
        sql: "SELECT max(version) FROM scope WHERE name = ? OR (\(accounts)) OR ? = 1",
        arguments: [scope, scope.hasPrefix("account:") ? 1 : 0])
      return version <= highest ?? 0
    }
  }

  func partNames(_ scope: String) throws -> [DirectoryPartName] {
    try read("directory") { database in
      guard let row = try Self.scope(scope, database) else { return [] }
      return try Self.partNames(row.id, database)
    }
  }

  private static func partNames(_ scope: Int64, _ database: Database) throws -> [DirectoryPartName] {
    try Row.fetchAll(
      database.cachedStatement(sql: "SELECT first, name FROM part WHERE scope = ? ORDER BY first"), arguments: [scope]
    ).map { DirectoryPartName(first: $0[0], name: $0[1]) }
  }

  // MARK: importing

  /// Computes the version that an import would make. Changes nothing.
  ///
  /// - Parameter isWhole: no part of the shared store's version is kept: it differs from this node's, or there is none.
  func draft(_ list: ContactList, into scope: String, replaces: Bool, isWhole: Bool) throws -> Draft {
    try read("directory") { database in
      var row = try Self.scope(scope, database) ?? Self.unmade(scope, database)
      let difference =
        replaces ? try difference(list, in: row.id, database) : try Self.named(list, in: row.id, database)
      row.entries += difference.added - difference.removed.count
      try Self.checkRoom(row, database)
      let change = Change(
        version: row.version, entries: row.entries, added: difference.added,
        changed: difference.stored.count - difference.added, removed: difference.removed.count)
      var draft = Draft(change: change)
      let parts = try Self.partNames(row.id, database)
      if isWhole {
        draft.dropped = parts
        try make(from: .min, to: .max, changes: Changes(difference, list), in: row.id, into: &draft, database)
      } else {
        try copy(parts, changes: Changes(difference, list), in: row.id, into: &draft, database)
      }
      try draft.made.finish()
      return draft
    }
  }

  /// Changes to contacts, ascending; a nil contact is removed.
  private struct Changes {
    private var all: [(number: Int64, contact: Contact?)]
    private(set) var next = 0

    init(_ difference: Difference, _ list: ContactList) {
      all = difference.removed.map { ($0, nil) }
      all.reserveCapacity(all.count + difference.stored.count)
      for position in difference.stored {
        let contact = list.contact(position).contact
        all.append((contact.number, contact))
      }
      if !difference.removed.isEmpty { all.sort { $0.number < $1.number } }
    }
    var number: Int64? { next < all.count ? all[next].number : nil }
    mutating func popFirst() -> Contact? {
      next += 1
      return all[next - 1].contact
    }
  }

  /// Keeps the parts whose contacts do not change, and makes those between them again.
  private func copy(
    _ parts: [DirectoryPartName], changes: Changes, in scope: Int64, into draft: inout Draft, _ database: Database
  ) throws {
    var (changes, index) = (changes, 0)
    func end(_ index: Int) -> Int64 { index + 1 < parts.count ? parts[index + 1].first : .max }
    if parts.isEmpty { return try make(from: .min, to: .max, changes: changes, in: scope, into: &draft, database) }
    while index < parts.count {
      guard let number = changes.number, number < end(index) else {
        draft.parts.append(.kept(parts[index]))
        index += 1
        continue
      }
      let start = index == 0 ? .min : parts[index].first
      // all adjacent changed parts together, so that shrunken parts become one
      var last = index
      var scout = changes
      while last < parts.count, let number = scout.number, number < end(last) {
        while let number = scout.number, number < end(last) { _ = (number, scout.popFirst()) }
        draft.dropped.append(parts[last])
        last += 1
      }
      try make(from: start, to: end(last - 1), changes: changes, in: scope, into: &draft, database)
      changes = scout
      index = last
    }
  }

  /// Makes parts of the contacts from `start` to below `end`.
  private func make(
    from start: Int64, to end: Int64, changes: Changes, in scope: Int64, into draft: inout Draft, _ database: Database
  ) throws {
    var changes = changes
    var (lines, first, count) = ("", 0 as Int64, 0)
    func close() {
      if count > 0 { draft.parts.append(.made(first: first, lines: lines)) }
      lines = ""
      count = 0
    }
    func add(_ contact: Contact) throws {
      let line = DirectoryText.line(contact)
      if count == Limits.sharedPartContacts || lines.utf8.count + line.utf8.count > Limits.sharedPartBytes { close() }
      if count == 0 { first = contact.number }
      lines += line
      count += 1
      try draft.made.add(contact)
      if draft.made.count.isMultiple(of: Limits.rowsPerSign) { makesProgress() }
    }
    let rows = try Row.fetchCursor(
      database,
      sql: "SELECT number, label, blocked FROM contact WHERE scope = ? AND number >= ? AND number < ? ORDER BY number",
      arguments: [scope, start, end])
    while let row = try rows.next() {
      let stored = Contact(row[0], label: row[1], isBlocked: row[2])
      while let number = changes.number, number < stored.number, let contact = changes.popFirst() { try add(contact) }
      if changes.number == stored.number {
        if let contact = changes.popFirst() { try add(contact) }
      } else {
        try add(stored)
      }
    }
    while let number = changes.number, number < end {
      if let contact = changes.popFirst() { try add(contact) }
    }
    close()
  }

  // MARK: applying

  /// Applies a version of the shared store.
  ///
  /// - Parameters:
  ///   - made: the contacts of its parts that `before` does not contain.
  ///   - before: `partNames` as they were read; empty: no local contact counts.
  func next(
    _ head: DirectoryHead, parts: [DirectoryPartName], made: ContactList, before: [DirectoryPartName], in scope: String
  )
    throws
  {
    try write("directory") { database in
      var row = try Self.scope(scope, database) ?? Self.make(scope, database)
      let isCopy = row.base > 0 && row.base == row.version
      let old = isCopy ? try Self.partNames(row.id, database) : []
      guard old == before else { throw StoreError("it has changed meanwhile") }
      let names = Set(parts)
      let difference = try difference(made, within: Self.ranges(of: old, without: names), in: row.id, database)
      row.entries += difference.added - difference.removed.count
      guard row.entries == head.contacts else { throw StoreError("its contacts are not those of its head") }
      try Self.checkRoom(row, database)
      try apply(difference, of: made, in: row.id, database)
      let numbers = difference.removed + difference.stored.map { made.contact($0).contact.number }
      let last = row.version
      row.version = head.version
      if isCopy {
        try Self.log(numbers, &row, database)
        if head.from != last {
          // This node never had the versions between: a device with one of them gets the whole directory.
          try database.execute(sql: "INSERT OR REPLACE INTO gap VALUES (?, ?, ?)", arguments: [row.id, last, head.version])
        }
      } else {
        try database.execute(sql: "DELETE FROM change WHERE scope = ?", arguments: [row.id])
        row.floor = row.version
        row.logged = 0
      }
      try database.execute(sql: "DELETE FROM gap WHERE scope = ? AND high <= ?", arguments: [row.id, row.floor])
      try Self.store(row, database)
      try database.execute(
        sql: "UPDATE scope SET base = ?, shared_version = ? WHERE id = ?", arguments: [head.version, head.version, row.id])
      try database.execute(sql: "UPDATE clock SET version = max(version, ?)", arguments: [head.version])
      try Self.replace(Set(old), by: names, in: row.id, database)
    }
  }

  private static func replace(
    _ old: Set<DirectoryPartName>, by new: Set<DirectoryPartName>, in scope: Int64, _ database: Database
  ) throws {
    if old.isEmpty { try database.execute(sql: "DELETE FROM part WHERE scope = ?", arguments: [scope]) }
    let delete = try database.cachedStatement(sql: "DELETE FROM part WHERE scope = ? AND first = ?")
    for part in old.subtracting(new) { try delete.execute(arguments: [scope, part.first]) }
    let insert = try database.cachedStatement(sql: "INSERT OR REPLACE INTO part VALUES (?, ?, ?)")
    for part in new.subtracting(old) { try insert.execute(arguments: [scope, part.first, part.name]) }
  }

  /// The number ranges of the parts that were dropped.
  private static func ranges(of parts: [DirectoryPartName], without kept: Set<DirectoryPartName>) -> [Range<Int64>] {
    if parts.isEmpty { return [.min..<(.max)] }
    var out: [Range<Int64>] = []
    for (index, part) in parts.enumerated() where !kept.contains(part) {
      let end = index + 1 < parts.count ? parts[index + 1].first : .max
      if let last = out.last, last.upperBound == part.first {
        out[out.count - 1] = last.lowerBound..<end
      } else {
        out.append(part.first..<end)
      }
    }
    return out
  }

  private func difference(
    _ list: ContactList, within ranges: [Range<Int64>], in scope: Int64, _ database: Database
  ) throws -> Difference {
    var out = Difference()
    var (position, count) = (0, 0)
    let statement = try database.cachedStatement(
      sql: "SELECT number, label, blocked FROM contact WHERE scope = ? AND number >= ? AND number < ? ORDER BY number")
    for range in ranges {
      let rows = try Row.fetchCursor(statement, arguments: [scope, range.lowerBound, range.upperBound])
      while let row = try rows.next() {
        out.compare(Contact(row[0], label: row[1], isBlocked: row[2]), with: list, &position)
        count += 1
        if count.isMultiple(of: Limits.rowsPerSign) { makesProgress() }
      }
    }
    out.finish(list, position)
    return out
  }

  /// Whether this node never had a device's version, but had an earlier and a later one.
  static func isInGap(_ version: Int, of scopes: [Int64], _ database: Database) throws -> Bool {
    let list = scopes.map(String.init).joined(separator: ",")
    return try Bool.fetchOne(
      database, sql: "SELECT EXISTS (SELECT 1 FROM gap WHERE scope IN (\(list)) AND low < ? AND high > ?)",
      arguments: [version, version]) ?? false
  }
}
