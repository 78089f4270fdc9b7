import Foundation
import Synchronization

/// Sends one extension's file to iOS: all of it, or the difference to the file that iOS loaded last. One loader serves one
/// request.
///
/// | request | base (`ID.loaded`) | what is sent |
/// |---|---|---|
/// | full | – | every entry |
/// | incremental | valid | removals, then additions; a changed label is both |
/// | incremental | missing or damaged | remove all, then every entry |
///
/// The base is deleted before `completeRequest` and recorded after iOS confirmed: after a failure between, the next load starts
/// from nothing.
/// Memory: four buffers of 32 KB and the shared labels, for any number of entries.
public final class CallDirectoryLoader: NSObject, CXCallDirectoryExtensionContextDelegate, Sendable {
  /// How a request was served: the rows of the table.
  public enum Mode: Sendable, Equatable {
    /// All entries are added; iOS has none.
    case full
    /// Removals and additions against the file that iOS loaded last.
    case difference
    /// All entries that iOS has are removed, then every entry is added.
    case replacement
  }
  /// What was sent to iOS.
  public struct Report: Sendable, Equatable {
    /// The directory's version.
    public var version: UInt64
    /// How it was sent.
    public var mode: Mode
    /// Entries that were added, of both lists.
    public var added = 0
    /// Entries that were removed one by one: 0 for a replacement.
    public var removed = 0
  }
  /// The result of the request. A failure's code and advice: `CallDirectoryFailure`.
  public typealias Outcome = Result<Report, CallDirectoryFailure>
  private struct State {
    var hasSpoken = false
    var report: Report?
    var hasEnded = false
  }
  private let folder: DirectoryFolder
  private let identifier: String
  private let ended: @Sendable (Outcome) -> Void
  private let state = Mutex(State())
  /// Entries between two drains of the autorelease pool, which the bridging of labels fills on iOS.
  private static let poolEntries = 1_024

  /// - Parameters:
  ///   - folder: where the app wrote the files.
  ///   - identifier: the extension's bundle identifier, as the app's `DirectoryStore` names it.
  ///   - ended: called once, on the thread that ends the request.
  public init(folder: DirectoryFolder, identifier: String, ended: @escaping @Sendable (Outcome) -> Void = { _ in }) {
    (self.folder, self.identifier, self.ended) = (folder, identifier, ended)
    super.init()
  }

  /// Loads, and completes or cancels the request. The caller keeps the loader until `ended`: the context holds its delegate weakly.
  public func load(into context: CXCallDirectoryExtensionContext) {
    let isIncremental = context.isIncremental  // before anything else, or the request is full
    context.delegate = self
    do throws(DirectoryError) {
      try DirectoryFolder.check(identifier)
      try folder.beginLoading(identifier)
      let report = try fill(context, isIncremental: isIncremental)
      state.withLock { $0.report = report }
      folder.forgetLoaded(identifier)
      context.completeRequest { @Sendable [self] isExpired in completed(isExpired) }
    } catch {
      // iOS may keep entries that were sent: then its state is unknown
      if state.withLock({ $0.hasSpoken }) { folder.forgetLoaded(identifier) }
      folder.endLoading(identifier)
      let failure = CallDirectoryFailure(file: error)
      end(.failure(failure))
      context.cancelRequest(withError: failure.bridged)
    }
  }

  /// iOS loaded no entry, or not all: the next load is a replacement.
  public func requestFailed(for extensionContext: CXCallDirectoryExtensionContext, withError error: any Error) {
    folder.forgetLoaded(identifier)
    folder.endLoading(identifier)
    end(.failure(CallDirectoryFailure(error)))
  }

  private func completed(_ isExpired: Bool) {
    let report = state.withLock { $0.hasEnded ? nil : $0.report }
    guard let report else { return }
    if isExpired {
      folder.endLoading(identifier)
      return end(.failure(.expired))
    }
    // without a base the next load is a replacement: slower, but correct
    try? folder.recordLoaded(identifier)
    end(.success(report))
  }

  private func end(_ outcome: Outcome) {
    let isFirst = state.withLock { state in
      defer { state.hasEnded = true }
      return !state.hasEnded
    }
    if isFirst { ended(outcome) }
  }

  // MARK: requests to iOS

  private func fill(_ context: CXCallDirectoryExtensionContext, isIncremental: Bool) throws(DirectoryError) -> Report {
    let new = try DirectoryReader(folder.loading(identifier))
    let version = new.header.version
    guard isIncremental else { return try full(context, new, Report(version: version, mode: .full)) }
    guard let old = try? DirectoryReader(folder.loaded(identifier)) else { return try replacement(context, new) }
    if old.header == new.header { return Report(version: version, mode: .difference) }
    // an old file may have a correct checksum and invalid entries: checked before anything is sent
    guard (try? walk(from: old, to: new, { _, _ in })) != nil else {
      try walk(from: new, to: new) { _, _ in }
      return try replacement(context, new)
    }
    return try difference(context, from: old, to: new)
  }

  private func full(
    _ context: CXCallDirectoryExtensionContext, _ new: DirectoryReader, _ report: Report
  ) throws(DirectoryError) -> Report {
    var report = report
    state.withLock { $0.hasSpoken = true }
    for list in DirectoryList.allCases {
      var cursor = new.cursor(list)
      try pooled { () throws(DirectoryError) -> Bool in
        guard let item = try cursor.next() else { return false }
        Self.add(item, to: list, context)
        report.added += 1
        return true
      }
    }
    return report
  }

  private func replacement(_ context: CXCallDirectoryExtensionContext, _ new: DirectoryReader) throws(DirectoryError) -> Report {
    state.withLock { $0.hasSpoken = true }
    context.removeAllBlockingEntries()
    context.removeAllIdentificationEntries()
    return try full(context, new, Report(version: new.header.version, mode: .replacement))
  }

  /// Makes two passes over both files: iOS needs all removals before the first addition.
  private func difference(
    _ context: CXCallDirectoryExtensionContext, from old: DirectoryReader, to new: DirectoryReader
  ) throws(DirectoryError) -> Report {
    var report = Report(version: new.header.version, mode: .difference)
    state.withLock { $0.hasSpoken = true }
    try walk(from: old, to: new) { list, change in
      switch change {
      case .removed(let number): Self.remove(number, from: list, context)
      case .changed(let item): Self.remove(item.number, from: list, context)
      case .added: return
      }
      report.removed += 1
    }
    try walk(from: old, to: new) { list, change in
      switch change {
      case .added(let item), .changed(let item): Self.add(item, to: list, context)
      case .removed: return
      }
      report.added += 1
    }
    return report
  }

  private func walk(
    from old: DirectoryReader, to new: DirectoryReader, _ body: (DirectoryList, DirectoryDifference.Change) -> Void
  ) throws(DirectoryError) {
    for list in DirectoryList.allCases {
      var difference = try DirectoryDifference(from: old, to: new, list)
      try pooled { () throws(DirectoryError) -> Bool in
        guard let change = try difference.next() else { return false }
        body(list, change)
        return true
      }
    }
  }

  private static func add(_ item: DirectoryCursor.Item, to list: DirectoryList, _ context: CXCallDirectoryExtensionContext) {
    switch list {
    case .blocking: context.addBlockingEntry(withNextSequentialPhoneNumber: item.number)
    case .identification: context.addIdentificationEntry(withNextSequentialPhoneNumber: item.number, label: item.label)
    }
  }
  private static func remove(_ number: Int64, from list: DirectoryList, _ context: CXCallDirectoryExtensionContext) {
    switch list {
    case .blocking: context.removeBlockingEntry(withPhoneNumber: number)
    case .identification: context.removeIdentificationEntry(withPhoneNumber: number)
    }
  }

  /// Runs `step` until it returns false, in autorelease pools of `poolEntries` on Apple's platforms.
  private func pooled(_ step: () throws(DirectoryError) -> Bool) throws(DirectoryError) {
    func batch() throws(DirectoryError) -> Bool {
      for _ in 0..<Self.poolEntries { guard try step() else { return false } }
      return true
    }
    #if canImport(ObjectiveC)
      while try autoreleasepool(invoking: batch) {}
    #else
      while try batch() {}
    #endif
  }
}
