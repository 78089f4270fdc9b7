import Synchronization

/// Stores the directory for the app: accepts entries from any source and writes a file for each extension. Only the app's process
/// writes. Thread-safe; calls wait for each other. Blocks while it sorts and writes: do not call it on the main thread.
///
/// ```swift
/// let store = try DirectoryStore(
///   folder: DirectoryFolder(appGroup: "group.com.example"), extensions: ["com.example.app.directory"])
/// try store.replace(
///   with: rows.compactMap { row in
///     PhoneNumber(row.text, plan: germany).map { DirectoryEntry($0, label: row.name, isBlocked: row.isSpam) }
///   })
/// ```
public final class DirectoryStore: Sendable {
  /// The folder that the store writes to.
  public let folder: DirectoryFolder
  /// Bundle identifiers of the Call Directory extensions, in the order in which they are filled.
  public let extensions: [String]
  /// Maximum of blocked and identified entries together for one extension.
  public let entriesPerExtension: Int
  private let lock = Mutex(())

  /// - Throws: `DirectoryError.configuration`.
  public init(
    folder: DirectoryFolder, extensions: [String], entriesPerExtension: Int = DirectoryLimits.entriesPerExtension
  ) throws(DirectoryError) {
    guard !extensions.isEmpty else { throw .configuration("No extension is named") }
    guard Set(extensions).count == extensions.count else { throw .configuration("An extension is named twice") }
    guard entriesPerExtension > 0 else { throw .configuration("\(entriesPerExtension) entries per extension") }
    for identifier in extensions { try DirectoryFolder.check(identifier) }
    (self.folder, self.extensions, self.entriesPerExtension) = (folder, extensions, entriesPerExtension)
  }

  /// What a call has written.
  public struct Summary: Sendable, Equatable {
    /// The version of the files.
    public var version: UInt64
    /// Numbers on the blocking list.
    public var blocked: Int
    /// Numbers on the identification list.
    public var identified: Int
    /// Entries of each extension, in the store's order.
    public var entries: [Int]
  }

  /// The version of the files; nil if one of them is missing, damaged or of a different version than the others: then write the
  /// full directory. Cost: one pass over the files.
  public var version: UInt64? { lock.withLock { _ in wholeVersion() } }

  /// Replaces the directory. Order and duplicates do not matter: the last label of a number wins, and a number is blocked if any
  /// of its entries is. Nothing changes if it throws `tooManyEntries` or earlier; after a failed write call it again.
  ///
  /// Cost: memory for 16 bytes an entry and each different label; sorting and writing 10⁶ entries takes about a second.
  ///
  /// - Parameters:
  ///   - entries: all entries of the new directory.
  ///   - version: a server's version, which must be above the stored one; nil: the stored one + 1.
  @discardableResult
  public func replace(with entries: some Sequence<DirectoryEntry>, version: UInt64? = nil) throws(DirectoryError) -> Summary {
    var table = DirectoryTable()
    for entry in entries { try table.add(entry) }
    table.finish()
    let result = lock.withLock { [table] _ in
      Result { () throws(DirectoryError) -> Summary in
        if let version { try check(version) }
        return try write(table, version ?? lastVersion() + 1)
      }
    }
    return try result.get()
  }

  /// Applies all chunks of one change: a full directory (`base` nil), or the difference to the stored version.
  ///
  /// - Throws: `baseMissing`: request the full directory from the server; `versionNotNewer`: the change is already applied.
  @discardableResult
  public func apply(_ chunks: some Sequence<DirectoryChunk>) throws(DirectoryError) -> Summary {
    let chunks = Array(chunks)
    guard let first = chunks.first else { throw .mixedChunks }
    guard chunks.allSatisfy({ $0.version == first.version && $0.base == first.base }) else { throw .mixedChunks }
    let result = lock.withLock { _ in
      Result { () throws(DirectoryError) -> Summary in
        try check(first.version)
        var table = DirectoryTable()
        if let base = first.base { try addStored(to: &table, base: base) }
        for chunk in chunks {
          for removal in chunk.removes { try table.remove(removal.number.value, from: removal.list) }
          for entry in chunk.adds { try table.add(entry) }
        }
        table.finish()
        return try write(table, first.version)
      }
    }
    return try result.get()
  }

  /// Reads one extension's file to its end, as the extension does. - Throws: the error with which the extension would fail.
  @discardableResult
  public func verify(_ identifier: String) throws(DirectoryError) -> UInt64 {
    let reader = try DirectoryReader(folder.current(identifier))
    for list in DirectoryList.allCases {
      var cursor = reader.cursor(list)
      while try cursor.next() != nil {}
    }
    return reader.header.version
  }

  /// The version of one extension that iOS has loaded; nil: none, or unknown.
  public func loadedVersion(_ identifier: String) -> UInt64? { headerVersion(folder.loaded(identifier)) }

  // MARK: versions

  private func headerVersion(_ path: String) -> UInt64? {
    guard let file = try? DirectoryFile(reading: path) else { return nil }
    return (try? DirectoryReader.header(file))?.version
  }

  private func wholeVersion() -> UInt64? {
    let versions = extensions.map { (try? DirectoryReader(folder.current($0)))?.header.version }
    guard let first = versions.first, versions.allSatisfy({ $0 == first }) else { return nil }
    return first
  }

  /// The highest version of any file, even if the others are missing: versions never go back. The greatest possible version is
  /// kept.
  private func lastVersion() -> UInt64 {
    min(extensions.compactMap { headerVersion(folder.current($0)) }.max() ?? 0, .max - 1)
  }

  /// An incomplete directory may be written again under its own version.
  private func check(_ version: UInt64) throws(DirectoryError) {
    let (whole, last) = (wholeVersion(), lastVersion())
    guard version > last || (whole == nil && version == last) else { throw .versionNotNewer(given: version, stored: last) }
  }

  // MARK: files

  private func addStored(to table: inout DirectoryTable, base: UInt64) throws(DirectoryError) {
    let stored = wholeVersion()
    guard stored == base else { throw .baseMissing(needed: base, stored: stored) }
    for identifier in extensions {
      let reader = try DirectoryReader(folder.current(identifier))
      var blocking = reader.cursor(.blocking)
      while let item = try blocking.next() { try table.block(item.number) }
      var identification = reader.cursor(.identification)
      while let item = try identification.next() { try table.add(item.number, label: item.label) }
    }
  }

  /// Concatenates the two lists and cuts them into pieces of `entriesPerExtension`. Extensions without entries get an empty file,
  /// which removes their old entries.
  private func write(_ table: DirectoryTable, _ version: UInt64) throws(DirectoryError) -> Summary {
    let (blocked, identified) = (table.blocking.count, table.identification.count)
    let needed = (blocked + identified + entriesPerExtension - 1) / entriesPerExtension
    guard needed <= extensions.count
    else { throw .tooManyEntries(count: blocked + identified, extensions: extensions.count, needed: needed) }
    try folder.make()
    var summary = Summary(version: version, blocked: blocked, identified: identified, entries: [])
    var start = 0
    for identifier in extensions {
      let end = min(start + entriesPerExtension, blocked + identified)
      let blocking = min(start, blocked)..<min(end, blocked)
      let identification = max(start - blocked, 0)..<max(end - blocked, 0)
      try DirectoryEncoder.write(
        table, blocking: blocking, identification: identification, version: version, temporary: folder.writing(identifier),
        path: folder.current(identifier))
      summary.entries.append(end - start)
      start = end
    }
    return summary
  }
}
