import Foundation
import JSONWebToken
import Testing
import TrunklineAppProtocol
import TrunklineBytes

@testable import AppSessions

/// Keys from a URL: what a token is answered whose key is not here.
@Suite struct FetchedKeyTests {
  private static let vectors = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent(
    "../Vectors/jwt")
  private static func vector(_ name: String) -> [UInt8] { Array(try! Data(contentsOf: vectors.appendingPathComponent(name))) }
  private static let fetched = TokenVerifier(keys: try! KeySet(.ES256, fetched: vector("jwks.json")), audience: "trunkline")
  private static let private_ = try! KeySet(.ES256, keyFile: vector("ec-private.pem"))
  private static let kid = {
    let file = try! JSONSerialization.jsonObject(with: Data(vector("jwks.json"))) as! [String: [[String: Any]]]
    return file["keys"]!.first { $0["kty"] as? String == "EC" }!["kid"] as! String
  }()
  private static func token(_ kid: String) -> String {
    try! TokenSigner(keys: private_, kid: kid).sign(
      Claims(sub: "alice", dev: "d1", aud: ["trunkline"], exp: Bench.epoch + 3_600))
  }

  /// What the machine answers, and whether it wants keys.
  private func answer(_ bench: inout Bench, _ token: String) -> (Failure?, CloseCode?, wantsKeys: Bool) {
    let id = bench.open()
    bench.wantsKeys = false
    bench.send(.hello(Hello(.auth(token), device: .init(id: "d1"))), on: id, id: number(3))
    let frames = bench.frames(id)
    if case .message(.err(let failure))? = frames.first?.body { return (failure, bench.closed(id), bench.wantsKeys) }
    return (nil, bench.closed(id), bench.wantsKeys)
  }

  @Test func `while no keys are here a login is asked to come again, which is no refused login`() {
    var bench = Bench()
    bench.reconfigure { $0.verifier = TokenVerifier(keys: KeySet(awaited: .ES256), audience: "trunkline") }
    for _ in 0..<3 {
      let (failure, close, wantsKeys) = answer(&bench, Self.token(Self.kid))
      #expect(failure?.code == .overload && failure?.msg?.contains("jwks_url") == true && wantsKeys)
      #expect(failure?.retryMs.map { (3_000...6_000).contains($0) } == true)
      #expect(close == .tryAgainLater)
    }
    #expect(bench.machine.stats.refusals == [.keysUnavailable: 3])
    bench.machine.replaceKeys(Self.fetched, fetchedAt: bench.now)
    let (failure, close, wantsKeys) = answer(&bench, Self.token(Self.kid))
    #expect(failure == nil && close == nil && !wantsKeys)
  }

  @Test func `an unknown kid is awaited until keys were fetched after it came, then refused, and awaited again after a minute`() {
    var bench = Bench()
    bench.machine.replaceKeys(Self.fetched, fetchedAt: bench.now)
    bench.pass(.seconds(100))
    let first = answer(&bench, Self.token("new"))
    #expect(first.0?.code == .overload && first.wantsKeys && first.1 == .tryAgainLater)
    // a fetch that began before it does not count
    let again = answer(&bench, Self.token("new"))
    #expect(again.0?.code == .overload && again.wantsKeys)
    bench.pass(.seconds(1))
    bench.machine.replaceKeys(Self.fetched, fetchedAt: bench.now)
    let refused = answer(&bench, Self.token("new"))
    #expect(refused.0?.code == .auth && refused.0?.fatal == true && refused.1 == .authFailed && !refused.wantsKeys)
    #expect(refused.0?.msg?.contains("kid") == true)
    bench.pass(.seconds(60))
    #expect(answer(&bench, Self.token("new")).0?.code == .overload)
  }

  @Test func `a flood of made-up kids is bounded in memory and locks out no token whose key has come`() {
    var bench = Bench()
    bench.machine.replaceKeys(Self.fetched, fetchedAt: bench.now)
    bench.pass(.seconds(1))
    #expect(answer(&bench, Self.token("later")).0?.code == .overload)
    for index in 0..<1_000 { #expect(answer(&bench, Self.token("made-up-\(index)")).0?.code == .overload) }
    #expect(bench.machine.unknownKeys.count == 256)
    // it was forgotten meanwhile: it is awaited again, never refused unheard
    #expect(answer(&bench, Self.token("later")).0?.code == .overload)
    #expect(answer(&bench, Self.token(Self.kid)).0 == nil)
  }

  @Test func `auth_refresh with a key that is not here yet is told to try again, and the session goes on`() throws {
    var bench = Bench()
    bench.machine.replaceKeys(Self.fetched, fetchedAt: bench.now)
    let id = bench.open()
    bench.send(.hello(Hello(.auth(Self.token(Self.kid)), device: .init(id: "d1"))), on: id, id: number(3))
    guard case .connected(_, let session, _, resumed: false)? = bench.events.last else { throw Trouble("no .connected") }
    bench.perform(.welcome(session, calls: [], gone: [], live: []))
    _ = bench.frames(id)
    bench.send(.authRefresh(AuthRefresh(auth: Self.token("rotated"))), on: id, id: number(4))
    guard case .message(.err(let failure))? = bench.frames(id).first?.body else {
      Issue.record("no err")
      return
    }
    #expect(failure.code == .overload && failure.fatal == nil && failure.retryMs != nil)
    #expect(bench.closed(id) == nil && bench.wantsKeys)
  }

  @Test func `by HTTP it is 503, not 401`() {
    var bench = Bench()
    bench.reconfigure { $0.verifier = TokenVerifier(keys: KeySet(awaited: .ES256), audience: "trunkline") }
    bench.give(.httpLogin(HTTPRequestID(1), bearer: Self.token(Self.kid)))
    guard case .httpRefused(_, let failure)? = bench.actions.last else {
      Issue.record("no refusal")
      return
    }
    #expect(failure.code == .overload)
  }
}
