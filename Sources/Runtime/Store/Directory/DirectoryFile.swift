import Foundation
import GRDB
import Synchronization

/// The SQLite file of directories and histories, separate from the store's own (`.directory` after its name): an import of a
/// million contacts delays no journal entry, and the command line may write it while a gateway runs (write-ahead log). Used by one
/// thread at a time; all functions block and throw `StoreError`. Readable by its owner only.
///
/// Versions are milliseconds since 1970, or the last version plus two where that is later: they also grow after the file was
/// lost. They are even: an odd version is a device's own (`sharedAnswer`).
public final class DirectoryFile: Sendable {
  let queue: DatabaseQueue
  public struct Listing: Sendable, Equatable {
    public var name: String
    public var version: Int
    /// Contacts.
    public var entries: Int
    /// In a cluster: the last known version in the shared store; 0: it has no such directory.
    public var sharedStore: Int
  }
  /// Called every `Limits.rowsPerSign` rows of a write, which may take seconds: it shows a watchdog that the thread makes
  /// progress.
  let onProgress = Mutex<(@Sendable () -> Void)?>(nil)
  let answers = Mutex(DirectoryAnswers())

  public init(path: String) throws {
    var configuration = GRDB.Configuration()
    configuration.label = "directory"
    configuration.busyMode = .timeout(Limits.directoryBusySeconds)
    configuration.prepareDatabase { try $0.execute(sql: "PRAGMA synchronous = NORMAL") }
    do {
      queue = try DatabaseQueue(path: path, configuration: configuration)
      _ = chmod(path, 0o600)
      try queue.writeWithoutTransaction { try $0.execute(sql: "PRAGMA journal_mode = WAL") }
      var migrator = DatabaseMigrator()
      migrator.registerMigration("contacts", migrate: Self.makeContacts)
      migrator.registerMigration("history", migrate: Self.makeHistory)
      migrator.registerMigration("shared", migrate: Self.makeShared)
      migrator.registerMigration("owned", migrate: Self.makeOwned)
      guard try !queue.read(migrator.hasBeenSuperseded) else { throw StoreError("it is of a later version") }
      try migrator.migrate(queue)
      if geteuid() == 0 { Self.own(path) }
    } catch {
      throw StoreError("cannot open the directories \(path): \(SQLiteFile.explain(error))")
    }
  }

  /// Gives files that root has made to the owner of the folder, so that the gateway can write them.
  private static func own(_ path: String) {
    var status = stat()
    guard stat(URL(fileURLWithPath: path).deletingLastPathComponent().path, &status) == 0 else { return }
    for file in [path, path + "-wal", path + "-shm"] { _ = chown(file, status.st_uid, status.st_gid) }
  }

  func makesProgress() { onProgress.withLock { $0 }?() }

  func write<Value>(_ what: String, _ body: (Database) throws -> Value) throws -> Value {
    do {
      return try queue.write(body)
    } catch let error as StoreError {
      throw error
    } catch {
      throw StoreError("cannot write the \(what): \(SQLiteFile.explain(error))")
    }
  }

  /// Reads one state of the file; `body` may also write.
  func snapshot<Value>(_ body: (Database) throws -> Value) throws -> Value {
    do {
      return try queue.writeWithoutTransaction { database in
        var out: Value?
        try database.inTransaction(.deferred) {
          out = try body(database)
          return .commit
        }
        guard let out else { throw StoreError("no answer") }
        return out
      }
    } catch {
      throw StoreError("cannot read the directory: \(SQLiteFile.explain(error))")
    }
  }

  func read<Value>(_ what: String, _ body: (Database) throws -> Value) throws -> Value {
    do {
      return try queue.read(body)
    } catch {
      throw StoreError("cannot read the \(what): \(SQLiteFile.explain(error))")
    }
  }

  /// Changes when another connection has written.
  func stamp() throws -> Int { try read("directories") { try Int.fetchOne($0, sql: "PRAGMA data_version") ?? 0 } }

  private static func makeContacts(_ database: Database) throws {
    try database.execute(
      sql: """
        CREATE TABLE clock (id INTEGER PRIMARY KEY CHECK (id = 0), version INTEGER NOT NULL);
        INSERT INTO clock VALUES (0, 0);
        CREATE TABLE scope (
          id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, version INTEGER NOT NULL, floor INTEGER NOT NULL,
          entries INTEGER NOT NULL, logged INTEGER NOT NULL);
        CREATE TABLE contact (
          scope INTEGER NOT NULL, number INTEGER NOT NULL, label TEXT, blocked INTEGER NOT NULL, PRIMARY KEY (scope, number))
          WITHOUT ROWID;
        CREATE TABLE change (
          scope INTEGER NOT NULL, version INTEGER NOT NULL, number INTEGER NOT NULL, PRIMARY KEY (scope, version, number))
          WITHOUT ROWID;
        CREATE TABLE view (
          user TEXT NOT NULL, device TEXT NOT NULL, scopes TEXT NOT NULL, since INTEGER NOT NULL, seen INTEGER NOT NULL,
          PRIMARY KEY (user, device)) WITHOUT ROWID;
        """)
  }

  /// The next version; call it within a write.
  static func nextVersion(_ database: Database, now: Int64) throws -> Int {
    let last = try Int.fetchOne(database, sql: "SELECT version FROM clock") ?? 0
    let next = (max(last + 1, Int(now)) + 1) & ~1
    try database.execute(sql: "UPDATE clock SET version = ?", arguments: [next])
    return next
  }
}
