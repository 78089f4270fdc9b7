public import Bytes
import HTTP
public import Logging
public import Platform
public import PushPolicy

/// The webhook thread: asks servers of the operator whom a call is for. No thread waits for it.
///
///     let hooks = try Webhooks(logger: logger) { call, answer in inbox.post(.routed(call, answer)) }
///     hooks.ask(question, hook)
///     hooks.stop()
///
/// `answer` is called on the webhook thread, once for each question that was taken, with nil where there is none worth having: no
/// connection, a redirect, 4xx, 5xx, nonsense, more than fits, too many at once, a server that is left alone because it fails.
/// It may come as late as `Limits.webhookTime`.
public final class Webhooks: Sendable {
  public typealias Answer = @Sendable (Identifier, RouteAnswer?) -> Void
  private let thread: HTTPThread<WebhookWorker>
  private let statistics = WebhookStatistics()

  /// - Parameter tls: who is trusted; nil authorities are the system's.
  public init(tls: TLSFiles = TLSFiles(), logger: Logger, answer: @escaping Answer) throws(SystemError) {
    let statistics = statistics
    thread = try HTTPThread(name: "webhook", capacity: Limits.webhookMailbox, tls: tls, logger: logger) { loop, transfers in
      WebhookWorker(loop: loop, transfers: transfers, statistics: statistics, logger: logger, answer: answer)
    }
  }

  /// Any thread. False when the queue is full: nothing is asked and nothing answered.
  @discardableResult public func ask(_ question: RouteQuestion, _ hook: Webhook) -> Bool { thread.post(.ask(question, hook)) }

  /// Any thread. Who is trusted from the next question on; those under way end on their old connection.
  public func replace(_ tls: TLSFiles) { thread.post(.tls(tls)) }

  /// Ends the thread; questions under way are not answered any more.
  public func stop() { thread.stop() }

  public var queue: MailboxReading { thread.queue }
  public var metrics: [MetricFamily] { statistics.families }
}

final class WebhookStatistics: Sendable {
  /// answered, late, refused (HTTP status), failed (no answer), nonsense, skipped.
  let outcomes = CounterTable(labelNames: ["outcome"])
  let time = Histogram(bounds: Histogram.secondsBounds)
  let open = Gauge()

  var families: [MetricFamily] {
    [
      .counters("trunkline_webhooks_total", "Questions to webhooks by how they ended.", outcomes),
      .histogram("trunkline_webhook_seconds", "From a question to its answer.", time),
      .gauge("trunkline_webhook_circuit_open", "1 while a webhook's server is left alone because it fails.", open),
    ]
  }
}

/// What runs on the webhook thread.
private final class WebhookWorker: HTTPWorker {
  enum Message: Sendable {
    case ask(RouteQuestion, Webhook)
    case tls(TLSFiles)
  }
  private let loop: EventLoop
  private let transfers: HTTPTransfers
  private let statistics: WebhookStatistics
  private let logger: Logger
  private let answer: Webhooks.Answer
  private var gate = WebhookGate()

  init(
    loop: EventLoop, transfers: HTTPTransfers, statistics: WebhookStatistics, logger: Logger, answer: @escaping Webhooks.Answer
  ) {
    (self.loop, self.transfers, self.statistics, self.logger, self.answer) = (loop, transfers, statistics, logger, answer)
  }

  func started() {}
  func ended(_ rest: [Message]) {}

  func take(_ messages: [Message]) {
    for message in messages {
      switch message {
      case .ask(let question, let hook): ask(question, hook)
      case .tls(let files): transfers.replace(files)
      }
    }
  }

  private func ask(_ question: RouteQuestion, _ hook: Webhook) {
    guard gate.admits(hook.url, at: loop.now) else { return ended(question, nil, "skipped") }
    let began = loop.now
    let body = question.body
    let request = HTTPClientRequest(
      connection: hook.url, url: hook.url, headers: hook.headers(body, at: WallClock.nowMilliseconds() / 1_000), body: body,
      timeout: Limits.webhookTime, protocols: "http,https")
    transfers.start(request) { [unowned self] result in
      let took = loop.now - began
      statistics.time.record(took)
      let isLate = took > Limits.webhookDeadline
      switch result {
      case .success(let answer):
        gate.ended(hook.url, answered: answer.status < 500 && !isLate, at: loop.now)
        let read = RouteAnswer(answer)
        let outcome = answer.status != 200 ? "refused" : read == nil ? "nonsense" : isLate ? "late" : "answered"
        ended(question, read, outcome, Self.problem(answer))
      case .failure(let failure):
        gate.ended(hook.url, answered: false, at: loop.now)
        ended(question, nil, "failed", failure.text)
      }
      statistics.open.set(gate.isOpen(hook.url) ? 1 : 0)
    }
  }

  /// Why an answer is not used, for the author of the webhook.
  private static func problem(_ answer: HTTPClientResponse) -> String {
    switch answer.status {
    case 200 where answer.body.count > PushPolicy.Limits.routeAnswerBytes:
      "the answer is longer than \(PushPolicy.Limits.routeAnswerBytes) bytes"
    case 200: #"200, but no answer such as {"users": ["alice"], "name": "Carol"} or {"code": 404}"#
    case 300...399: "status \(answer.status): redirects are not followed, give the final URL"
    default: "status \(answer.status)"
    }
  }

  private func ended(_ question: RouteQuestion, _ read: RouteAnswer?, _ outcome: String, _ why: String? = nil) {
    statistics.outcomes.counter(outcome).increment()
    if read == nil {
      logger.warning(
        "a webhook gave no route", metadata: ["call": "\(question.call)", "outcome": "\(outcome)", "why": "\(why ?? "")"])
    }
    answer(question.call, read)
  }
}
