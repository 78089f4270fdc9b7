import HTTP
import JSONWebToken
import Logging
import PushPolicy
import TrunklineBytes
import TrunklinePlatform

/// The work of the keys thread.
final class KeyWorker: HTTPWorker {
  enum Message: Sendable {
    case want
    case source(KeyFetcher.Source?)
  }
  private let loop: EventLoop
  private let transfers: HTTPTransfers
  private let statistics: KeyStatistics
  private let logger: Logger
  private let changed: @Sendable (KeyFetcher.News) -> Bool
  private var source: KeyFetcher.Source?
  private var refresh: KeyRefresh
  private var news: KeyFetcher.News?
  /// `changed` returned false for `news`: call it again.
  private var isToBeGiven = false
  /// Counts the sources: an answer of an earlier source is dropped.
  private var sources = 0
  private var timer: EventLoop.TimerID?

  init(
    loop: EventLoop, transfers: HTTPTransfers, source: KeyFetcher.Source?, statistics: KeyStatistics, logger: Logger,
    changed: @escaping @Sendable (KeyFetcher.News) -> Bool
  ) {
    (self.loop, self.transfers, self.source, self.statistics) = (loop, transfers, source, statistics)
    (self.logger, self.changed, refresh) = (logger, changed, KeyRefresh(at: loop.now))
  }

  func started() {
    timer = loop.addTimer("keys") { [unowned self] in due() }
    begin()
  }

  func handle(_ messages: [Message]) {
    for message in messages {
      switch message {
      case .want: refresh.wanted(at: loop.now)
      case .source(let next):
        guard next != source else { continue }
        source = next
        begin()
      }
    }
    due()
  }

  func ended(_ rest: [Message]) {}

  private func begin() {
    sources += 1
    refresh = KeyRefresh(at: loop.now)
    news = nil
    isToBeGiven = false
    statistics.keys.set(0)
    statistics.fetchedAt.set(0)
    guard let source else { return }
    transfers.replace(TLSFiles(authorities: source.authorities))
    due()
  }

  private func due() {
    guard source != nil else { return }
    let now = loop.now
    if isToBeGiven { give() }
    if let expiry = refresh.expiry, expiry <= now { expire() }
    if refresh.next <= now { fetch() }
    arm()
  }

  private func arm() {
    guard let timer, source != nil else { return }
    var next = Instant.earliest(refresh.next, refresh.expiry) ?? .distantFuture
    if isToBeGiven { next = min(next, loop.now + Limits.keysGivenAgain) }
    loop.setTimer(timer, at: next == .distantFuture ? nil : next)
  }

  private func fetch() {
    guard let source else { return }
    let (began, number) = (loop.now, sources)
    refresh.began(at: began)
    var request = HTTPClientRequest(
      connection: "keys", method: "GET", url: source.url, headers: [("accept", "application/jwk-set+json, application/json")],
      body: [], timeout: Limits.keysTime, goesAgain: true, protocols: source.url.hasPrefix("http:") ? "http" : "https")
    request.answerBytes = JSONWebToken.Limits.keyFileBytes
    transfers.start(request) { [unowned self] result in
      guard number == sources else { return }
      ended(result, of: source, since: began)
      arm()
    }
  }

  private func ended(_ result: Result<HTTPClientResponse, HTTPFailure>, of source: KeyFetcher.Source, since began: Instant) {
    switch result {
    case .failure(let failure): failed(.failed, because: failure.text, of: source)
    case .success(let answer) where answer.status != 200:
      let isRedirect = (300...399).contains(answer.status)
      failed(
        .refused, because: "status \(answer.status)" + (isRedirect ? ": redirects are not followed, give the final URL" : ""),
        of: source)
    case .success(let answer):
      do throws(KeyError) {
        let keys = try KeySet(source.algorithm, fetched: answer.body)
        refresh.fetched(freshSeconds: answer.freshSeconds, at: loop.now)
        statistics.outcomes[.fetched].increment()
        statistics.keys.set(Int64(keys.count))
        statistics.fetchedAt.set(WallClock.nowMilliseconds() / 1_000)
        if news?.failure != nil || news == nil {
          logger.notice("the keys of login tokens were fetched", metadata: ["url": "\(source.url)", "keys": "\(keys.count)"])
        }
        news = KeyFetcher.News(source: source, keys: keys, fetchedAt: began, failure: nil)
        give()
      } catch {
        failed(.unusable, because: "\(error)", of: source)
      }
    }
  }

  /// Keeps the keys of the last successful fetch.
  private func failed(_ outcome: KeyStatistics.Outcome, because why: String, of source: KeyFetcher.Source) {
    statistics.outcomes[outcome].increment()
    refresh.failed(at: loop.now)
    // each cause is logged once, however many attempts fail of it
    if news?.failure != why {
      let hasKeys = news?.fetchedAt != nil
      logger.warning(
        hasKeys
          ? "the keys of login tokens could not be fetched: the last ones are used for a day"
          : "the keys of login tokens could not be fetched: no app can log in until they are",
        metadata: ["url": "\(source.url)", "why": "\(why)"])
    }
    news = news ?? KeyFetcher.News(source: source, keys: KeySet(awaited: source.algorithm), fetchedAt: nil, failure: nil)
    news?.failure = why
    give()
  }

  private func expire() {
    refresh.expired()
    guard let source else { return }
    statistics.keys.set(0)
    statistics.fetchedAt.set(0)
    let failure = news?.failure ?? "no answer"
    logger.error(
      "the keys of login tokens are a day old and are not used: no app can log in",
      metadata: ["url": "\(source.url)", "why": "\(failure)"])
    news = KeyFetcher.News(source: source, keys: KeySet(awaited: source.algorithm), fetchedAt: nil, failure: failure)
    give()
  }

  private func give() {
    guard let news else { return }
    isToBeGiven = !changed(news)
  }
}
