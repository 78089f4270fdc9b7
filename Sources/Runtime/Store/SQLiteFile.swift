import Foundation
import GRDB

/// The SQLite file of the devices and of what login tokens grant, and of the journal of earlier versions: write-ahead log, `synchronous=NORMAL`, which outlives the
/// process but not a power cut of the last instant. Readable by its owner only: push tokens are in it.
public final class SQLiteFile: Sendable {
  private let queue: DatabaseQueue
  private let lock: FileLock

  /// What makes a file of any earlier version one of this: each runs once in a file's life, in this order. Only ever added to.
  typealias Step = (name: String, migrate: @Sendable (Database) throws -> Void)
  static let steps: [Step] = [
    (
      "started calls",
      {
        try $0.execute(
          sql: "CREATE TABLE started (call TEXT PRIMARY KEY NOT NULL, start INTEGER NOT NULL, line TEXT NOT NULL) WITHOUT ROWID")
      }
    ),
    ("devices", { try SQLiteDevices.migrate($0) }),
    ("seal keys", { try $0.execute(sql: "ALTER TABLE push ADD COLUMN seal_key BLOB") }),
    ("token grants", { try SQLiteGrants.migrate($0) }),
  ]

  /// Creates the file and its tables if they are not there, and brings an earlier version's to this one. Throws `StoreError` if
  /// another process has it open, or a later version made it.
  public convenience init(path: String) throws { try self.init(path: path, steps: Self.steps) }

  init(path: String, steps: [Step]) throws {
    lock = try FileLock(path: path + ".lock")
    var configuration = GRDB.Configuration()
    configuration.label = "store"
    configuration.prepareDatabase { database in
      try database.execute(sql: "PRAGMA synchronous = NORMAL")
    }
    do {
      queue = try DatabaseQueue(path: path, configuration: configuration)
      _ = chmod(path, 0o600)
      try queue.writeWithoutTransaction { try $0.execute(sql: "PRAGMA journal_mode = WAL") }
      var migrator = DatabaseMigrator()
      for step in steps { migrator.registerMigration(step.name, migrate: step.migrate) }
      guard try !queue.read(migrator.hasBeenSuperseded) else {
        throw StoreError("a later version of trunkline wrote it: use that version, or another file for store.sqlite")
      }
      try migrator.migrate(queue)
    } catch {
      throw StoreError("cannot open the store \(path): \(Self.explain(error))")
    }
  }

  /// One transaction: all or nothing.
  func write(_ what: String, _ body: (Database) throws -> Void) throws {
    do {
      try queue.write(body)
    } catch {
      throw StoreError("cannot write the \(what): \(Self.explain(error))")
    }
  }

  func read<Value>(_ what: String, _ body: (Database) throws -> Value) throws -> Value {
    do {
      return try queue.read(body)
    } catch {
      throw StoreError("cannot read the \(what): \(Self.explain(error))")
    }
  }

  static func explain(_ error: any Error) -> String {
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
