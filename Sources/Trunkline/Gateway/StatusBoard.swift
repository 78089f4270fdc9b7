import AppServer
import CallFlow
import Control
import Synchronization
import Telemetry
import Trunking
import TrunklineBytes
import TrunklinePlatform

/// The content of the status page in one answer: `GET /v1/status`. It reads the calls from control at most once in
/// `StatusLimits.life`, however many clients ask: clients meanwhile get the same answer. The states of trunks and components are
/// here already.
///
/// | a request arrives | answer |
/// |---|---|
/// | while an answer is young | at once, that answer |
/// | otherwise | after calls are read now, page by page |
/// | while calls are read | together with the first request |
/// | while calls are read for `StatusLimits.patience` already | at once, without current calls: `complete` is false |
final class StatusBoard: Sendable {
  private struct Waiting {
    var find: String?
    var answer: AdminRequest.Answer
  }
  private struct Reading {
    let began: Instant
    var calls: [StatusCall] = []
    var waiting: [Waiting]
  }
  private struct State {
    var reading: Reading?
    var calls: [StatusCall] = []
    /// When `calls` were read; nil: never.
    var at: Instant?
    /// The answer to a request without `find`, made from `calls`.
    var body: [UInt8] = []
    var isYoungUntil = Instant(nanoseconds: 0)
  }

  private let facts: StatusFacts
  private let read: ReadCalls
  private let state = Mutex(State())

  init(_ facts: StatusFacts, read: @escaping ReadCalls) { (self.facts, self.read) = (facts, read) }

  /// On the thread `pages`.
  func answer(_ request: AdminRequest, _ answer: @escaping AdminRequest.Answer, now: Instant = MonotonicClock.now())
    throws(APIError)
  {
    let find = try request.queryValue("find")
    guard (find?.utf8.count ?? 0) <= StatusLimits.find else {
      throw APIError(.badRequest, "find: at most \(StatusLimits.find) octets")
    }
    let waiting = Waiting(find: find, answer: answer)
    enum Next { case read, wait, young, late([Waiting]) }
    let next = state.withLock { state -> Next in
      if state.at != nil, now < state.isYoungUntil { return .young }
      guard state.reading != nil else {
        state.reading = Reading(began: now, waiting: [waiting])
        return .read
      }
      state.reading?.waiting.append(waiting)
      guard let reading = state.reading, now - reading.began > StatusLimits.patience else { return .wait }
      state.reading?.waiting = []
      return .late(reading.waiting)
    }
    switch next {
    case .young: give(waiting)
    case .read:
      read(
        request.client, { [self] page in state.withLock { $0.reading?.calls += page } }, { [self] in finish(isComplete: $0) })
    case .wait: break
    case .late(let all): all.forEach { give($0, isComplete: false) }
    }
  }

  private func finish(isComplete: Bool, now: Instant = MonotonicClock.now()) {
    let waiting = state.withLock { state -> [Waiting] in
      guard let reading = state.reading else { return [] }
      state.reading = nil
      guard isComplete else { return reading.waiting }
      state.calls = reading.calls.sorted { $0.isBefore($1) }
      state.at = now
      state.body = []
      let elapsed = now - reading.began
      state.isYoungUntil = now + min(max(StatusLimits.life, elapsed * 10), StatusLimits.longestLife)
      return reading.waiting
    }
    waiting.forEach { give($0, isComplete: isComplete) }
  }

  private func give(_ waiting: Waiting, isComplete: Bool = true) {
    let (calls, at, body) = state.withLock { ($0.calls, $0.at, $0.body) }
    if waiting.find == nil, isComplete, !body.isEmpty { return waiting.answer(Self.response(body)) }
    let status = facts.status(calls, at: at, isComplete: isComplete, find: waiting.find)
    let response = AdminResponse.json(200, status)
    if waiting.find == nil, isComplete { state.withLock { if $0.at == at { $0.body = response.body } } }
    waiting.answer(Self.response(response.body))
  }

  private static func response(_ body: [UInt8]) -> AdminResponse {
    AdminResponse(200, contentType: "application/json", headers: [("Cache-Control", "no-store")], body: body)
  }
}

/// Reads all live calls for a client: pages of calls, then whether they were complete. On the thread `pages`.
typealias ReadCalls =
  @Sendable (
    _ client: String, _ page: @escaping @Sendable ([StatusCall]) -> Void, _ done: @escaping @Sendable (Bool) -> Void
  ) -> Void

extension Asker {
  /// Reads control's calls, one page after the other.
  var readCalls: ReadCalls { { [self] client, page, done in readCalls(after: nil, client, page, done) } }

  private func readCalls(
    after last: CallNumber?, _ client: String, _ page: @escaping @Sendable ([StatusCall]) -> Void,
    _ done: @escaping @Sendable (Bool) -> Void
  ) {
    ask(.calls(after: last), for: client) { [self] found in
      guard case .calls(let found)? = found else { return done(false) }
      page(found.rows.map { StatusCall($0.summary) })
      guard let next = found.next else { return done(true) }
      readCalls(after: next, client, page, done)
    }
  }
}

/// The bounds of `/v1/status`.
enum StatusLimits {
  /// Rows of calls and of trunks in an answer; the rest is counted.
  static let rows = 100
  /// Octets of `find`.
  static let find = 256
  /// How long an answer is reused, unless reading the calls took more than a tenth of that time; and the longest reuse.
  static let life = Duration.seconds(3)
  static let longestLife = Duration.seconds(30)
  /// The longest wait of a client for control.
  static let patience = Duration.seconds(2)
}
