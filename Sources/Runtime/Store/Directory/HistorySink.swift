import CallModel

/// Passes records to their file, and reports them once they are written.
final class HistorySink: RecordSink {
  private let file: any RecordSink
  private let written: @Sendable ([CallRecord]) -> Void

  init(_ file: any RecordSink, written: @escaping @Sendable ([CallRecord]) -> Void) {
    (self.file, self.written) = (file, written)
  }

  func append(_ records: [CallRecord]) throws {
    try file.append(records)
    written(records)
  }

  func recorded(among calls: Set<CallID>) throws -> [CallID: CallRecord] { try file.recorded(among: calls) }
}
