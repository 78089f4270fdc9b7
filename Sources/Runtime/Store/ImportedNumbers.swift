public import CallModel
import Foundation
import GRDB

/// The numbers of `trunkline users import`: a SQLite file beside the store, with one table that an operator can read with
/// `sqlite3`.
///
/// An import writes a new file and renames it, so that a reader has the old numbers or the new ones, however the import ends.
/// They are not in the store's own file because the gateway has that one open and locked. All functions block.
public enum ImportedNumbers {
  private static let version = 1
  private static let progressInterval = 250_000

  /// Replaces the numbers by `table`. Throws `StoreError`; the old numbers are then kept.
  /// - Parameter progress: called now and then with the count of numbers written.
  public static func replace(_ path: String, with table: NumberTable, progress: (Int) -> Void = { _ in }) throws {
    let folder = URL(fileURLWithPath: path).standardizedFileURL.deletingLastPathComponent().path
    let lock = try lock(folder)
    defer { close(lock) }
    let temporary = path + ".new"
    unlink(temporary)
    do {
      try write(table, temporary, progress)
      try sync(temporary, owner: lock)
      guard rename(temporary, path) == 0 else { throw StoreError(String(cString: strerror(errno))) }
      fsync(lock)
    } catch {
      unlink(temporary)
      throw StoreError("cannot write the imported numbers \(path): \(SQLiteFile.explain(error))")
    }
  }

  /// An empty table if nothing was imported. Throws `StoreError`. A million numbers take about a second.
  public static func read(_ path: String) throws -> NumberTable {
    guard access(path, F_OK) == 0 else { return NumberTable() }
    do {
      var configuration = GRDB.Configuration()
      configuration.readonly = true
      return try DatabaseQueue(path: path, configuration: configuration).read { database in
        guard try Int.fetchOne(database, sql: "PRAGMA user_version") == version else {
          throw StoreError("another version of trunkline made it: import the numbers again")
        }
        var builder = NumberTable.Builder()
        let rows = try Row.fetchCursor(database, sql: "SELECT number, user FROM number ORDER BY position")
        while let row = try rows.next() {
          guard let number = row[0] as String?, let user = row[1] as String? else {
            throw StoreError("it has a row without number or user: import the numbers again")
          }
          try builder.add(number: number, user: user)
        }
        return builder.finish()
      }
    } catch {
      throw StoreError("cannot read the imported numbers \(path): \(SQLiteFile.explain(error))")
    }
  }

  private static func write(_ table: NumberTable, _ path: String, _ progress: (Int) -> Void) throws {
    var configuration = GRDB.Configuration()
    configuration.prepareDatabase { database in
      // No process reads the file before it is whole, so it needs no journal.
      try database.execute(sql: "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF")
    }
    let queue = try DatabaseQueue(path: path, configuration: configuration)
    guard chmod(path, 0o600) == 0 else { throw StoreError(String(cString: strerror(errno))) }
    try queue.write { database in
      try database.execute(
        sql: """
          PRAGMA user_version = \(version);
          CREATE TABLE number (position INTEGER PRIMARY KEY, number TEXT NOT NULL, user TEXT NOT NULL);
          """)
      let insert = try database.makeStatement(sql: "INSERT INTO number (number, user) VALUES (?, ?)")
      var count = 0
      try table.forEach { number, user in
        try insert.execute(arguments: [number, user])
        count += 1
        if count % progressInterval == 0 { progress(count) }
      }
    }
    try queue.close()
  }

  /// Flushes the file to disk, and makes root's import readable for the owner of the folder.
  private static func sync(_ path: String, owner folder: Int32) throws {
    let fd = open(path, O_RDWR | O_CLOEXEC)
    guard fd >= 0 else { throw StoreError(String(cString: strerror(errno))) }
    defer { close(fd) }
    var status = stat()
    if geteuid() == 0, fstat(folder, &status) == 0 { _ = fchown(fd, status.st_uid, status.st_gid) }
    guard fsync(fd) == 0 else { throw StoreError(String(cString: strerror(errno))) }
  }

  /// Two imports at once would write into one file. The lock is on the folder, so that no lock file is left.
  private static func lock(_ folder: String) throws -> Int32 {
    let fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard fd >= 0 else { throw StoreError("cannot open the store's folder \(folder): \(String(cString: strerror(errno)))") }
    guard flock(fd, LOCK_EX | LOCK_NB) == 0 else {
      close(fd)
      throw StoreError("another import is running in \(folder)")
    }
    return fd
  }
}
