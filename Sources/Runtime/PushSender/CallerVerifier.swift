import Bytes
import Foundation
public import Logging
public import Platform
import Synchronization

/// The verify thread: asks a service who stands for a caller (RFC 8224 §6.2 done elsewhere). Nobody waits for it; a question that
/// fails, is late or is one too many is answered with nil, and the call goes on unverified.
///
/// A POST of `{"identity": [..], "from": "+1..", "to": "+1..", "date": ".."}`; 200 with `{"attest": "A"}` (B, C) stands for the
/// caller, everything else does not.
///
///     let verifier = try CallerVerifier(url: "https://verifier.example/check", logger: logger)
///     verifier.ask(CallerQuestion(identities: …, from: …, to: …)) { attestation in … }   // on the verify thread
public final class CallerVerifier: Sendable {
  private let mailbox: Mailbox<VerifierWorker.Message>
  private let thread: Mutex<NamedThread?>
  private let statistics = VerifierStatistics()

  /// `authorities`: PEM that signs the service's certificate; nil: the system's. Plain `http:` is for this machine only, and checked
  /// with the configuration.
  public init(url: String, authorities: String? = nil, timeout: Duration = .seconds(1), logger: Logger) throws(SystemError) {
    guard curlIsReady else { throw SystemError("initialize libcurl", code: 0) }
    let mailbox = try Mailbox<VerifierWorker.Message>(capacity: Limits.questions)
    let loop = try EventLoop(name: "verify")
    self.mailbox = mailbox
    thread = Mutex(nil)
    let statistics = statistics
    let running = try NamedThread.start(name: "verify", logger: logger) {
      let worker = VerifierWorker(
        loop: loop, mailbox: mailbox, url: url, authorities: authorities, timeout: timeout, logger: logger, statistics: statistics
      )
      worker.run()
    }
    thread.withLock { $0 = running }
  }

  /// Any thread. `answer` is called once: on the verify thread, or here when too many questions wait.
  public func ask(_ question: CallerQuestion, answer: @escaping @Sendable (String?) -> Void) {
    guard !mailbox.post(.ask(question, answer)) else { return }
    statistics.results[.overload].increment()
    answer(nil)
  }

  /// Ends the thread; questions under way are answered with nil.
  public func stop() {
    let running = thread.withLock { thread in
      defer { thread = nil }
      return thread
    }
    guard let running else { return }
    while !mailbox.post(.stop) { _ = mailbox.depth }
    running.join()
  }

  public var metrics: [MetricFamily] { statistics.families }
}

/// What a verifier is asked.
public struct CallerQuestion: Sendable, Encodable {
  public var identity: [String]
  public var from: String
  public var to: String
  public var date: String?
  public init(identities: [String], from: String, to: String, date: String? = nil) {
    (identity, self.from, self.to, self.date) = (identities, from, to, date)
  }
}

/// What the verify thread counts.
final class VerifierStatistics: Sendable {
  enum Result: String, Sendable, CaseIterable { case attested, unverified, failed, overload }
  let results = LabelledCounters<Result>()
  let took = Histogram(bounds: Histogram.secondsBounds)

  var families: [MetricFamily] {
    [
      .counters(
        "trunkline_identity_checks_total", "Questions to the verifier of caller identities, by result.", label: "result", results),
      .histogram("trunkline_identity_check_seconds", "From a question to its answer.", took),
    ]
  }
}

/// What runs on the verify thread.
final class VerifierWorker {
  enum Message: Sendable {
    case ask(CallerQuestion, @Sendable (String?) -> Void)
    case stop
  }
  private let loop: EventLoop
  private let mailbox: Mailbox<Message>
  private let transfers: HTTPTransfers
  private let url: String
  private let timeout: Duration
  private let logger: Logger
  private let statistics: VerifierStatistics
  private var waiting: [UInt64: @Sendable (String?) -> Void] = [:]
  private var number: UInt64 = 0
  private var batch: [Message] = []

  init(
    loop: EventLoop, mailbox: Mailbox<Message>, url: String, authorities: String?, timeout: Duration, logger: Logger,
    statistics: VerifierStatistics
  ) {
    (self.loop, self.mailbox, self.url, self.timeout) = (loop, mailbox, url, timeout)
    (self.logger, self.statistics) = (logger, statistics)
    transfers = HTTPTransfers(loop: loop, tls: TLSFiles(authorities: authorities))
  }

  func run() {
    do {
      try loop.register(mailbox.event.fd, .readable) { [unowned self] _ in drain() }
    } catch {
      logger.error("callers cannot be verified", metadata: ["why": "\(error)"])
    }
    loop.run()
    loop.unregister(mailbox.event.fd)
    transfers.close()
    for answer in waiting.values { answer(nil) }
    waiting.removeAll()
    takeRest()
  }

  private func drain() {
    batch.removeAll(keepingCapacity: true)
    mailbox.drain(into: &batch, limit: Limits.messagesPerTurn)
    for message in batch {
      switch message {
      case .ask(let question, let answer): ask(question, answer)
      case .stop: loop.stop()
      }
    }
  }

  /// Questions that came beside the stop.
  private func takeRest() {
    batch.removeAll()
    mailbox.drain(into: &batch, limit: Limits.questions)
    for case .ask(_, let answer) in batch { answer(nil) }
  }

  private func ask(_ question: CallerQuestion, _ answer: @escaping @Sendable (String?) -> Void) {
    guard waiting.count < Limits.questions, let body = try? JSONEncoder().encode(question) else {
      statistics.results[.overload].increment()
      return answer(nil)
    }
    number += 1
    let own = number
    waiting[own] = answer
    let began = loop.now
    let request = HTTPRequest(
      group: "verifier", url: url, headers: [("content-type", "application/json")], body: Array(body), timeout: timeout,
      protocols: url.hasPrefix("http:") ? "http" : "https")
    transfers.start(request) { [unowned self] result in
      statistics.took.record(loop.now - began)
      answered(own, result)
    }
  }

  private func answered(_ own: UInt64, _ result: Result<HTTPAnswer, HTTPFailure>) {
    guard let answer = waiting.removeValue(forKey: own) else { return }
    switch result {
    case .success(let got) where got.status == 200:
      let attestation = Self.attestation(got.body)
      statistics.results[attestation == nil ? .unverified : .attested].increment()
      answer(attestation)
    case .success(let got):
      fail("status \(got.status)")
      answer(nil)
    case .failure(let failure):
      fail(failure.text)
      answer(nil)
    }
  }

  private func fail(_ why: String) {
    statistics.results[.failed].increment()
    logger.debug("a caller was not verified", metadata: ["why": "\(why)"])
  }

  /// A, B or C of RFC 8588; nil for everything else.
  static func attestation(_ body: [UInt8]) -> String? {
    struct Verdict: Decodable { var attest: String? }
    guard let attest = (try? JSONDecoder().decode(Verdict.self, from: Data(body)))?.attest else { return nil }
    return ["A", "B", "C"].contains(attest) ? attest : nil
  }
}
