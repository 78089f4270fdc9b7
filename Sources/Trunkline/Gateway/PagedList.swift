import AppServer
import Control
import Foundation
import Synchronization
import WebServer

/// `{"NAME":[…]}` of a table that its owner answers in pages: a short list is sent whole, a long one piece by piece, each
/// requested when the one before it is written. So a long list is never held whole, nor made in one step.
///
///     PagedList("devices", asker, client: client, wake: wake, read: { … }).answer(.devices(filter, after: nil), answer)
final class PagedList: ResponseStream {
  struct Page {
    /// The rows as JSON, without brackets; empty: no row of the page matched.
    var rows: [UInt8]
    /// The question for the next page; nil: this was the last.
    var next: ControlQuestion?

    init(_ rows: [some Encodable], next: ControlQuestion?) {
      self.next = next
      let json = rows.isEmpty ? [] : AdminResponse.json(200, rows).body
      self.rows = Array(json.dropFirst().dropLast())
    }
  }
  /// Nil: the answer does not fit the question.
  typealias Read = @Sendable (ControlAnswer) -> Page?

  private struct State {
    var ready: [UInt8] = []
    var next: ControlQuestion?
    var isAsking = false
    var isBroken = false
    var hasRows = false
    var share: Asker.Share?
  }
  /// A longer answer is sent in pieces.
  static let wholeBytes = 256 * 1_024

  private let name: String
  private let asker: Asker
  private let client: String
  private let wake: @Sendable () -> Void
  private let read: Read
  private let state = Mutex(State())

  /// - Parameter wake: makes the server request more; any thread.
  init(_ name: String, _ asker: Asker, client: String, wake: @escaping @Sendable () -> Void, read: @escaping Read) {
    (self.name, self.asker, self.client, self.wake, self.read) = (name, asker, client, wake, read)
  }

  /// - Parameter ifEmpty: the answer if no row matches; nil: an empty list.
  func answer(_ question: ControlQuestion, ifEmpty: APIError? = nil, _ answer: @escaping AdminRequest.Answer) {
    state.withLock { $0.ready = Array("{\"\(name)\":[".utf8) }
    begin(question, ifEmpty, answer)
  }

  /// Reads pages until the list is complete, or too long to wait for all of it.
  private func begin(_ question: ControlQuestion, _ ifEmpty: APIError?, _ answer: @escaping AdminRequest.Answer) {
    asker.ask(question, for: client) { [self] found in
      guard let found, let page = read(found) else { return answer(APIError.busy.response) }
      let (bytes, hasRows) = append(page)
      if let next = page.next, bytes < Self.wholeBytes { return begin(next, ifEmpty, answer) }
      if page.next == nil, !hasRows, let ifEmpty { return answer(ifEmpty.response) }
      let body = state.withLock { state in
        defer { state.ready = [] }
        return state.ready
      }
      var response = AdminResponse(200, contentType: "application/json", body: body)
      if page.next != nil {
        guard let share = asker.begin(for: client) else { return answer(APIError.tooManyAtOnce.response) }
        state.withLock { $0.share = share }
        response.stream = self
      }
      answer(response)
    }
  }

  /// Octets that wait to be written, and whether there was a row yet.
  private func append(_ page: Page) -> (bytes: Int, hasRows: Bool) {
    state.withLock { state in
      if !page.rows.isEmpty {
        if state.hasRows { state.ready.append(UInt8(ascii: ",")) }
        state.ready += page.rows
        state.hasRows = true
      }
      if page.next == nil { state.ready += Array("]}".utf8) }
      state.next = page.next
      state.isAsking = false
      return (state.ready.count, state.hasRows)
    }
  }

  // MARK: the server's thread

  var hasEnd: Bool { true }
  var isBroken: Bool { state.withLock { $0.isBroken } }

  func next() -> [UInt8]? {
    let (ready, question, isOver) = state.withLock { state -> ([UInt8], ControlQuestion?, Bool) in
      let ready = state.ready
      state.ready = []
      let isOver = state.isBroken || (ready.isEmpty && state.next == nil && !state.isAsking)
      guard !state.isAsking, let question = state.next, !isOver else { return (ready, nil, isOver) }
      state.isAsking = true
      return (ready, question, false)
    }
    if let question { more(question) }
    return isOver ? nil : ready
  }

  private func more(_ question: ControlQuestion) {
    asker.ask(question, for: client) { [weak self] found in
      guard let self else { return }
      if let found, let page = read(found) {
        _ = append(page)
      } else {
        state.withLock { ($0.isBroken, $0.next, $0.isAsking) = (true, nil, false) }
      }
      wake()
    }
  }
}
