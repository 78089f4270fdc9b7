public import JSONWebToken
public import Logging
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
        "trunkline_jwks_fetches_total", help: "Fetches of auth.jwt.jwks_url by how they ended.", label: "outcome", outcomes),
      .gauge("trunkline_jwks_keys", help: "Keys from auth.jwt.jwks_url that login tokens are checked with.", keys),
      .gauge(
        "trunkline_jwks_fetched_seconds", help: "When the keys were fetched, in seconds since 1970; 0: none yet.", fetchedAt),
    ]
  }
}
