public import CallModel

/// The table of calls that have started and have no record yet. Blocks; one thread at a time.
///
/// Lines survive the death of the process once `add` has returned. `StoreContractTests` tests this for every implementation.
public protocol Journal: AnyObject, Sendable {
  /// A second line of a call replaces the first.
  func add(_ lines: [JournalEntry]) throws
  /// Unknown calls are ignored.
  func remove(_ calls: [CallID]) throws
  /// Both in one step, all or nothing, where a store gains from that.
  func change(adding lines: [JournalEntry], removing calls: [CallID]) throws
  /// All lines, oldest first.
  func lines() throws -> [JournalEntry]
}

extension Journal {
  public func change(adding lines: [JournalEntry], removing calls: [CallID]) throws {
    if !calls.isEmpty { try remove(calls) }
    if !lines.isEmpty { try add(lines) }
  }
}

/// The destination of call records. Blocks; one thread at a time.
public protocol RecordSink: AnyObject, Sendable {
  /// All or none: after an error none of the records is stored.
  func append(_ records: [CallRecord]) throws
  /// The records of these calls that are among the latest ones.
  func recorded(among calls: Set<CallID>) throws -> [CallID: CallRecord]
}

/// Why a store cannot be opened or written; states what an operator can do.
public struct StoreError: Error, Sendable, Equatable, CustomStringConvertible {
  public var description: String
  public init(_ description: String) { self.description = description }
}
