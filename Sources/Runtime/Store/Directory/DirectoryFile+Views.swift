import AppSessions
import GRDB
import TrunklineAppProtocol
import TrunklineBytes

/// A device's view of its directories, merged, with one version.
///
/// The version is the highest of the device's directories, or the one from which on it has exactly these directories (`since`): a
/// token that names other accounts makes a new version, which has no difference to an older one.
extension DirectoryFile {
  /// The device's version, or where the last answer ended.
  struct Question {
    var have: Int?
    var version: Int?
    var after: Int64?
    /// Contacts in an answer by HTTP; nil: as many parts as one answer over a socket has.
    var page: Int?
    /// The nodes of a cluster share directories: no view is stored, and the device itself states the directories (`of`) of its
    /// version.
    var isShared: Bool
    var of: String?
    init(_ get: DirectoryGet, isShared: Bool = false) {
      (have, version, after, of, self.isShared) = (get.have, get.version, get.after, get.of, isShared)
    }
    init(version: Int?, after: Int64?, page: Int, isShared: Bool = false) {
      (self.version, self.after, self.page, self.isShared) = (version, after, page, isShared)
    }
  }
  struct Answer: Sendable {
    var answer: DirectoryAnswer
    var parts: [DirectoryPart]
  }
  private struct View {
    /// The existing directories, in order.
    var scopes: [Scope]
    var version: Int
    /// The device's version can be changed into this one.
    var hasDifference: Bool
  }

  /// - Parameter now: milliseconds since 1970.
  func answer(_ question: Question, to device: DeviceKey, accounts: [String], now: Int64) throws -> Answer {
    // a snapshot does not wait for the import of another process: an answer seldom writes
    try snapshot { database in
      if question.isShared { return try sharedAnswer(question, for: device, accounts: accounts, database) }
      let view = try self.view(question.have, for: device, accounts: accounts, at: now, database)
      if question.have == view.version || view.version == 0 {
        return Answer(answer: DirectoryAnswer(version: view.version, parts: 0), parts: [])
      }
      return try parts(question, view, of: nil, database)
    }
  }

  private func parts(_ question: Question, _ view: View, of mark: String?, _ database: Database) throws -> Answer {
    let after = question.version == view.version ? question.after ?? 0 : 0
    let scopes = view.scopes.map(\.id)
    if view.hasDifference, let have = question.have {
      var parts = Parts(DirectoryPart(version: view.version, from: have, of: mark), page: question.page)
      let next = try self.difference(since: have, after: after, of: scopes, into: &parts, database)
      return parts.answer(next)
    }
    let key = DirectoryAnswers.Key(
      scopes: view.scopes.flatMap { [$0.id, Int64($0.version)] }, version: view.version, mark: mark, after: after,
      page: question.page)
    if let known = answers.withLock({ $0.known(key) }) { return known }
    var parts = Parts(DirectoryPart(version: view.version, of: mark), page: question.page)
    let next = try all(after: after, of: scopes, into: &parts, database)
    let answer = parts.answer(next)
    answers.withLock { $0.keep(answer, for: key) }
    return answer
  }

  /// For directories that nodes share. The device's version counts if it is of the same directories. If this node does not have
  /// that version yet, it is a later one, and the difference is sent once the node has it.
  private func sharedAnswer(_ question: Question, for device: DeviceKey, accounts: [String], _ database: Database) throws
    -> Answer
  {
    let mark = Self.mark(device, accounts)
    let scopes = try DirectoryScope.of(device, accounts: accounts).compactMap { try Self.scope($0, database) }
    let newest = scopes.map(\.version).max() ?? 0
    let have = question.of == mark ? question.have : nil
    if let have, have >= newest { return Answer(answer: DirectoryAnswer(version: have, of: mark, parts: 0), parts: []) }
    if newest == 0, question.have ?? 0 == 0 {
      return Answer(answer: DirectoryAnswer(version: 0, of: mark, parts: 0), parts: [])
    }
    // a device whose directories have changed gets a later version, which no directory will ever have
    let old = question.have ?? 0
    let version = newest > old || old > Limits.ownVersions ? newest : old + 1 + (old & 1)
    // a directory that is not in the shared store yet has no difference to versions from other nodes
    let floor = scopes.map { $0.base == 0 ? $0.version : $0.floor }.max() ?? 0
    var hasDifference = false
    if let have, have >= floor, have > 0 { hasDifference = try !Self.isInGap(have, of: scopes.map(\.id), database) }
    let view = View(scopes: scopes, version: version, hasDifference: hasDifference)
    return try parts(question, view, of: mark, database)
  }

  /// The version and the mark of a device's directories, in a cluster.
  func sharedVersion(of device: DeviceKey, accounts: [String]) throws -> (version: Int, of: String) {
    try read("directory") { database in
      let scopes = try DirectoryScope.of(device, accounts: accounts).compactMap { try Self.scope($0, database) }
      return (scopes.map(\.version).max() ?? 0, Self.mark(device, accounts))
    }
  }

  /// A short text that identifies a device's directories, in order: the same at all nodes (FNV-1a of 64 bits).
  static func mark(_ device: DeviceKey, _ accounts: [String]) -> String {
    String(FNV1a(text(device, accounts).utf8).value, radix: 36)
  }

  /// The version that a device would get now; nil if its directories are still the same.
  func viewChanged(_ device: DeviceKey, accounts: [String], now: Int64) throws -> Int? {
    let known = try read("directory") { database in
      try String.fetchOne(
        database.cachedStatement(sql: "SELECT scopes FROM view WHERE user = ? AND device = ?"),
        arguments: [device.user, device.device])
    }
    guard let known, known != Self.text(device, accounts) else { return nil }
    return try write("directory") { database in
      let since = try Self.nextVersion(database, now: now)
      try Self.store(device, accounts: accounts, since: since, at: now, database)
      return since
    }
  }

  /// Deletes the oldest views beyond `Limits.views`.
  func trimViews() throws {
    try write("directory") { database in
      let count = try Int.fetchOne(database, sql: "SELECT count(*) FROM view") ?? 0
      guard count > Limits.views else { return }
      try database.execute(
        sql: "DELETE FROM view WHERE (user, device) IN (SELECT user, device FROM view ORDER BY seen LIMIT ?)",
        arguments: [count - Limits.views])
    }
  }

  static func text(_ device: DeviceKey, _ accounts: [String]) -> String {
    DirectoryScope.of(device, accounts: accounts).joined(separator: "\n")
  }

  private static func store(_ device: DeviceKey, accounts: [String], since: Int, at now: Int64, _ database: Database) throws {
    try database.cachedStatement(sql: "INSERT OR REPLACE INTO view VALUES (?, ?, ?, ?, ?)").execute(
      arguments: [device.user, device.device, text(device, accounts), since, now])
  }

  private func view(
    _ have: Int?, for device: DeviceKey, accounts: [String], at now: Int64, _ database: Database
  ) throws -> View {
    let scopes = try DirectoryScope.of(device, accounts: accounts).compactMap { try Self.scope($0, database) }
    let newest = scopes.map(\.version).max() ?? 0
    let row = try Row.fetchOne(
      database.cachedStatement(sql: "SELECT scopes, since FROM view WHERE user = ? AND device = ?"),
      arguments: [device.user, device.device])
    let isSame = (row?["scopes"] as String?) == Self.text(device, accounts)
    var since = 0
    if isSame, let row { since = row["since"] }
    // a device with a version that is unknown here gets a version that surely differs
    let isStrange = !isSame && (row != nil || have != nil) || have ?? 0 > max(newest, since)
    if isStrange { since = try Self.nextVersion(database, now: max(now, Int64(clamping: (have ?? 0) &+ 1))) }
    if isStrange || row == nil { try Self.store(device, accounts: accounts, since: since, at: now, database) }
    let floor = max(since, scopes.map(\.floor).max() ?? 0)
    return View(
      scopes: scopes, version: max(newest, since), hasDifference: !isStrange && have.map { $0 >= floor && $0 > 0 } ?? false)
  }

  /// The current contacts of the numbers that have changed since a version.
  private func difference(
    since have: Int, after: Int64, of scopes: [Int64], into parts: inout Parts, _ database: Database
  ) throws -> Int64? {
    let list = scopes.map(String.init).joined(separator: ",")
    let numbers = try Int64.fetchAll(
      database,
      sql: """
        SELECT DISTINCT number FROM change WHERE scope IN (\(list)) AND version > ? AND number > ? ORDER BY number LIMIT ?
        """, arguments: [have, after, Limits.directoryRows])
    let find = try database.cachedStatement(sql: "SELECT label, blocked FROM contact WHERE scope = ? AND number = ?")
    for number in numbers {
      var (label, isBlocked): (String?, Bool) = (nil, false)
      for scope in scopes {
        guard let row = try Row.fetchOne(find, arguments: [scope, number]) else { continue }
        label = label ?? row[0]
        isBlocked = isBlocked || row[1]
      }
      guard parts.add(Contact(number, label: label, isBlocked: isBlocked), isDifference: true) else { return parts.last }
    }
    return numbers.count == Limits.directoryRows ? parts.last : nil
  }

  /// The contacts of the merged directories after a number.
  private func all(after: Int64, of scopes: [Int64], into parts: inout Parts, _ database: Database) throws -> Int64? {
    let statement = try database.cachedStatement(
      sql: "SELECT number, label, blocked FROM contact WHERE scope = ? AND number > ? ORDER BY number LIMIT ?")
    var start = after
    while true {
      var rows: [[Contact]] = []
      for scope in scopes {
        rows.append(
          try Row.fetchAll(statement, arguments: [scope, start, Limits.directoryRows]).map {
            Contact($0[0], label: $0[1], isBlocked: $0[2])
          })
      }
      // contacts beyond the last fetched row of a scope are not known yet
      let end = rows.compactMap { $0.count == Limits.directoryRows ? $0.last?.number : nil }.min()
      var cursors = [Int](repeating: 0, count: rows.count)
      while true {
        let next = rows.indices.compactMap { cursors[$0] < rows[$0].count ? rows[$0][cursors[$0]].number : nil }.min()
        guard let next, next <= end ?? .max else { break }
        var merged = Contact(next)
        for index in rows.indices where cursors[index] < rows[index].count && rows[index][cursors[index]].number == next {
          merged.label = merged.label ?? rows[index][cursors[index]].label
          merged.isBlocked = merged.isBlocked || rows[index][cursors[index]].isBlocked
          cursors[index] += 1
        }
        guard parts.add(merged, isDifference: false) else { return parts.last }
      }
      guard let end else { return nil }
      start = end
    }
  }
}

/// Builds the parts of an answer.
private struct Parts {
  private let empty: DirectoryPart
  private let page: Int?
  private var done: [DirectoryPart] = []
  private var part: DirectoryPart
  private var bytes = 0
  private var count = 0
  /// The last number added.
  private(set) var last: Int64 = 0

  init(_ empty: DirectoryPart, page: Int?) { (self.empty, part, self.page) = (empty, empty, page) }

  /// False: the answer is full; the contact was not added.
  mutating func add(_ contact: Contact, isDifference: Bool) -> Bool {
    let cost = 40 + (contact.label?.utf8.count ?? 0)
    if let page {
      guard count < page else { return false }
    } else if bytes + cost > Limits.directoryPartBytes {
      guard done.count + 1 < Limits.directoryParts else { return false }
      done.append(part)
      part = empty
      bytes = 0
    }
    (bytes, count, last) = (bytes + cost, count + 1, contact.number)
    if contact.isBlocked {
      Self.append(contact.number, to: &part.block)
    } else if isDifference {
      Self.append(contact.number, to: &part.unblock)
    }
    if let label = contact.label {
      Self.append(.init(contact.number, label), to: &part.identify)
    } else if isDifference {
      Self.append(contact.number, to: &part.unidentify)
    }
    return true
  }

  private static func append<Element>(_ element: Element, to list: inout [Element]?) {
    if list == nil { list = [element] } else { list?.append(element) }
  }

  /// A full directory without a contact also has one part.
  func answer(_ next: Int64?) -> DirectoryFile.Answer {
    let all = done + [part]
    return .init(
      answer: DirectoryAnswer(version: empty.version, from: empty.from, of: empty.of, parts: all.count, next: next), parts: all)
  }
}
