import AppServer
import Control
import Foundation
import Logging
import Synchronization
import Testing
import TrunklinePlatform

@testable import EventJournal
@testable import trunkline

/// Refusals of `/v1/events`, of its pages and of its stream; what it answers else: `EventTests`.
@Suite struct EventPagesTests {
  private let folder = FileManager.default.temporaryDirectory.appendingPathComponent("pages-\(UUID().uuidString)").path

  private struct Problem: Decodable { var title, detail, code: String, status: Int }

  private func request(_ query: String, isStream: Bool = false, last: String? = nil) throws -> AdminRequest {
    var request = try AdminRequest("GET", target: "/v1/events?" + query)
    if isStream { request.fields = [("accept", "text/event-stream")] }
    if let last { request.fields.append(("last-event-id", last)) }
    return request
  }

  private func pages(_ folder: String?) throws -> EventHandlers {
    EventHandlers(folder: folder, asker: try Asker(inbox: Inbox()))
  }

  /// What the first step answers.
  private func answer(_ pages: EventHandlers, _ request: AdminRequest) throws -> AdminResponse {
    let told = Mutex<AdminResponse?>(nil)
    pages.answer(request) { response in told.withLock { $0 = response } }
    return try #require(told.withLock { $0 })
  }

  private func expect(
    _ code: APIError.Code, _ response: AdminResponse, _ location: SourceLocation = #_sourceLocation
  ) {
    let problem = try? JSONDecoder().decode(Problem.self, from: Data(response.body))
    #expect(response.status == code.status && problem?.status == code.status, sourceLocation: location)
    #expect(problem?.code == code.rawValue && problem?.detail.isEmpty == false, sourceLocation: location)
    #expect(response.contentType == "application/problem+json" && response.stream == nil, sourceLocation: location)
  }

  @Test(arguments: [false, true]) func `refusals are problems with a code, also of a stream`(isStream: Bool) throws {
    expect(.unknownPage, try answer(pages(nil), request("", isStream: isStream)))
    expect(.overload, try answer(pages(folder), request("", isStream: isStream)))
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: folder) }
    try Data("0123abcd\n".utf8).write(to: URL(fileURLWithPath: folder + "/epoch"))
    let pages = try pages(folder)
    for query in [
      "after=x", "limit=0", "limit=1001", "kinds=call.nothing", "until=1", #"kinds=""#, "kinds=,", "kinds=call.ended,",
      "limit=%2B5", "limit=+5", "after=", "limit=1&limit=2",
    ] {
      expect(.badRequest, try answer(pages, request(query, isStream: isStream)))
    }
    for query in ["after=00000000-1", "after=0123abcd-5"] { expect(.gone, try answer(pages, request(query, isStream: isStream))) }
    let response = try answer(pages, request("after=latest", isStream: isStream))
    #expect(response.status == 200 && (response.stream != nil) == isStream)
  }

  @Test func `a stream goes on behind Last-Event-ID, and one that is none is refused`() throws {
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: folder) }
    try Data("0123abcd\n".utf8).write(to: URL(fileURLWithPath: folder + "/epoch"))
    let pages = try pages(folder)
    expect(.badRequest, try answer(pages, request("", isStream: true, last: "x")))
    expect(.gone, try answer(pages, request("", isStream: true, last: "00000000-1")))
    #expect(try answer(pages, request("", isStream: true, last: "0123abcd-0")).status == 200)
  }

  private struct Body: Decodable {
    var events: [[String: String]]
    var after: String
    var more: Bool
  }

  /// Reads the journal to its end with a filter; what each answer cost beside its own request.
  private func readAll(_ query: String, perAnswer: Int = .max) throws -> (events: Int, answers: Int, spent: [Int]) {
    let asker = try Asker(inbox: Inbox())
    try asker.start(logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
    defer { asker.stop() }
    let pages = EventHandlers(folder: folder, asker: asker)
    var (events, spent, after) = (0, [Int](), "")
    while spent.count < 1_000 {
      let told = Mutex<AdminResponse?>(nil)
      let cost = Atomic<Int>(0)
      let done = try EventDescriptor()
      var request = try request(query + (after.isEmpty ? "" : "&after=\(after)"))
      request.spend = {
        guard cost.load(ordering: .relaxed) < perAnswer else { return false }
        cost.add(1, ordering: .relaxed)
        return true
      }
      pages.answer(request) { response in
        told.withLock { $0 = response }
        done.signal()
      }
      #expect(done.wait(milliseconds: 30_000))
      let response = try #require(told.withLock { $0 })
      let body = try JSONDecoder().decode(Body.self, from: Data(response.body))
      events += body.events.count
      spent.append(cost.load(ordering: .relaxed))
      if !body.more { break }
      #expect(body.after != after, "each answer gets on")
      after = body.after
    }
    return (events, spent.count, spent)
  }

  /// What a request looks at is bounded and paid for, so that a filter that fits nothing costs no more than its token may.
  @Test func `a filter that fits nothing or everything is answered in steps that count against the token's rate`() throws {
    defer { try? FileManager.default.removeItem(atPath: folder) }
    let journal = try EventJournal(folder: folder)
    try journal.append(
      (1...10_000).map { number in
        .init(at: 1_000, kind: "call.started", subject: "c\(number)") { Array(#"{"id":"\#($0)"}"#.utf8) }
      })
    let most = EventHandlers.scanned / EventHandlers.step
    let nothing = try readAll("kinds=call.ended&limit=1000")
    #expect(nothing.events == 0 && nothing.answers == 3 && nothing.spent.allSatisfy { $0 <= most })
    #expect(nothing.spent[0] == most - 1, "the request itself was paid for at the door")
    let all = try readAll("limit=1000")
    #expect(all.events == 10_000 && all.spent.allSatisfy { $0 <= 4 })
    let poor = try readAll("subject=none", perAnswer: 2)
    #expect(poor.answers == 14 && poor.spent.allSatisfy { $0 <= 2 }, "who has nothing left is told to go on from there")
  }
}
