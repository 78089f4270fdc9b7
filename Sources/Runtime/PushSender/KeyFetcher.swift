import HTTP
public import JSONWebToken
public import Logging
import PushPolicy
public import TrunklineBytes
public import TrunklinePlatform

/// The keys thread: fetches the JSON Web Key Set for checking login tokens (`auth.jwt.jwks_url`), by the rules of `KeyRefresh`.
/// No call and no login waits for it.
///
/// It sends a GET; the answer must be 200, contain a key set with a usable key, and be no longer than a key file may be.
/// Redirects are not followed, as with webhooks: only the configuration names the server that decides who may log in.
///
///     let fetcher = try KeyFetcher(source, statistics: KeyStatistics(), logger: logger) { news in app.replaceKeys(news) }
///     fetcher.want()        // a token names an unknown key
///     fetcher.stop()
public final class KeyFetcher: Sendable {
  public struct Source: Sendable, Equatable {
    public var url: String
    /// PEM file of the authorities that sign the server's certificate; nil: the system's.
    public var authorities: String?
    public var algorithm: Algorithm
    public init(url: String, authorities: String? = nil, algorithm: Algorithm) {
      (self.url, self.authorities, self.algorithm) = (url, authorities, algorithm)
    }
  }

  /// The current keys, or why there are none.
  public struct News: Sendable {
    public var source: Source
    /// Empty before the first answer, and when the last answer is a day old.
    public var keys: KeySet
    /// When the fetch of these keys began.
    public var fetchedAt: Instant?
    /// Why the last fetch failed; nil: it succeeded.
    public var failure: String?
  }

  private let thread: HTTPThread<KeyWorker>

  /// `changed` is called on the keys thread after each fetch and when the keys expire. It returns false if its queue is full, and
  /// is then called again.
  public init(
    _ source: Source?, statistics: KeyStatistics, logger: Logger, changed: @escaping @Sendable (News) -> Bool
  ) throws(SystemError) {
    thread = try HTTPThread(name: "keys", capacity: Limits.keysMailbox, tls: TLSFiles(), logger: logger) { loop, transfers in
      KeyWorker(loop: loop, transfers: transfers, source: source, statistics: statistics, logger: logger, changed: changed)
    }
  }

  /// Any thread; never waits. If the queue is full, it already holds such a request.
  public func want() { thread.post(.want) }
  /// Any thread. Replaces the source; nil: the keys are in a file. With the same source the fetched keys are kept.
  public func replace(_ source: Source?) { thread.post(.source(source)) }
  public func stop() { thread.stop() }
}

/// The counts of the keys thread; they outlive the thread, which a SIGHUP may start.
public final class KeyStatistics: Sendable {
  public init() {}
  enum Outcome: String, Sendable, CaseIterable { case fetched, refused, unusable, failed }
  let outcomes = LabelledCounters<Outcome>()
  let keys = Gauge()
  let fetchedAt = Gauge()

  public var families: [MetricFamily] {
    [
      .counters(
        "trunkline_jwks_fetches_total", "Fetches of auth.jwt.jwks_url by how they ended.", label: "outcome", outcomes),
      .gauge("trunkline_jwks_keys", "Keys from auth.jwt.jwks_url that login tokens are checked with.", keys),
      .gauge(
        "trunkline_jwks_fetched_seconds", "When the keys were fetched, in seconds since 1970; 0: none yet.", fetchedAt),
    ]
  }
}

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
    (news, isToBeGiven) = (nil, false)
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
      ended(result, source, began)
      arm()
    }
  }

  private func ended(_ result: Result<HTTPClientResponse, HTTPFailure>, _ source: KeyFetcher.Source, _ began: Instant) {
    switch result {
    case .failure(let failure): failed(.failed, failure.text, source)
    case .success(let answer) where answer.status != 200:
      let isRedirect = (300...399).contains(answer.status)
      failed(.refused, "status \(answer.status)" + (isRedirect ? ": redirects are not followed, give the final URL" : ""), source)
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
        failed(.unusable, "\(error)", source)
      }
    }
  }

  /// Keeps the keys of the last successful fetch.
  private func failed(_ outcome: KeyStatistics.Outcome, _ why: String, _ source: KeyFetcher.Source) {
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
