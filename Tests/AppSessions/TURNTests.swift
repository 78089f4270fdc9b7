import AppSessions
import Testing
import TrunklineAppProtocol
import TrunklineBytes

/// TURN credentials in `welcome`.
@Suite struct TURNTests {
  private static let servers = TURNServers(
    urls: ["turn:turn.example.com:3478?transport=udp", "turns:turn.example.com:443"],
    secret: Redacted(Array("north".utf8)), lifetime: .seconds(600))

  @Test func `the user's credentials are good for ttl from each welcome on`() throws {
    var bench = Bench()
    bench.reconfigure { ($0.ice, $0.turn) = ([ICEServer(urls: ["stun:s"])], Self.servers) }
    let client = try bench.login()
    // printf 1700000600:alice | openssl dgst -sha1 -hmac north -binary | base64
    let first = ICEServer(
      urls: Self.servers.urls, username: "1700000600:alice", credential: "gthUwOpcRoLI0MMCziCEBOWYnpo=", ttlMs: 600_000)
    #expect(client.welcome.ice == [ICEServer(urls: ["stun:s"]), first])
    bench.give(.closed(client.connection, nil))
    bench.pass(.seconds(20))
    let id = bench.resume(client, lastSeq: 0)
    guard case .message(.welcome(let again))? = bench.frames(id).first?.body else { throw Trouble("no welcome") }
    #expect(again.resumed && again.ice.last?.username == "1700000620:alice" && again.ice.last?.credential != first.credential)
  }

  @Test func `auth.refresh brings credentials that are good from then on, in a session that outlives the first`() throws {
    var bench = Bench()
    bench.reconfigure { ($0.ice, $0.turn) = ([ICEServer(urls: ["stun:s"])], Self.servers) }
    let client = try bench.login(lives: 700)
    bench.pass(.seconds(15))
    _ = bench.frames(client.connection)
    bench.send(.authRefresh(AuthRefresh(auth: Bench.token(lives: 1_000))), on: client.connection, id: number(80))
    let answers = bench.frames(client.connection).compactMap { frame -> Success? in
      if case .message(.ok(let success)) = frame.body { success } else { nil }
    }
    #expect(answers.count == 1 && answers[0].ice?.map(\.urls) == [["stun:s"], Self.servers.urls])
    #expect(answers[0].ice?.last?.username == "1700000615:alice" && answers[0].ice?.last?.ttlMs == 600_000)
    // a token that is refused brings none
    bench.send(.authRefresh(AuthRefresh(auth: Bench.token("bob"))), on: client.connection, id: number(81))
    let refused = bench.frames(client.connection).map(\.body)
    guard case .message(.err(let failure))? = refused.first, refused.count == 1 else { throw Trouble("\(refused)") }
    #expect(failure.code == .auth)
  }

  @Test func `without a server there is none`() throws {
    var bench = Bench()
    let client = try bench.login()
    #expect(client.welcome.ice.isEmpty)
    bench.send(.authRefresh(AuthRefresh(auth: Bench.token(lives: 1_000))), on: client.connection, id: number(80))
    #expect(bench.frames(client.connection).map(\.body) == [.message(.ok(Success()))])
  }
}
