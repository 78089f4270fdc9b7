public import CallFlow

/// The table of calls that have started and have no record yet. Blocks; used by one thread at a time.
///
/// What `add` returned from survives the death of the process. `StoreContractTests` holds every implementation to this.
public protocol Journal: AnyObject, Sendable {
  /// A line for a call that is there already replaces it.
  func add(_ lines: [StartLine]) throws
  /// Calls that are not there are ignored.
  func remove(_ calls: [CallID]) throws
  /// Both in one step, where a store has something to gain from that: all or nothing then.
  func change(adding lines: [StartLine], removing calls: [CallID]) throws
  /// All lines, oldest first.
  func lines() throws -> [StartLine]
}

extension Journal {
  public func change(adding lines: [StartLine], removing calls: [CallID]) throws {
    if !calls.isEmpty { try remove(calls) }
    if !lines.isEmpty { try add(lines) }
  }
}

/// Where call records end. Blocks; used by one thread at a time.
public protocol RecordSink: AnyObject, Sendable {
  /// All or none: after an error no part of the records is there.
  func append(_ records: [CallRecord]) throws
  /// The records of these calls that are among the latest ones.
  func recorded(among calls: Set<CallID>) throws -> [CallID: CallRecord]
}

/// Why a store cannot be opened or written; says what an operator can do.
public struct StoreError: Error, Sendable, Equatable, CustomStringConvertible {
  public var description: String
  public init(_ description: String) { self.description = description }
}
