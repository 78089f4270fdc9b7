import EventJournal
import Foundation
import HTTP
import Logging
import PushPolicy
import TrunklineBytes
import TrunklinePlatform

/// The state of the events thread.
final class EventWorker: HTTPWorker {
  enum Message: Sendable {
    case grown
    case webhooks([EventWebhook], TLSFiles)
  }
  /// One webhook.
  private final class Hook {
    var webhook: EventWebhook
    var sink: EventSink
    let reader: EventReader
    let epoch: String
    let file: String
    /// Read from the journal, without room in the sink yet.
    var ahead: ArraySlice<StoredEvent> = []
    var bodies: [UInt64: StoredEvent] = [:]
    /// The number of `changes` in the written state.
    var written: Int
    var isReported = false
    init(_ webhook: EventWebhook, sink: EventSink, reader: EventReader, epoch: String, file: String) {
      (self.webhook, self.sink, self.reader, self.epoch, self.file) = (webhook, sink, reader, epoch, file)
      written = sink.changes
    }
  }

  private let loop: EventLoop
  private let transfers: HTTPTransfers
  private let folder: String
  private let random: RandomSource
  private let statistics: EventStatistics
  private let logger: Logger
  private let initial: [EventWebhook]
  private var hooks: [Hook] = []
  private var timer: EventLoop.TimerID?
  private var stateDue: Instant?

  init(
    loop: EventLoop, transfers: HTTPTransfers, folder: String, webhooks: [EventWebhook], random: RandomSource,
    statistics: EventStatistics, logger: Logger
  ) {
    (self.loop, self.transfers, self.folder, initial, self.random) = (loop, transfers, folder, webhooks, random)
    (self.statistics, self.logger) = (statistics, logger)
  }

  func started() {
    timer = loop.addTimer("events") { [unowned self] in step() }
    replace(initial)
    step()
  }

  func handle(_ messages: [Message]) {
    for case .webhooks(let webhooks, let tls) in messages {
      transfers.replace(tls)
      replace(webhooks)
    }
    step()
  }

  func ended(_ rest: [Message]) { for hook in hooks { write(hook) } }

  private func replace(_ webhooks: [EventWebhook]) {
    let old = Dictionary(hooks.map { ($0.webhook.url, $0) }) { first, _ in first }
    hooks = webhooks.map { webhook in
      if let known = old[webhook.url] {
        known.webhook = webhook
        return known
      }
      return open(webhook)
    }
    let files = Set(hooks.map(\.file))
    for name in (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? [] where name.hasSuffix(".sink") {
      if !files.contains("\(folder)/\(name)") { unlink("\(folder)/\(name)") }
    }
  }

  private func open(_ webhook: EventWebhook) -> Hook {
    let reader = EventReader(folder: folder)
    let epoch = reader.epoch ?? ""
    let file = "\(folder)/\(Self.name(of: webhook.url)).sink"
    struct Saved: Decodable {
      var epoch: String
      var state: EventSink.State
    }
    let saved = FileManager.default.contents(atPath: file).flatMap { try? JSONDecoder().decode(Saved.self, from: $0) }
    var state = saved.flatMap { $0.epoch == epoch ? $0.state : nil } ?? EventSink.State()
    // A power cut may have removed the journal's end: events that replace it are new.
    state.read = min(state.read, reader.range.newest)
    let hook = Hook(webhook, sink: EventSink(state, random: random), reader: reader, epoch: epoch, file: file)
    // Events that were not accepted when the last process ended.
    let open = Set(state.open)
    var after = (state.open.first ?? 1) - 1
    while after < state.read, let last = open.max(), after < last {
      let events = reader.read(after: after, most: Limits.eventsPerRead).events
      guard let end = events.last else { break }
      for event in events where open.contains(event.position) { keep(event, hook) }
      after = end.position
    }
    statistics.outcomes[.lost].increment(by: UInt64(max(0, open.count - hook.bodies.count)))
    return hook
  }

  private static func name(of url: String) -> String {
    String(FNV1a(url.utf8).value, radix: 16)
  }

  private func keep(_ event: StoredEvent, _ hook: Hook) {
    hook.bodies[event.position] = event
    hook.sink.append(.init(position: event.position, subject: event.subject, at: event.at))
  }

  // MARK: sending

  private func step() {
    var next: Instant?
    for hook in hooks {
      fill(hook)
      while let position = hook.sink.next(at: loop.now) { send(position, hook) }
      next = .earliest(next, hook.sink.nextDue(after: loop.now))
      if stateDue == nil, hook.sink.changes != hook.written { stateDue = loop.now + Limits.eventState }
    }
    if let due = stateDue, due <= loop.now {
      stateDue = nil
      for hook in hooks { write(hook) }
    }
    statistics.open.set(Int64(hooks.reduce(0) { $0 + $1.sink.count }))
    statistics.failing.set(Int64(hooks.count { $0.sink.failures > 0 }))
    if let timer { loop.setTimer(timer, at: .earliest(next, stateDue)) }
  }

  /// Reads events of the journal, as far as there is room for them.
  private func fill(_ hook: Hook) {
    while hook.sink.hasRoom {
      if hook.ahead.isEmpty { read(hook) }
      guard let event = hook.ahead.popFirst() else { return }
      if hook.webhook.kinds?.contains(event.kind) ?? true { keep(event, hook) } else { hook.sink.skip(to: event.position) }
    }
  }

  private func read(_ hook: Hook) {
    let (events, isGap) = hook.reader.read(after: hook.sink.read, most: Limits.eventsPerRead)
    hook.ahead = events[...]
    guard isGap, let first = events.first else { return }
    let lost = first.position - hook.sink.read - 1
    statistics.outcomes[.lost].increment(by: lost)
    logger.error(
      "a webhook was too slow: the journal deleted events that it had not accepted",
      metadata: ["url": "\(hook.webhook.shown)", "events": "\(lost)"])
  }

  private func send(_ position: UInt64, _ hook: Hook) {
    guard let event = hook.bodies[position] else {
      // Each waiting event has a body.
      hook.sink.ended(position, .accepted, at: loop.now, wallNow: 0)
      return
    }
    let began = loop.now
    let id = EventCursor(epoch: hook.epoch, position: position).description
    let webhook = hook.webhook
    let request = HTTPClientRequest(
      connection: "events " + webhook.url, url: webhook.url,
      headers: StandardWebhook.headers(
        id: id, body: event.json, keys: webhook.keys, at: WallClock.nowMilliseconds() / 1_000),
      body: event.json, timeout: Limits.eventTime, goesAgain: true, protocols: "http,https")
    transfers.start(request) { [unowned self] result in
      statistics.time.record(loop.now - began)
      ended(position, result, hook)
      step()
    }
  }

  private func ended(_ position: UInt64, _ result: Result<HTTPClientResponse, HTTPFailure>, _ hook: Hook) {
    let (outcome, why) = Self.outcome(result)
    let isExpired = hook.sink.ended(position, outcome, at: loop.now, wallNow: WallClock.nowMilliseconds())
    switch outcome {
    case .accepted:
      statistics.outcomes[.delivered].increment()
      if hook.isReported { logger.notice("a webhook accepts events again", metadata: ["url": "\(hook.webhook.shown)"]) }
      hook.isReported = false
      hook.bodies[position] = nil
    case .failed(let isServer, _):
      statistics.outcomes[isServer ? .failed : .refused].increment()
      if !hook.isReported {
        logger.warning(
          "a webhook does not accept events: they are kept and retried for 24 hours",
          metadata: ["url": "\(hook.webhook.shown)", "why": "\(why)"])
      }
      hook.isReported = true
      guard isExpired else { return }
      statistics.outcomes[.expired].increment()
      hook.bodies[position] = nil
    }
  }

  private static func outcome(_ result: Result<HTTPClientResponse, HTTPFailure>) -> (EventSink.Outcome, why: String) {
    switch result {
    case .success(let answer) where (200...299).contains(answer.status): return (.accepted, "")
    case .success(let answer):
      let wait = answer.retryAfter.map { min(.seconds($0), Limits.eventRetryAfter) }
      let isServer = answer.status >= 500 || answer.status == 429
      let hint = (300...399).contains(answer.status) ? ": redirects are not followed, give the final URL" : ""
      return (.failed(isServer: isServer, retryAfter: isServer ? wait : nil), "status \(answer.status)\(hint)")
    case .failure(let failure): return (.failed(isServer: true, retryAfter: nil), failure.text)
    }
  }

  private func write(_ hook: Hook) {
    let changes = hook.sink.changes
    guard changes != hook.written else { return }
    struct Saved: Encodable {
      var epoch: String
      var url: String
      var state: EventSink.State
    }
    guard let data = try? JSONEncoder().encode(Saved(epoch: hook.epoch, url: hook.webhook.url, state: hook.sink.state)),
      (try? data.write(to: URL(fileURLWithPath: hook.file), options: .atomic)) != nil
    else { return }
    hook.written = changes
  }
}
