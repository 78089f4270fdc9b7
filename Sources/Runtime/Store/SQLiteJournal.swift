public import CallFlow
import Foundation
import GRDB

/// The journal in a SQLite file: write-ahead log, `synchronous=NORMAL`, which outlives the process but not a power cut of the last instant.
public final class SQLiteJournal: Journal {
  private let queue: DatabaseQueue
  private let lock: FileLock

  /// Creates the file and its table if they are not there. Throws `StoreError` if another process has it open.
  public init(path: String) throws {
    lock = try FileLock(path: path + ".lock")
    var configuration = GRDB.Configuration()
    configuration.label = "store"
    configuration.prepareDatabase { database in
      try database.execute(sql: "PRAGMA synchronous = NORMAL")
    }
    do {
      queue = try DatabaseQueue(path: path, configuration: configuration)
      try queue.writeWithoutTransaction { try $0.execute(sql: "PRAGMA journal_mode = WAL") }
      var migrator = DatabaseMigrator()
      migrator.registerMigration("started calls") { database in
        try database.execute(
          sql: "CREATE TABLE started (call TEXT PRIMARY KEY NOT NULL, start INTEGER NOT NULL, line TEXT NOT NULL) WITHOUT ROWID")
      }
      try migrator.migrate(queue)
    } catch {
      throw StoreError("cannot open the store \(path): \(Self.explain(error))")
    }
  }

  public func add(_ lines: [StartLine]) throws {
    let encoder = JSONEncoder()
    let rows = try lines.map { ($0, String(decoding: try encoder.encode($0), as: UTF8.self)) }
    try write { database in
      let statement = try database.cachedStatement(sql: "INSERT OR REPLACE INTO started (call, start, line) VALUES (?, ?, ?)")
      for (line, text) in rows { try statement.execute(arguments: [line.call.description, line.start, text]) }
    }
  }

  public func remove(_ calls: [CallID]) throws {
    try write { database in
      let statement = try database.cachedStatement(sql: "DELETE FROM started WHERE call = ?")
      for call in calls { try statement.execute(arguments: [call.description]) }
    }
  }

  public func lines() throws -> [StartLine] {
    let decoder = JSONDecoder()
    do {
      let texts = try queue.read { try String.fetchAll($0, sql: "SELECT line FROM started ORDER BY start, call") }
      return try texts.map { try decoder.decode(StartLine.self, from: Data($0.utf8)) }
    } catch {
      throw StoreError("cannot read the journal: \(Self.explain(error))")
    }
  }

  private func write(_ body: (Database) throws -> Void) throws {
    do {
      try queue.write(body)
    } catch {
      throw StoreError("cannot write the journal: \(Self.explain(error))")
    }
  }

  private static func explain(_ error: any Error) -> String {
    guard let error = error as? DatabaseError else { return "\(error)" }
    switch error.resultCode {
    case .SQLITE_BUSY, .SQLITE_LOCKED: return "it is locked by another process"
    case .SQLITE_FULL: return "the disk is full"
    case .SQLITE_CANTOPEN: return "the file cannot be opened or made (does its directory exist, may this user write there?)"
    case .SQLITE_NOTADB: return "the file is not a SQLite database"
    case .SQLITE_READONLY: return "the file is read-only"
    default: return error.message ?? "\(error.resultCode)"
    }
  }
}
