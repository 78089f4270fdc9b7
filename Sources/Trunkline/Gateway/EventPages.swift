import AppServer
import Bytes
import CallFlow
import Configuration
import EventJournal
import Foundation
import Platform

extension Settings {
  /// `source` of CloudEvents: this node.
  var eventSource: String {
    let host = ProcessInfo.processInfo.hostName
    return "/trunkline/" + (cluster?.nodes?.name ?? host)
  }
  var eventRules: GatewayEvent.Rules { .init(isOn: events != nil, hasDigits: events?.hasDigits ?? false) }
}

/// The event journal for who fetches it.
///
///     GET /v1/events?after=ID&limit=100&kinds=call.ended&subject=CALL    {"events":[…],"after":"ID","more":false}
///     GET /v1/events                Accept: text/event-stream            the same, and what comes, as Server-Sent Events
///
/// Without `after` from the oldest event on; `after=latest`: only what comes. Refusals are `APIError`s, also of a stream.
struct EventPages: Sendable {
  /// Nil: no events are kept.
  let folder: String?

  /// Events of one answer, and events that are looked at for it.
  private static let limit = 1_000
  private static let scanned = 20_000

  func answer(_ request: AdminRequest) -> AdminResponse {
    guard let folder else { return APIError(.unknownPage, "no events are kept: add `events: {}` to the configuration").response }
    let reader = EventReader(folder: folder)
    guard let epoch = reader.epoch else { return APIError(.overload, "the event journal cannot be read").response }
    let query: Query
    let isStream = request.first("accept")?.contains("text/event-stream") ?? false
    do throws(APIError) {
      query = try Query.read(request, lastEventID: isStream ? request.first("last-event-id") : nil)
    } catch {
      return error.response
    }
    let range = reader.range
    var after = range.oldest - 1
    switch query.after {
    case .start: break
    case .latest: after = range.newest
    case .cursor(let cursor):
      guard cursor.epoch == epoch, cursor.position <= max(range.newest, range.oldest - 1) else {
        return APIError(.gone, "no such event in this journal: begin without after").response
      }
      guard cursor.position + 1 >= range.oldest else {
        let oldest = EventCursor(epoch: epoch, position: range.oldest)
        return APIError(.gone, "events after this one are kept no longer: begin without after, from \(oldest)").response
      }
      after = cursor.position
    }
    if isStream {
      var response = AdminResponse(
        200, contentType: "text/event-stream", headers: [("cache-control", "no-store")], body: Array("retry: 2000\n\n".utf8))
      response.stream = EventStream(reader, epoch: epoch, after: after, query)
      return response
    }
    return page(reader, epoch, after, query)
  }

  private func page(_ reader: EventReader, _ epoch: String, _ start: UInt64, _ query: Query) -> AdminResponse {
    var (after, found, looked) = (start, [[UInt8]](), 0)
    var isEnd = false
    while found.count < query.limit, looked < Self.scanned {
      let events = reader.read(after: after, most: min(query.limit - found.count, 1_000)).events
      guard let last = events.last else {
        isEnd = true
        break
      }
      looked += events.count
      after = last.position
      found += events.filter(query.fits).map(\.json)
    }
    var body = Array("{\"events\":[".utf8)
    for (index, json) in found.enumerated() {
      if index > 0 { body.append(UInt8(ascii: ",")) }
      body += json
    }
    body += Array("],\"after\":\"\(EventCursor(epoch: epoch, position: after))\",\"more\":\(!isEnd)}\n".utf8)
    return AdminResponse(200, contentType: "application/json", body: body)
  }

  struct Query: Sendable {
    enum Start: Sendable { case start, latest, cursor(EventCursor) }
    var after = Start.start
    var limit = 100
    var kinds: Set<String>?
    var subject: String?

    static func read(_ request: AdminRequest, lastEventID: String?) throws(APIError) -> Query {
      var out = Query()
      for name in Set(request.target.pairs.map(\.name)) {
        guard let value = try request.queryValue(name) else { continue }
        switch name {
        case "after":
          guard let start = start(value) else { throw APIError(.badRequest, "after: the id of an event, or latest") }
          out.after = start
        case "limit":
          guard value.utf8.allSatisfy({ (48...57).contains($0) }), let limit = Int(value), (1...EventPages.limit).contains(limit)
          else {
            throw APIError(.badRequest, "limit: 1 to \(EventPages.limit)")
          }
          out.limit = limit
        case "kinds":
          let kinds = value.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
          if let wrong = kinds.first(where: { GatewayEvent.Kind(rawValue: $0) == nil }) {
            let known = GatewayEvent.Kind.allCases.map(\.rawValue).joined(separator: ", ")
            throw APIError(.badRequest, "kinds: no kind \(wrong.prefix(64)); there are \(known)")
          }
          out.kinds = Set(kinds)
        case "subject": out.subject = value
        default: throw APIError(.badRequest, "known here: after, limit, kinds, subject")
        }
      }
      if let lastEventID, !lastEventID.isEmpty {
        guard let cursor = EventCursor(lastEventID) else { throw APIError(.badRequest, "Last-Event-ID: the id of an event") }
        out.after = .cursor(cursor)
      }
      return out
    }

    private static func start(_ text: String) -> Start? {
      text == "latest" ? .latest : EventCursor(text).map { .cursor($0) }
    }

    func fits(_ event: StoredEvent) -> Bool {
      (kinds?.contains(event.kind) ?? true) && (subject.map { $0 == event.subject } ?? true)
    }
  }
}

/// Server-Sent Events of one client. Who reads too slowly to be behind what the journal keeps is cut off, and comes back with its last id.
private final class EventStream: ResponseStream, @unchecked Sendable {
  // The server's thread only.
  private let reader: EventReader
  private let epoch: String
  private let query: EventPages.Query
  private var after: UInt64
  private var said = MonotonicClock.now()
  private static let silence = Duration.seconds(15)

  init(_ reader: EventReader, epoch: String, after: UInt64, _ query: EventPages.Query) {
    (self.reader, self.epoch, self.after, self.query) = (reader, epoch, after, query)
  }

  func next() -> [UInt8]? {
    let (events, isGap) = reader.read(after: after, most: 100)
    if isGap { return nil }
    var out: [UInt8] = []
    for event in events {
      after = event.position
      guard query.fits(event) else { continue }
      out += Array("id: \(EventCursor(epoch: epoch, position: event.position))\nevent: \(event.kind)\ndata: ".utf8)
      out += event.json + [0x0a, 0x0a]
    }
    let now = MonotonicClock.now()
    if out.isEmpty, !events.isEmpty || now - said > Self.silence { out = Array(": \n\n".utf8) }
    if !out.isEmpty { said = now }
    return out
  }

  func last(_ why: APIError) -> [UInt8] {
    Array("event: problem\ndata: ".utf8) + why.response.body.filter { $0 != 0x0a } + [0x0a, 0x0a]
  }
}
