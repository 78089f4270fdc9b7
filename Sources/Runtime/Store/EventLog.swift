import CallModel
import EventJournal
import Foundation
import TrunklinePlatform

/// The folder of events, and their source.
public struct EventSettings: Sendable {
  public var folder: String
  /// `source` of CloudEvents: a URI reference that names this gateway.
  public var source: String
  public init(folder: String, source: String) { (self.folder, self.source) = (folder, source) }
}

/// Writes events as CloudEvents 1.0 (structured JSON) to their journal. On the store's thread; nothing waits for the disk itself.
public final class EventLog: Sendable {
  private let journal: EventJournal
  private let settings: EventSettings
  private let written = CounterTable(labelNames: ["kind"])
  private let bytes = Gauge()

  /// Blocks; throws `AppendLogError`.
  public init(_ settings: EventSettings) throws {
    self.settings = settings
    journal = try EventJournal(folder: settings.folder)
    bytes.set(Int64(journal.bytes))
  }

  func entry(_ event: GatewayEvent) -> EventJournal.Entry {
    let (kind, subject) = (event.kind.rawValue, event.subject)
    return .init(at: event.at, kind: kind, subject: subject) { [settings] cursor in
      func envelope<Facts: Encodable>(_ facts: Facts) throws -> [UInt8] {
        try RecordEncoder().encode(
          CloudEvent(cursor, source: settings.source, kind: kind, at: event.at, subject: subject, facts: facts))
      }
      switch event.facts {
      case .call(let facts): return try envelope(facts)
      case .device(let facts): return try envelope(facts)
      case .trunk(let facts): return try envelope(facts)
      }
    }
  }

  /// The event of a call's end: the call's record as in the records file.
  func entry(_ record: CallRecord) -> EventJournal.Entry {
    let (kind, subject) = (GatewayEvent.Kind.callEnded.rawValue, record.call.description)
    let at = record.times[CallStage.ended.rawValue] ?? WallClock.nowMilliseconds()
    return .init(at: at, kind: kind, subject: subject) { [settings] cursor in
      try RecordEncoder().encode(CloudEvent(cursor, source: settings.source, kind: kind, at: at, subject: subject, facts: record))
    }
  }

  /// Returns the number of events written; if it throws `AppendLogError`, none was.
  func append(_ entries: [EventJournal.Entry]) throws -> Int {
    let count = try journal.append(entries)
    for entry in entries { written.counter(entry.kind).increment() }
    _ = journal.trim(now: WallClock.nowMilliseconds())
    bytes.set(Int64(journal.bytes))
    return count
  }

  /// The records of those of these calls whose end is in the journal. Reads the whole journal.
  func ended(among calls: Set<CallID>) -> [CallID: CallRecord] {
    guard !calls.isEmpty else { return [:] }
    struct Ended: Decodable { var data: CallRecord }
    let reader = EventReader(folder: settings.folder)
    var found: [CallID: CallRecord] = [:]
    var after: UInt64 = 0
    while true {
      let events = reader.read(after: after, most: 1_000).events
      guard let last = events.last else { return found }
      after = last.position
      for event in events where event.kind == GatewayEvent.Kind.callEnded.rawValue {
        guard let call = CallID(event.subject), calls.contains(call) else { continue }
        found[call] = (try? JSONDecoder().decode(Ended.self, from: Data(event.json)))?.data
      }
    }
  }

  var metrics: [MetricFamily] {
    [
      .counters("trunkline_events_total", help: "Events written, by kind.", written),
      .gauge("trunkline_event_journal_bytes", help: "Octets of the event journal; 64 MiB is the most.", bytes),
    ]
  }
}

/// CloudEvents 1.0, structured content mode.
private struct CloudEvent<Facts: Encodable>: Encodable {
  var specversion = "1.0"
  var id: String
  var source: String
  var type: String
  var time: String
  var subject: String
  var datacontenttype = "application/json"
  var data: Facts

  init(_ cursor: EventCursor, source: String, kind: String, at: Int64, subject: String, facts: Facts) {
    (id, self.source, type) = (cursor.description, source, "trunkline.\(kind)")
    time = Date(timeIntervalSince1970: Double(at) / 1_000).formatted(.iso8601WithMilliseconds)
    (self.subject, data) = (subject, facts)
  }
}

extension FormatStyle where Self == Date.ISO8601FormatStyle {
  fileprivate static var iso8601WithMilliseconds: Date.ISO8601FormatStyle {
    Date.ISO8601FormatStyle(includingFractionalSeconds: true)
  }
}
