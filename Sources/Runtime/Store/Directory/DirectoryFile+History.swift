import AppSessions
import CallModel
import Foundation
import GRDB
import TrunklineAppProtocol

/// How long calls stay in their users' histories (`history:`).
public struct HistorySettings: Sendable, Equatable {
  public var keep: Duration
  public var perUser: Int
  public init(keep: Duration = .seconds(90 * 86_400), perUser: Int = 1_000) { (self.keep, self.perUser) = (keep, perUser) }
}

/// Calls by user, made of call records: a row for each user whose devices rang, or who made the call.
extension DirectoryFile {
  static func makeHistory(_ database: Database) throws {
    try database.execute(
      sql: """
        CREATE TABLE history (
          id INTEGER PRIMARY KEY AUTOINCREMENT, user TEXT NOT NULL, call TEXT NOT NULL, direction TEXT NOT NULL, peer TEXT NOT NULL,
          start INTEGER NOT NULL, connect INTEGER, end INTEGER NOT NULL, outcome TEXT NOT NULL, reason TEXT NOT NULL, device TEXT,
          account TEXT);
        CREATE UNIQUE INDEX history_call ON history (user, call);
        CREATE INDEX history_user ON history (user, id);
        CREATE INDEX history_end ON history (end);
        """)
  }

  /// Adds calls that are not stored yet. Returns the newest row of each user who got one.
  func add(_ records: [CallRecord], _ settings: HistorySettings) throws -> [String: Int] {
    guard settings.perUser > 0 else { return [:] }
    return try write("history") { database in
      var newest: [String: Int] = [:]
      for record in records {
        for (user, outcome) in record.outcomes {
          let isIncoming = record.direction == .incoming
          let start = record.times[CallStage.start.rawValue] ?? 0
          try database.cachedStatement(
            sql: """
              INSERT OR IGNORE INTO history (user, call, direction, peer, start, connect, end, outcome, reason, device, account)
              VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
              """
          ).execute(arguments: [
            user, record.call.description, record.direction.rawValue, isIncoming ? record.from : record.to, start,
            record.times[CallStage.connected.rawValue], record.times[CallStage.ended.rawValue] ?? start, outcome.rawValue,
            record.end.reason.rawValue, user == record.user ? record.device : nil, user == record.user ? record.account : nil,
          ])
          if database.changesCount > 0 { newest[user] = Int(database.lastInsertedRowID) }
        }
      }
      for user in newest.keys { try Self.trim(user, most: settings.perUser, database) }
      return newest
    }
  }

  private static func trim(_ user: String, most: Int, _ database: Database) throws {
    let cut = try Int.fetchOne(
      database.cachedStatement(sql: "SELECT id FROM history WHERE user = ? ORDER BY id DESC LIMIT 1 OFFSET ?"),
      arguments: [user, most])
    guard let cut else { return }
    try database.cachedStatement(sql: "DELETE FROM history WHERE user = ? AND id <= ?").execute(arguments: [user, cut])
  }

  /// Drops calls that ended before `keep`. Returns how many.
  @discardableResult func dropOld(_ settings: HistorySettings, now: Int64) throws -> Int {
    try write("history") { database in
      try database.execute(
        sql: "DELETE FROM history WHERE end < ?", arguments: [now - settings.keep.components.seconds * 1_000])
      return database.changesCount
    }
  }

  /// A page of a user's calls with the names of a device's directories, the last call first.
  func page(_ list: HistoryList, of device: DeviceKey, accounts: [String]) throws -> HistoryPage {
    try read("history") { database in
      let limit = min(list.limit ?? Limits.historyPage, Limits.historyPage)
      let rows = try Row.fetchAll(
        database.cachedStatement(sql: "SELECT * FROM history WHERE user = ? AND id < ? ORDER BY id DESC LIMIT ?"),
        arguments: [device.user, list.before ?? Int.max, limit + 1])
      let scopes = try DirectoryScope.of(device, accounts: accounts).compactMap { try Self.scope($0, database)?.id }
      let entries = try rows.prefix(limit).compactMap { row -> HistoryEntry? in
        guard let call = CallID(row["call"] as String) else { return nil }
        let entry = HistoryEntry(
          id: row["id"], call: call, dir: CallSnapshot.Direction(rawValue: row["direction"]) ?? .incoming,
          peer: Self.handle(row["peer"]), start: row["start"], connect: row["connect"], end: row["end"],
          outcome: HistoryEntry.Outcome(rawValue: row["outcome"]) ?? .failed,
          reason: EndReason(rawValue: row["reason"]) ?? .unknown, device: row["device"], acct: row["account"])
        return try see(entry, on: device, in: scopes, database)
      }
      return HistoryPage(calls: entries, next: rows.count > limit ? entries.last?.id : nil)
    }
  }

  /// Calls with the names of a device's directories.
  func seen(_ calls: [HistoryEntry], by device: DeviceKey, accounts: [String]) throws -> [HistoryEntry] {
    try read("directory") { database in
      let scopes = try DirectoryScope.of(device, accounts: accounts).compactMap { try Self.scope($0, database)?.id }
      return try calls.map { try see($0, on: device, in: scopes, database) }
    }
  }

  private func see(_ call: HistoryEntry, on device: DeviceKey, in scopes: [Int64], _ database: Database) throws -> HistoryEntry {
    var entry = call
    if entry.outcome == .answered, let had = entry.device, had != device.device { entry.outcome = .answeredElsewhere }
    if let number = try? ContactList.number(entry.peer.h) { entry.peer.n = try label(of: number, in: scopes, database) }
    return entry
  }

  /// The names of these handles in a device's directories.
  func names(_ handles: [String], of device: DeviceKey, accounts: [String]) throws -> [Handle] {
    try read("directory") { database in
      let scopes = try DirectoryScope.of(device, accounts: accounts).compactMap { try Self.scope($0, database)?.id }
      return try handles.prefix(Limits.resolvedHandles).compactMap { text in
        guard let number = try? ContactList.number(text), let name = try label(of: number, in: scopes, database) else {
          return nil
        }
        return Handle(k: .phone, h: text, n: name)
      }
    }
  }

  static func handle(_ text: String) -> Handle {
    Handle(k: Handle.kind(ofNumber: text), h: text.isEmpty ? "unknown" : text)
  }

  /// How much of a user's data was deleted.
  public struct Erased: Sendable, Equatable, Codable {
    /// Calls of the history, contacts of the user's own directory, devices whose directory was known.
    public var calls = 0
    public var contacts = 0
    public var views = 0
  }

  /// Deletes a user's history and directory. Directories of accounts stay.
  /// - Parameter isCopied: the directory is a copy of the shared store's, which is emptied by an import.
  public func erase(user: String, now: Int64, isCopied: Bool = false) throws -> Erased {
    try write("data of a user") { database in
      var out = Erased()
      try database.execute(sql: "DELETE FROM history WHERE user = ?", arguments: [user])
      out.calls = database.changesCount
      if !isCopied { out.contacts = try empty(DirectoryScope.user(user), now: now, database) }
      try database.execute(sql: "DELETE FROM view WHERE user = ?", arguments: [user])
      out.views = database.changesCount
      return out
    }
  }
}

extension CallRecord {
  /// The outcome of the call for each user involved.
  ///
  /// | user | call | outcome |
  /// |---|---|---|
  /// | `user` of the record | connected to a device | answered |
  /// | `user` of the record | connected to the target of a diversion | diverted |
  /// | `user` of the record | not connected | by the end reason |
  /// | rang before the call was diverted | | diverted |
  /// | rang beside others | connected | answeredElsewhere |
  /// | rang beside others | not connected | by the end reason |
  var outcomes: [(user: String, outcome: HistoryEntry.Outcome)] {
    // a test call belongs to no user's history
    guard let user, !isTest else { return [] }
    let isConnected = times[CallStage.connected.rawValue] != nil
    let own: HistoryEntry.Outcome = isConnected ? (device == nil ? .diverted : .answered) : unanswered
    let targets = Set((diversions ?? []).compactMap(\.user))
    let others = (otherUsers ?? []).map { other -> (String, HistoryEntry.Outcome) in
      if !targets.isEmpty { return (other, .diverted) }
      return (other, isConnected ? .answeredElsewhere : unanswered)
    }
    return [(user, own)] + others
  }

  private var unanswered: HistoryEntry.Outcome {
    if diversions?.contains(where: { $0.number != nil || $0.recording != nil }) == true { return .diverted }
    switch end.reason {
    case .callerCancelled, .unanswered, .answeredElsewhere: return .missed
    case .localEnd: return direction == .incoming ? .declined : .cancelled
    case .declined, .declinedElsewhere: return .declined
    case .busy, .busyElsewhere: return .busy
    case .diverted: return .diverted
    case .blocked: return .blocked
    case .dnd: return .filtered
    default: return .failed
    }
  }
}
