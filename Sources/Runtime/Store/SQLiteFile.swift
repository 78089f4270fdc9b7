import Foundation
import GRDB

/// The SQLite file of the devices and of grants of login tokens: write-ahead log, `synchronous=NORMAL`, which survives the death of
/// the process but may lose the last instant in a power cut. Readable by its owner only, as it contains push tokens.
public final class SQLiteFile: Sendable {
  private let queue: DatabaseQueue
  private let lock: FileLock

  /// Migrates a file of an earlier version: each step runs once in a file's life, in this order. Steps are only ever added.
  typealias Step = (name: String, migrate: @Sendable (Database) throws -> Void)
  static let steps: [Step] = [
    // A former journal, which no release had; a file without the step's name would be taken for one of a later version.
    ("started calls", { _ in }),
    ("devices", { try SQLiteDevices.migrate($0) }),
    ("seal keys", { try $0.execute(sql: "ALTER TABLE push ADD COLUMN seal_key BLOB") }),
    ("token grants", { try SQLiteGrants.migrate($0) }),
  ]

  /// Creates the file and its tables if they are missing, and migrates an earlier version's. Throws `StoreError` if another
  /// process has it open, or a later version made it.
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
