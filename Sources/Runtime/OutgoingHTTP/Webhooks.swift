import HTTP
public import Logging
public import PushPolicy
public import TrunklineBytes
public import TrunklinePlatform

/// The webhook thread: asks the operator's servers to which users a call is routed, and whether users exist. No thread waits for
/// it.
///
///     let hooks = try Webhooks(logger: logger) { call, answer in inbox.post(.routed(call, answer)) }
///     hooks.ask(question, hook)
///     hooks.stop()
///
/// `answer` and `user` are called on the webhook thread, once for each accepted question, with nil if there is no usable answer:
/// no connection, a redirect, 4xx, 5xx, invalid content, more bytes than allowed, too many questions at once, a server that is
/// skipped because it fails. An answer arrives after `Limits.webhookTime` at the latest, about a user after
/// `Limits.userWebhookTime`.
public final class Webhooks: Sendable {
  public typealias Answer = @Sendable (Identifier, RouteAnswer?) -> Void
  public typealias UserKnown = @Sendable (UserQuestion, UserAnswer?) -> Void
  private let thread: HTTPThread<WebhookWorker>
  private let statistics = WebhookStatistics()

  /// - Parameter tls: the trusted authorities (nil: the system's).
  public init(
    tls: TLSFiles = TLSFiles(), logger: Logger, answer: @escaping Answer, user: @escaping UserKnown = { _, _ in }
  ) throws(SystemError) {
    let statistics = statistics
    thread = try HTTPThread(name: "webhook", capacity: Limits.webhookMailbox, tls: tls, logger: logger) { loop, transfers in
      WebhookWorker(loop: loop, transfers: transfers, statistics: statistics, logger: logger, answer: answer, user: user)
    }
  }

  /// Any thread. False when the queue is full: nothing is sent, and neither closure is called.
  @discardableResult public func ask(_ question: RouteQuestion, _ hook: Webhook) -> Bool { thread.post(.ask(question, hook)) }

  @discardableResult public func ask(_ question: UserQuestion, _ hook: Webhook) -> Bool { thread.post(.askUser(question, hook)) }

  /// Any thread. Replaces the trusted authorities from the next question on; questions under way end on their old connection.
  public func replace(_ tls: TLSFiles) { thread.post(.tls(tls)) }

  /// Ends the thread; questions under way are no longer answered.
  public func stop() { thread.stop() }

  public var queue: MailboxReading { thread.queue }
  public var metrics: [MetricFamily] { statistics.families }
}

final class WebhookStatistics: Sendable {
  enum Outcome: String, CaseIterable, Sendable {
    case answered, late
    /// By an HTTP status.
    case refused
    /// No answer.
    case failed
    /// An answer that is none.
    case nonsense
    /// Not asked, because its server fails.
    case skipped
  }
  let outcomes = LabelledCounters<Outcome>()
  let time = Histogram(bounds: Histogram.secondsBounds)
  let open = Gauge()

  var families: [MetricFamily] {
    [
      .counters("trunkline_webhooks_total", help: "Requests to webhooks by how they ended.", label: "outcome", outcomes),
      .histogram("trunkline_webhook_seconds", help: "From a request to its answer.", time),
      .gauge("trunkline_webhook_circuit_open", help: "1 while a webhook's server gets no requests because it fails.", open),
    ]
  }
}

/// The work of the webhook thread.
private final class WebhookWorker: HTTPWorker {
  enum Message: Sendable {
    case ask(RouteQuestion, Webhook)
    case askUser(UserQuestion, Webhook)
    case tls(TLSFiles)
  }
  private let loop: EventLoop
  private let transfers: HTTPTransfers
  private let statistics: WebhookStatistics
  private let logger: Logger
  private let answer: Webhooks.Answer
  private let user: Webhooks.UserKnown
  private var gate = WebhookGate()

  init(
    loop: EventLoop, transfers: HTTPTransfers, statistics: WebhookStatistics, logger: Logger, answer: @escaping Webhooks.Answer,
    user: @escaping Webhooks.UserKnown
  ) {
    (self.loop, self.transfers, self.statistics, self.logger) = (loop, transfers, statistics, logger)
    (self.answer, self.user) = (answer, user)
  }

  func started() {}
  func ended(_ rest: [Message]) {}

  func handle(_ messages: [Message]) {
    for message in messages {
      switch message {
      case .ask(let question, let hook):
        let sample = #"{"users": ["alice"], "name": "Carol"} or {"code": 404}"#
        ask(
          hook, body: question.body, within: Limits.webhookTime, expecting: sample, about: "call \(question.call)",
          RouteAnswer.init
        ) { [answer] read in
          answer(question.call, read)
        }
      case .askUser(let question, let hook):
        let sample = #"{"user": "alice", "grant": {"numbers": ["+15551230001"]}} or a 404"#
        ask(
          hook, body: question.body, within: Limits.userWebhookTime, expecting: sample, about: "a user",
          { UserAnswer($0, to: question) }
        ) {
          [user] read in
          user(question, read)
        }
      case .tls(let files): transfers.replace(files)
      }
    }
  }

  /// - Parameters:
  ///   - sample: an expected answer, for the log: the author of the webhook reads it.
  ///   - about: the subject of the question, for the log.
  private func ask<Read>(
    _ hook: Webhook, body: [UInt8], within time: Duration, expecting sample: String, about: String,
    _ read: @escaping (HTTPClientResponse) -> Read?, _ answer: @escaping (Read?) -> Void
  ) {
    func ended(_ read: Read?, outcome: WebhookStatistics.Outcome, because why: String = "") {
      statistics.outcomes[outcome].increment()
      if read == nil {
        logger.warning(
          "a webhook gave no answer", metadata: ["about": "\(about)", "outcome": "\(outcome.rawValue)", "why": "\(why)"])
      }
      answer(read)
    }
    guard gate.admits(hook.url, at: loop.now) else { return ended(nil, outcome: .skipped) }
    let began = loop.now
    let request = HTTPClientRequest(
      connection: hook.url, url: hook.url, headers: hook.headers(body, at: WallClock.nowMilliseconds() / 1_000), body: body,
      timeout: time, unacknowledged: min(time, Limits.webhookDeadline) / 2, goesAgain: true, protocols: "http,https")
    transfers.start(request) { [unowned self] result in
      let elapsed = loop.now - began
      statistics.time.record(elapsed)
      let isLate = elapsed > Limits.webhookDeadline
      switch result {
      case .success(let response):
        gate.ended(hook.url, answered: response.status < 500 && !isLate, at: loop.now)
        let read = read(response)
        let isRefusal = response.status != 200 && read == nil
        ended(
          read, outcome: isRefusal ? .refused : read == nil ? .nonsense : isLate ? .late : .answered,
          because: Self.problem(response, expecting: sample))
      case .failure(let failure):
        gate.ended(hook.url, answered: false, at: loop.now)
        ended(nil, outcome: .failed, because: failure.text)
      }
      statistics.open.set(gate.isOpen(hook.url) ? 1 : 0)
    }
  }

  /// Why an answer is unusable, in words for the author of the webhook.
  private static func problem(_ answer: HTTPClientResponse, expecting sample: String) -> String {
    switch answer.status {
    case 200 where answer.body.count > PushPolicy.Limits.routeAnswerBytes:
      "the answer is longer than \(PushPolicy.Limits.routeAnswerBytes) bytes"
    case 200: "200, but no answer such as \(sample)"
    case 300...399: "status \(answer.status): redirects are not followed, give the final URL"
    default: "status \(answer.status)"
    }
  }
}
