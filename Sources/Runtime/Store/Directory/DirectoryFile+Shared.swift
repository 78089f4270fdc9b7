import GRDB

/// Directories that the nodes of a cluster share: each node has them all in its file, and `base` says which version the engine had when this
/// file's was made of it. A version that is not `base` is not in the engine yet.
///
/// What is not in the engine yet is *pending*: the numbers that changes since `base` name, each with the version of its last change; or, of an
/// import that replaced the directory (`whole` is its version), or of more changes than are kept, the whole.
///
/// | of a number that both sides have changed | stays |
/// |---|---|
/// | here and in the engine | the later version |
/// | before a whole import of either side | what the import says |
///
/// What is left after merging is a new version, and counts as of then.
extension DirectoryFile {
  /// How a directory here stands to the engine's.
  struct Standing: Equatable {
    var version = 0
    /// 0: the engine's was never seen.
    var base = 0
    var isPending: Bool { version != base }
  }
  /// What others have made of a number since `base`, and by which version. Nil: removed.
  struct Incoming: Equatable {
    var contact: Contact?
    var version: Int
  }
  /// What is to go to the engine.
  enum Outgoing {
    /// In order; nil: removed.
    case changes([(number: Int64, contact: Contact?)], replaces: Bool)
    case whole
  }
  private struct Pending {
    var numbers: [Int64: Int] = [:]
    /// Version of a whole import; 0: there is none.
    var whole = 0
    /// What is here was said of the number last by this version.
    func version(of number: Int64) -> Int { max(whole, numbers[number] ?? 0) }
    var isEmpty: Bool { whole == 0 && numbers.isEmpty }
  }

  static func makeShared(_ database: Database) throws {
    try database.execute(
      sql: """
        ALTER TABLE scope ADD COLUMN base INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE scope ADD COLUMN whole INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE clock ADD COLUMN slot INTEGER NOT NULL DEFAULT 0;
        """)
  }

  /// From now on the file is that of a node: two nodes' versions differ, unless their names have the same hash, which those of 1 of 127 pairs have.
  func share(as node: String) throws {
    let hash = node.utf8.reduce(0xcbf2_9ce4_8422_2325 as UInt64) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 }
    try write("directories") { database in
      let slot = Int(hash % UInt64(Limits.versionSlots / 2 - 1)) + 1
      try database.execute(sql: "UPDATE clock SET slot = ?", arguments: [slot])
    }
  }

  func standing(_ scope: String) throws -> Standing {
    try read("directory") { database in
      let row = try Row.fetchOne(
        database.cachedStatement(sql: "SELECT version, base FROM scope WHERE name = ?"), arguments: [scope])
      return row.map { Standing(version: $0[0], base: $0[1]) } ?? Standing()
    }
  }

  func pendingScopes() throws -> [String] {
    try read("directories") { try String.fetchAll($0, sql: "SELECT name FROM scope WHERE version <> base ORDER BY version") }
  }

  /// The engine has `version` of this directory from here. When it had none, older versions are of another life of it.
  func confirm(_ scope: String, _ version: Int) throws {
    try write("directory") { database in
      try database.execute(
        sql: "UPDATE scope SET floor = CASE base WHEN 0 THEN max(floor, ?) ELSE floor END, base = ? WHERE name = ?",
        arguments: [version, version, scope])
    }
  }

  /// Versions that others have made: those made here are later.
  func heard(_ version: Int) throws {
    guard try read("directories", { try Int.fetchOne($0, sql: "SELECT version FROM clock") ?? 0 }) < version else { return }
    try write("directories") { try Self.raise(to: version, $0) }
  }

  private static func raise(to version: Int, _ database: Database) throws {
    try database.execute(sql: "UPDATE clock SET version = max(version, ?)", arguments: [version])
  }

  /// What the engine, which has `base`, does not have.
  func outgoing(_ scope: String) throws -> Outgoing {
    try read("directory") { database in
      guard let row = try Self.scope(scope, database) else { return .whole }
      let (base, whole) = try Self.marks(row.id, database)
      guard base > 0, row.floor <= base else { return .whole }
      let numbers = try Int64.fetchAll(
        database, sql: "SELECT DISTINCT number FROM change WHERE scope = ? AND version > ? ORDER BY number LIMIT ?",
        arguments: [row.id, base, Limits.loggedPerImport + 1])
      guard numbers.count <= Limits.loggedPerImport else { return .whole }
      return .changes(
        try numbers.map { ($0, try Self.contact($0, row.id, database)) }, replaces: whole > base)
    }
  }

  /// Contacts of a directory from a number on; nil: it has another version by now.
  func contacts(_ scope: String, version: Int, after: Int64, limit: Int) throws -> [Contact]? {
    try read("directory") { database in
      guard let row = try Self.scope(scope, database), row.version == version else { return nil }
      return try Row.fetchAll(
        database.cachedStatement(
          sql: "SELECT number, label, blocked FROM contact WHERE scope = ? AND number > ? ORDER BY number LIMIT ?"),
        arguments: [row.id, after, limit]
      ).map { Contact($0[0], label: $0[1], isBlocked: $0[2]) }
    }
  }

  /// The engine had another directory's later version when this one's came: it gets a version that is later than `last`. What devices have
  /// been told of it here they are told again.
  func renumber(_ scope: String, after last: Int, now: Int64) throws {
    try write("directory") { database in
      guard var row = try Self.scope(scope, database) else { return }
      let (base, whole) = try Self.marks(row.id, database)
      // room for versions that other nodes make meanwhile
      row.version = try Self.nextVersion(database, now: max(now, Int64(last + Limits.versionStep)))
      try database.execute(
        sql: "UPDATE OR REPLACE change SET version = ? WHERE scope = ? AND version > ?", arguments: [row.version, row.id, base])
      if row.floor > base { row.floor = row.version }
      try Self.store(row, database)
      if whole > base { try Self.mark(row.id, base: base, whole: row.version, database) }
    }
  }

  /// Takes what others have changed from `base` to `version`, and keeps what is pending and later.
  ///
  /// - Parameter replaced: the last of the changes that replaced the whole directory; 0: none.
  /// - Returns: false: nothing was done; the whole directory is needed to tell what stays.
  func merge(_ scope: String, _ incoming: [Int64: Incoming], replaced: Int, to version: Int, now: Int64) throws -> Bool {
    try write("directory") { database in
      var row = try Self.scope(scope, database) ?? Self.make(scope, database)
      let pending = try Self.pending(row, database)
      if replaced > 0, replaced >= pending.whole, !pending.isEmpty { return false }
      let taken = incoming.filter { $0.value.version >= pending.version(of: $0.key) }
      let list = try Self.list(taken.map { ($0.key, $0.value.contact) })
      let difference = try Self.named(list, row.id, database)
      try replaceContacts(difference, list, &row, database)
      let isLate = try Self.isLate(version, row, !difference.isEmpty, database)
      let isPending = isLate || pending.whole > replaced || pending.numbers.keys.contains { taken[$0] == nil }
      try Self.raise(to: version, database)
      row.version = isPending ? try Self.nextVersion(database, now: now) : version
      if pending.whole > replaced, row.floor > (try Self.marks(row.id, database).base) { row.floor = row.version }
      try Self.log(Set(incoming.keys).union(pending.numbers.keys).sorted(), &row, database)
      try Self.store(row, database)
      try Self.mark(row.id, base: version, whole: isPending && pending.whole > replaced ? row.version : 0, database)
      return true
    }
  }

  /// Takes the engine's whole directory, and keeps what is pending and later. Devices get it whole.
  ///
  /// - Parameters:
  ///   - changed: by which version others have changed a number, as far as it is known.
  ///   - replaced: the last of their changes that replaced the directory; nil: it is not known what they changed.
  ///   - isBroken: what is here was the engine's and is lost there: devices may have it, and get the whole at every node.
  func take(
    whole list: ContactList, _ scope: String, changed: [Int64: Incoming], replaced: Int?, isBroken: Bool, version: Int, now: Int64
  ) throws {
    try write("directory") { database in
      var row = try Self.scope(scope, database) ?? Self.make(scope, database)
      let pending = try Self.pending(row, database)
      let theirs = replaced ?? (pending.whole > 0 ? version : 0)
      try Self.raise(to: version, database)
      if pending.whole > theirs {
        // all of it is later: the engine gets it whole
        row.version = try Self.nextVersion(database, now: now)
        row.floor = row.version
        try Self.store(row, database)
        return try Self.mark(row.id, base: version, whole: row.version, database)
      }
      let kept = pending.numbers.filter { $0.value > theirs && $0.value > changed[$0.key]?.version ?? 0 }
      let own = try Dictionary(
        uniqueKeysWithValues: kept.keys.map { ($0, try Self.contact($0, row.id, database)) })
      let merged = try list.overlaid(by: own)
      let difference = try Self.difference(merged, row.id, database)
      try replaceContacts(difference, merged, &row, database)
      let isLate = try Self.isLate(version, row, !difference.isEmpty, database)
      // what was pending and goes has been told to devices, which may be at any node by now
      let isPending =
        isLate || ((isBroken || !pending.isEmpty) && !difference.isEmpty) || merged.count != list.count
        || own.contains { list.find($0.key) != $0.value }
      row.version = isPending ? try Self.nextVersion(database, now: now) : version
      try database.execute(sql: "DELETE FROM change WHERE scope = ?", arguments: [row.id])
      (row.floor, row.logged) = (row.version, 0)
      try Self.store(row, database)
      try Self.mark(row.id, base: version, whole: 0, database)
    }
  }

  // MARK: rows

  /// Devices here may have a version that is no older, of this directory or of one that they have beside it: they would never hear of this one.
  private static func isLate(_ version: Int, _ row: Scope, _ isOther: Bool, _ database: Database) throws -> Bool {
    guard isOther else { return false }
    if version <= row.version { return true }
    let accounts = "name >= 'account:' AND name < 'account;'"
    let highest = try Int.fetchOne(
      database,
      sql: """
        SELECT max(version) FROM scope WHERE id <> ?
        AND (\(accounts) OR EXISTS (SELECT 1 FROM scope WHERE id = ? AND \(accounts)))
        """, arguments: [row.id, row.id])
    return version <= highest ?? 0
  }

  private static func marks(_ scope: Int64, _ database: Database) throws -> (base: Int, whole: Int) {
    let row = try Row.fetchOne(
      database.cachedStatement(sql: "SELECT base, whole FROM scope WHERE id = ?"), arguments: [scope])
    return row.map { ($0[0], $0[1]) } ?? (0, 0)
  }

  private static func mark(_ scope: Int64, base: Int, whole: Int, _ database: Database) throws {
    try database.execute(sql: "UPDATE scope SET base = ?, whole = ? WHERE id = ?", arguments: [base, whole, scope])
  }

  /// An import has replaced the directory.
  static func markReplaced(_ row: Scope, _ database: Database) throws {
    try database.execute(sql: "UPDATE scope SET whole = ? WHERE id = ?", arguments: [row.version, row.id])
  }

  private static func contact(_ number: Int64, _ scope: Int64, _ database: Database) throws -> Contact? {
    try Row.fetchOne(
      database.cachedStatement(sql: "SELECT label, blocked FROM contact WHERE scope = ? AND number = ?"),
      arguments: [scope, number]
    ).map { Contact(number, label: $0[0], isBlocked: $0[1]) }
  }

  private static func pending(_ row: Scope, _ database: Database) throws -> Pending {
    let (base, whole) = try marks(row.id, database)
    guard row.version != base else { return Pending() }
    var out = Pending()
    out.whole = row.floor > base ? row.version : whole > base ? whole : 0
    let rows = try Row.fetchCursor(
      database, sql: "SELECT number, max(version) FROM change WHERE scope = ? AND version > ? GROUP BY number",
      arguments: [row.id, base])
    while let change = try rows.next() { out.numbers[change[0]] = change[1] }
    return out
  }

  private static func list(_ contacts: [(Int64, Contact?)]) throws -> ContactList {
    var list = ContactList()
    for (number, contact) in contacts { try list.add(contact ?? Contact(number), isRemoved: contact == nil) }
    try list.finish()
    return list
  }

  /// Within the limits of an import.
  private func replaceContacts(
    _ difference: Difference, _ list: ContactList, _ row: inout Scope, _ database: Database
  ) throws {
    row.entries += difference.added - difference.removed.count
    try Self.checkRoom(row, database)
    try apply(difference, list, row.id, database)
  }
}

extension ContactList {
  /// In the order of numbers, with some contacts replaced, added or, where nil, removed.
  func overlaid(by changes: [Int64: Contact?]) throws(Fault) -> ContactList {
    guard !changes.isEmpty else { return self }
    var out = ContactList()
    for place in 0..<count where changes[contact(place).contact.number] == nil { try out.add(contact(place).contact) }
    for case let changed? in changes.values { try out.add(changed) }
    try out.finish()
    return out
  }

  /// By bisection.
  func find(_ number: Int64) -> Contact? {
    var (low, high) = (0, count)
    while low < high {
      let middle = (low + high) / 2
      let found = contact(middle).contact
      if found.number == number { return found }
      if found.number < number { low = middle + 1 } else { high = middle }
    }
    return nil
  }
}
