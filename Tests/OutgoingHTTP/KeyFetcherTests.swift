import Foundation
import JSONWebToken
import Logging
import Synchronization
import Testing
import TrunklineBytes
import TrunklinePlatform

@testable import OutgoingHTTP

/// The keys thread against a foreign server, with keys and tokens of PyJWT.
@Suite(.enabled(if: Peer.python != nil, "no Python: `Scripts/install test` makes it"), .serialized) struct KeyFetcherTests {
  /// The news, in order.
  private final class Inbox: Sendable {
    private let news: AsyncStream<KeyFetcher.News>
    private let continuation: AsyncStream<KeyFetcher.News>.Continuation
    init() { (news, continuation) = AsyncStream.makeStream() }
    func take(_ news: KeyFetcher.News) -> Bool {
      continuation.yield(news)
      return true
    }
    /// The next news that fits.
    func next(where fits: (KeyFetcher.News) -> Bool = { _ in true }) async throws -> KeyFetcher.News {
      for await news in news where fits(news) { return news }
      throw CocoaError(.featureUnsupported)
    }
  }

  private func source(_ peer: Peer) -> KeyFetcher.Source {
    KeyFetcher.Source(url: "http://127.0.0.1:\(peer.port)/jwks.json", algorithm: .ES256)
  }
  private func fetcher(_ source: KeyFetcher.Source, _ statistics: KeyStatistics, _ inbox: Inbox) throws -> KeyFetcher {
    try KeyFetcher(source, statistics: statistics, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }) {
      inbox.take($0)
    }
  }
  private func verifies(_ news: KeyFetcher.News, _ token: String) -> Bool {
    let now = Int64(Date().timeIntervalSince1970)
    return (try? TokenVerifier(keys: news.keys, audience: "trunkline").verify(token, unixSeconds: now).sub) == "alice"
  }

  @Test func `keys of a stranger's server are fetched, and those that it rotates to, old and new beside each other`() async throws
  {
    let (peer, inbox, statistics) = (try Peer("jwks_peer.py"), Inbox(), KeyStatistics())
    defer { peer.stop() }
    let (old, new) = (try peer.ask("token k1"), try peer.ask("token k2"))
    _ = try peer.ask("answer k1 max-age=300")
    let fetcher = try fetcher(source(peer), statistics, inbox)
    defer { fetcher.stop() }
    let first = try await inbox.next()
    #expect(first.failure == nil && first.fetchedAt != nil && first.keys.count == 1)
    #expect(verifies(first, old) && !verifies(first, new))
    _ = try peer.ask("answer k1,k2")
    // ten seconds after the first fetch began, at the earliest
    fetcher.want()
    let overlap = try await inbox.next()
    #expect(overlap.keys.count == 2 && verifies(overlap, old) && verifies(overlap, new))
    let (before, after) = (try #require(first.fetchedAt), try #require(overlap.fetchedAt))
    #expect(after - before >= .seconds(10))
    #expect(statistics.outcomes[.fetched].value == 2 && statistics.keys.value == 2 && statistics.fetchedAt.value > 0)
  }

  @Test(arguments: [
    ("status 500", "status 500"), ("nonsense", "not a JSON Web Key Set"), ("big", "more than 262144 bytes"),
    ("redirect", "redirects are not followed"), ("answer ,", "no key for ES256"), ("hang", "imeout"), ("slow", "imeout"),
  ])
  func `a server that answers wrongly, too much, late or not at all leaves the gateway without keys, and is asked again`(
    mode: String, why: String
  ) async throws {
    let (peer, inbox, statistics) = (try Peer("jwks_peer.py"), Inbox(), KeyStatistics())
    defer { peer.stop() }
    _ = try peer.ask(mode)
    let fetcher = try fetcher(source(peer), statistics, inbox)
    defer { fetcher.stop() }
    let failed = try await inbox.next()
    #expect(failed.failure?.contains(why) == true && failed.fetchedAt == nil && failed.keys.count == 0, "\(failed.failure ?? "")")
    #expect(statistics.outcomes[.fetched].value == 0)
    _ = try peer.ask("answer k1")
    let mended = try await inbox.next { $0.failure == nil }
    #expect(verifies(mended, try peer.ask("token k1")))
  }

  @Test func `keys that are here stay while the server fails`() async throws {
    let (peer, inbox, statistics) = (try Peer("jwks_peer.py"), Inbox(), KeyStatistics())
    defer { peer.stop() }
    _ = try peer.ask("answer k1")
    let fetcher = try fetcher(source(peer), statistics, inbox)
    defer { fetcher.stop() }
    _ = try await inbox.next()
    _ = try peer.ask("status 503")
    fetcher.want()
    let failed = try await inbox.next()
    #expect(failed.failure?.contains("503") == true && failed.fetchedAt != nil)
    #expect(verifies(failed, try peer.ask("token k1")))
    // another URL starts without the keys of the one before
    fetcher.replace(KeyFetcher.Source(url: "http://127.0.0.1:1/none", algorithm: .ES256))
    let other = try await inbox.next { $0.source.url.hasSuffix("none") }
    #expect(other.failure != nil && other.keys.count == 0 && other.fetchedAt == nil)
  }

  @Test func `the end of the thread waits for no server`() async throws {
    let (peer, inbox) = (try Peer("jwks_peer.py"), Inbox())
    defer { peer.stop() }
    _ = try peer.ask("hang")
    let fetcher = try fetcher(source(peer), KeyStatistics(), inbox)
    while try peer.ask("count") == "0" { await Task.yield() }
    fetcher.stop()
  }
}
