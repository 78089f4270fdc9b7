import AppSessions
import Configuration
import JSONWebToken
import Logging
import OutgoingHTTP
import Synchronization
import TrunklinePlatform

/// Passes keys of login tokens that come from a URL (`auth.jwt.jwks_url`) from the thread that fetches them to the app port. Idle
/// if the keys are in a file.
///
/// Without keys the gateway runs: calls continue, devices are woken, and apps that log in are asked to retry. It counts as ready,
/// because every other node uses the same server; `/readyz` states the fault.
final class KeyComponent: Sendable {
  private let readiness: Readiness
  private let logger: Logger
  private let statistics = KeyStatistics()
  private let state: Mutex<State>

  private struct State {
    var source: KeyFetcher.Source?
    var fetcher: KeyFetcher?
    var news: KeyFetcher.News?
    /// Gives new keys to the app port; false: its queue is full.
    var changed: (@Sendable () -> Bool)?
  }

  init(_ settings: Settings, readiness: Readiness, logger: Logger) {
    (self.readiness, self.logger) = (readiness, logger)
    state = Mutex(State(source: settings.auth.keySource))
  }

  /// - Parameter changed: called on the keys thread.
  func start(_ changed: @escaping @Sendable () -> Bool) throws {
    state.withLock { $0.changed = changed }
    try run()
  }

  /// New settings. With the same URL the fetched keys are kept.
  func replace(_ settings: Settings) throws {
    let source = settings.auth.keySource
    let fetcher = state.withLock { state in
      if state.source != source { (state.source, state.news) = (source, nil) }
      return state.fetcher
    }
    if source == nil { readiness.remove(Self.component) }
    if let fetcher { fetcher.replace(source) } else { try run() }
  }

  /// Starts the thread once there is a URL to fetch.
  private func run() throws {
    guard let source = state.withLock({ $0.source }) else { return }
    let fetcher = try KeyFetcher(source, statistics: statistics, logger: logger) { [weak self] in self?.arrived($0) ?? true }
    state.withLock { $0.fetcher = fetcher }
  }

  private func arrived(_ news: KeyFetcher.News) -> Bool {
    let changed = state.withLock { state -> (@Sendable () -> Bool)? in
      guard state.source == news.source else { return nil }
      state.news = news
      return state.changed
    }
    guard let changed else { return true }
    let lacks = news.fetchedAt == nil ? "no app can log in" : "the last keys are used for a day"
    readiness.set(Self.component, ready: true, note: news.failure.map { "auth.jwt.jwks_url: \($0); \(lacks)" })
    return changed()
  }
  private static let component = "keys"

  /// Any thread; never waits.
  func want() { state.withLock { $0.fetcher }?.want() }

  /// Replaces the settings' keys by the fetched ones.
  func complete(_ sessions: inout SessionSettings, _ settings: Settings) {
    guard let source = settings.auth.keySource else { return }
    state.withLock { state in
      guard state.source == source, let news = state.news else { return }
      sessions.verifier = TokenVerifier(keys: news.keys, audience: settings.auth.audience)
      sessions.keysFetchedAt = news.fetchedAt
    }
  }

  func stop() {
    let fetcher = state.withLock { state in
      defer { (state.fetcher, state.changed) = (nil, nil) }
      return state.fetcher
    }
    fetcher?.stop()
  }

  var metrics: [MetricFamily] { statistics.families }
}

extension Settings.Auth {
  /// Nil: the keys are in a file.
  var keySource: KeyFetcher.Source? {
    guard case .keySetURL(let url, let authorities) = key else { return nil }
    return KeyFetcher.Source(url: url, authorities: authorities, algorithm: algorithm)
  }
}
