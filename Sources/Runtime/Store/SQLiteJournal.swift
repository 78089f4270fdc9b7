public import CallModel
import Foundation
import GRDB

/// The journal in a SQLite file, where earlier versions had it: read once at the start and moved to `JournalFile`
/// (docs/design/store-and-configuration.md).
public final class SQLiteJournal: Journal {
  private let file: SQLiteFile

  public init(_ file: SQLiteFile) { self.file = file }
  public convenience init(path: String) throws { self.init(try SQLiteFile(path: path)) }

  public func add(_ lines: [JournalEntry]) throws {
    let encoder = RecordEncoder()
    let rows = try lines.map { ($0, String(decoding: try encoder.encode($0), as: UTF8.self)) }
    try file.write("journal") { database in
      let statement = try database.cachedStatement(sql: "INSERT OR REPLACE INTO started (call, start, line) VALUES (?, ?, ?)")
      for (line, text) in rows { try statement.execute(arguments: [line.call.description, line.start, text]) }
    }
  }

  public func remove(_ calls: [CallID]) throws {
    try file.write("journal") { database in
      let statement = try database.cachedStatement(sql: "DELETE FROM started WHERE call = ?")
      for call in calls { try statement.execute(arguments: [call.description]) }
    }
  }

  public func lines() throws -> [JournalEntry] {
    let decoder = JSONDecoder()
    return try file.read("journal") { database in
      let texts = try String.fetchAll(database, sql: "SELECT line FROM started ORDER BY start, call")
      return try texts.map { try decoder.decode(JournalEntry.self, from: Data($0.utf8)) }
    }
  }
}
