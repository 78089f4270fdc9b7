import AppSessions
import Configuration
import JSONWebToken
import Logging
import Platform
import PushSender
import Synchronization

/// Keys of login tokens that come from a URL (`auth.jwt.jwks_url`), between the thread that fetches them and the app port. Where they are in a file
/// it does nothing.
///
/// Without keys the gateway runs: calls continue, devices are woken, and apps that log in are asked to come again. It counts as ready, because every
/// other node asks the same server; `/readyz` says what is wrong.
final class KeyComponent: Sendable {
  private let readiness: Readiness
  private let logger: Logger
  private let statistics = KeyStatistics()
  private let state: Mutex<State>

  private struct State {
    var source: KeyFetcher.Source?
    var fetcher: KeyFetcher?
    var news: KeyFetcher.News?
    /// Gives what is new to the app port; false: it had no room.
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

  /// New settings. With the same URL the keys that are here stay.
  func replace(_ settings: Settings) throws {
    let source = settings.auth.keySource
    let fetcher = state.withLock { state in
      if state.source != source { (state.source, state.news) = (source, nil) }
      return state.fetcher
    }
    if source == nil { readiness.remove(Self.component) }
    if let fetcher { fetcher.replace(source) } else { try run() }
  }

  /// The thread runs once there is something to fetch.
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

  /// What is known now, in place of what the settings alone say.
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
