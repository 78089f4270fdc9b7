import Foundation
import HTTP
public import Logging
import TrunklineBytes
public import TrunklinePlatform

/// The verify thread: requests the attestation of a caller from a service (RFC 8224 §6.2 done elsewhere). No call waits for it; a
/// question that fails, is late or exceeds the limit is answered with nil, and the call continues unverified.
///
/// A POST of `{"identity": [..], "from": "+1..", "to": "+1..", "date": ".."}`; 200 with `{"attest": "A"}` (B, C) attests the
/// caller, every other answer does not.
///
///     let verifier = try CallerVerifier(url: "https://verifier.example/check", logger: logger)
///     verifier.ask(CallerQuestion(identities: …, from: …, to: …)) { attestation in … }   // on the verify thread
public final class CallerVerifier: Sendable {
  private let thread: HTTPThread<VerifierWorker>
  private let statistics = VerifierStatistics()

  /// `authorities`: PEM that signs the service's certificate; nil: the system's. Plain `http:` is for this machine only; the
  /// configuration checks that.
  public init(url: String, authorities: String? = nil, timeout: Duration = .seconds(1), logger: Logger) throws(SystemError) {
    let statistics = statistics
    let tls = TLSFiles(authorities: authorities)
    thread = try HTTPThread(name: "verify", capacity: Limits.questions, tls: tls, logger: logger) { loop, transfers in
      VerifierWorker(loop: loop, transfers: transfers, url: url, timeout: timeout, logger: logger, statistics: statistics)
    }
  }

  /// Any thread. `answer` is called once: on the verify thread, or here if too many questions wait.
  public func ask(_ question: CallerQuestion, answer: @escaping @Sendable (String?) -> Void) {
    guard !thread.post(.ask(question, answer)) else { return }
    statistics.results[.overload].increment()
    answer(nil)
  }

  /// Ends the thread; questions under way are answered with nil.
  public func stop() { thread.stop() }

  public var metrics: [MetricFamily] { statistics.families }
}

/// A question to a verifier.
public struct CallerQuestion: Sendable, Encodable {
  public var identity: [String]
  public var from: String
  public var to: String
  public var date: String?
  public init(identities: [String], from: String, to: String, date: String? = nil) {
    (identity, self.from, self.to, self.date) = (identities, from, to, date)
  }
}

/// The counters of the verify thread.
final class VerifierStatistics: Sendable {
  enum Result: String, Sendable, CaseIterable { case attested, unverified, failed, overload }
  let results = LabelledCounters<Result>()
  let elapsed = Histogram(bounds: Histogram.secondsBounds)

  var families: [MetricFamily] {
    [
      .counters(
        "trunkline_identity_checks_total", help: "Requests to the verifier of caller identities, by result.", label: "result",
        results),
      .histogram("trunkline_identity_check_seconds", help: "From a request to its answer.", elapsed),
    ]
  }
}

/// The work of the verify thread.
final class VerifierWorker: HTTPWorker {
  enum Message: Sendable { case ask(CallerQuestion, @Sendable (String?) -> Void) }
  private let loop: EventLoop
  private let transfers: HTTPTransfers
  private let url: String
  private let timeout: Duration
  private let logger: Logger
  private let statistics: VerifierStatistics
  private var waiting: [UInt64: @Sendable (String?) -> Void] = [:]
  private var number: UInt64 = 0

  init(
    loop: EventLoop, transfers: HTTPTransfers, url: String, timeout: Duration, logger: Logger, statistics: VerifierStatistics
  ) {
    (self.loop, self.transfers, self.url, self.timeout) = (loop, transfers, url, timeout)
    (self.logger, self.statistics) = (logger, statistics)
  }

  func started() {}

  func handle(_ messages: [Message]) {
    for case .ask(let question, let answer) in messages { ask(question, answer) }
  }

  func ended(_ rest: [Message]) {
    for answer in waiting.values { answer(nil) }
    waiting.removeAll()
    for case .ask(_, let answer) in rest { answer(nil) }
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
    let request = HTTPClientRequest(
      connection: "verifier", url: url, headers: [("content-type", "application/json")], body: Array(body), timeout: timeout,
      unacknowledged: min(timeout / 2, .seconds(3)), goesAgain: true, protocols: url.hasPrefix("http:") ? "http" : "https")
    transfers.start(request) { [unowned self] result in
      statistics.elapsed.record(loop.now - began)
      answered(own, result)
    }
  }

  private func answered(_ own: UInt64, _ result: Result<HTTPClientResponse, HTTPFailure>) {
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

  /// A, B or C of RFC 8588; nil for any other body.
  static func attestation(_ body: [UInt8]) -> String? {
    struct Verdict: Decodable { var attest: String? }
    guard let attest = (try? JSONDecoder().decode(Verdict.self, from: Data(body)))?.attest else { return nil }
    return ["A", "B", "C"].contains(attest) ? attest : nil
  }
}
