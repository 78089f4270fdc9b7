import AppServer
import CallFlow
import CallModel
import Configuration
import Control
import EventJournal
import Foundation
import Synchronization
import TrunklineBytes
import TrunklinePlatform
import WebServer

extension Settings {
  /// `source` of CloudEvents: this node.
  var eventSource: String {
    let host = ProcessInfo.processInfo.hostName
    return "/trunkline/" + (cluster?.nodes?.name ?? host)
  }
  var eventRules: GatewayEvent.Rules { .init(isOn: events != nil, hasDigits: events?.hasDigits ?? false) }
}

/// Serves the event journal to clients.
///
///     GET /v1/events?after=ID&limit=100&kinds=call.ended&subject=CALL    {"events":[…],"after":"ID","more":false}
///     GET /v1/events                Accept: text/event-stream            the same, and later events, as Server-Sent Events
///
/// Without `after` it starts with the oldest event; `after=latest`: only later events. Refusals are `APIError`s, also of a
/// stream.
struct EventHandlers: Sendable {
  /// Nil: no events are kept.
  let folder: String?

  let asker: Asker

  /// Events of one answer, its octets, and entries of the journal that are read for it: in steps of so many, each of which but
  /// the first costs the token as much as a request. An answer that ends before the journal states that there are more.
  private static let limit = 1_000
  static let answerBytes = 1 << 20
  static let scanned = 4_096
  static let step = 256

  func answer(_ request: AdminRequest, _ answer: @escaping AdminRequest.Answer) {
    let begun: Begun
    do throws(APIError) {
      begun = try begin(request)
    } catch {
      return answer(error.response)
    }
    guard begun.isStream else { return look(Page(begun, request), answer) }
    var response = AdminResponse(
      200, contentType: "text/event-stream", headers: [("cache-control", "no-store")], body: Array("retry: 2000\n\n".utf8))
    response.stream = EventStream(begun.reader, epoch: begun.epoch, after: begun.after, begun.query)
    answer(response)
  }

  private struct Begun: Sendable {
    var reader: EventReader
    var epoch: String
    var query: Query
    var after: UInt64
    var isStream: Bool
  }

  private func begin(_ request: AdminRequest) throws(APIError) -> Begun {
    guard let folder else { throw APIError(.unknownPage, "no events are kept: add `events: {}` to the configuration") }
    let reader = EventReader(folder: folder)
    guard let epoch = reader.epoch else { throw APIError(.overload, "the event journal cannot be read") }
    let isStream = request.first("accept")?.contains("text/event-stream") ?? false
    let query = try Query.read(request, lastEventID: isStream ? request.first("last-event-id") : nil)
    let range = reader.range
    var after = range.oldest - 1
    switch query.after {
    case .start: break
    case .latest: after = range.newest
    case .cursor(let cursor):
      guard cursor.epoch == epoch, cursor.position <= max(range.newest, range.oldest - 1) else {
        throw APIError(.gone, "no such event in this journal: begin without after")
      }
      guard cursor.position + 1 >= range.oldest else {
        let oldest = EventCursor(epoch: epoch, position: range.oldest)
        throw APIError(.gone, "events after this one were deleted: begin without after, from \(oldest)")
      }
      after = cursor.position
    }
    return Begun(reader: reader, epoch: epoch, query: query, after: after, isStream: isStream)
  }

  // MARK: a page

  /// The finished part of an answer.
  private struct Page: Sendable {
    let begun: Begun
    let client: String
    let spend: @Sendable () -> Bool
    var after: UInt64
    var found: [[UInt8]] = []
    var bytes = 0
    var looked = 0

    init(_ begun: Begun, _ request: AdminRequest) {
      (self.begun, client, spend, after) = (begun, request.client, request.spend, begun.after)
    }
  }

  /// One step; the next one runs after those of other requests.
  private func look(_ page: Page, _ answer: @escaping AdminRequest.Answer) {
    var page = page
    let query = page.begun.query
    let look = page.begun.reader.look(
      after: page.after, most: query.limit - page.found.count, entries: Self.step, fits: query.fits)
    page.looked += look.looked
    page.after = look.after
    for event in look.events {
      page.found.append(event.json)
      page.bytes += event.json.count
    }
    let isEnd = look.looked == 0
    let isFull = page.found.count >= query.limit || page.bytes >= Self.answerBytes || page.looked >= Self.scanned
    if isEnd || isFull || !page.spend() { return answer(Self.response(page, isEnd: isEnd)) }
    let next = page
    asker.run(for: page.client) { self.look(next, answer) }
  }

  private static func response(_ page: Page, isEnd: Bool) -> AdminResponse {
    var body = Array("{\"events\":[".utf8)
    for (index, json) in page.found.enumerated() {
      if index > 0 { body.append(UInt8(ascii: ",")) }
      body += json
    }
    body += Array("],\"after\":\"\(EventCursor(epoch: page.begun.epoch, position: page.after))\",\"more\":\(!isEnd)}\n".utf8)
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
          guard value.utf8.allSatisfy({ (48...57).contains($0) }), let limit = Int(value),
            (1...EventHandlers.limit).contains(limit)
          else {
            throw APIError(.badRequest, "limit: 1 to \(EventHandlers.limit)")
          }
          out.limit = limit
        case "kinds":
          let kinds = value.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
          if let wrong = kinds.first(where: { GatewayEvent.Kind(rawValue: $0) == nil }) {
            let known = GatewayEvent.Kind.allCases.map(\.rawValue).joined(separator: ", ")
            throw APIError(.badRequest, "kinds: \(wrong.prefix(64)) is not a kind; the kinds are \(known)")
          }
          out.kinds = Set(kinds)
        case "subject": out.subject = value
        default: throw APIError(.badRequest, "unknown query parameter; known: after, limit, kinds, subject")
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

    func fits(_ kind: String, subject: String) -> Bool {
      (kinds?.contains(kind) ?? true) && (self.subject.map { $0 == subject } ?? true)
    }
  }
}

/// Server-Sent Events of one client. A client that reads too slowly, until the journal no longer has its next event, is
/// disconnected, and reconnects with its last id.
private final class EventStream: ResponseStream {
  private let reader: EventReader
  private let epoch: String
  private let query: EventHandlers.Query
  /// The last entry that was read, and when something was sent.
  private let state: Mutex<(after: UInt64, said: Instant)>
  private static let silence = Duration.seconds(15)
  /// Entries that are read in one step of the server's thread.
  private static let entries = 64

  init(_ reader: EventReader, epoch: String, after: UInt64, _ query: EventHandlers.Query) {
    (self.reader, self.epoch, self.query) = (reader, epoch, query)
    state = Mutex((after, MonotonicClock.now()))
  }

  func next() -> [UInt8]? { state.withLock { next(after: &$0.after, said: &$0.said) } }

  private func next(after: inout UInt64, said: inout Instant) -> [UInt8]? {
    let look = reader.look(after: after, most: Self.entries, entries: Self.entries, fits: query.fits)
    if look.isGap { return nil }
    after = look.after
    var out: [UInt8] = []
    for event in look.events {
      out += Array("id: \(EventCursor(epoch: epoch, position: event.position))\nevent: \(event.kind)\ndata: ".utf8)
      out += event.json + [0x0a, 0x0a]
    }
    let now = MonotonicClock.now()
    if out.isEmpty, look.looked > 0 || now - said > Self.silence { out = Array(": \n\n".utf8) }
    if !out.isEmpty { said = now }
    return out
  }

  func last(_ why: HTTPProblem) -> [UInt8] {
    Array("event: problem\ndata: ".utf8) + why.response.body.filter { $0 != 0x0a } + [0x0a, 0x0a]
  }
}
