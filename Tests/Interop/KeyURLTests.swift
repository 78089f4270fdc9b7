import Foundation
import Testing

extension Interop {
  /// `auth.jwt.jwks_url` with the release binary: keys and tokens of PyJWT at a server that fails, rotates and recovers; the app
  /// is trunkline.js.
  @Suite(
    .enabled(
      if: Surroundings.isRequired || (Surroundings.missing == nil && Surroundings.node != nil),
      "no node or .venv: run Scripts/install test"), .serialized)
  struct KeyURLTests {
    /// `jwks_peer.py`, which answers each line of input with one line.
    private final class Issuer {
      let process: Spawned
      let port: UInt16
      private var answers = 0

      init(in folder: String) async throws {
        process = try Spawned(
          "issuer", #require(Surroundings.python), ["-B", Surroundings.package + "/Tests/OutgoingHTTP/jwks_peer.py"], in: folder,
          environment: ["PYTHONUNBUFFERED": "1"])
        let started = await eventually(within: 20) { [process] in process.text.contains("\n") }
        port = UInt16(process.text.split(separator: "\n").first ?? "") ?? 0
        #expect(started && port > 0, "\(process.text)")
      }

      func ask(_ line: String) async throws -> String {
        answers += 1
        let (process, count) = (process, answers)
        process.type(line)
        guard await eventually(within: 10, { process.text.split(separator: "\n").count > count }) else {
          throw Spawned.Failure(description: "no answer to \(line): \(process.text)")
        }
        return String(process.text.split(separator: "\n")[count])
      }
    }

    private func app(_ name: String, _ gateway: GatewayUnderTest, _ token: String) throws -> Spawned {
      try Spawned(
        name, #require(Surroundings.node),
        [
          Surroundings.sources + "/peers/node_phone.mjs", Surroundings.package + "/Sources/Client/WebClient/trunkline.js",
          "ws://127.0.0.1:\(gateway.app)/v1/connect", token,
        ], in: gateway.folder)
    }
    private func online(_ app: Spawned, within seconds: Double = 40) async throws {
      _ = try await app.event("phone", within: seconds) { $0["state"] as? String == "online" }
      #expect(!app.text.contains("loginRefused"), "\(app.text)")
    }

    @Test func `it starts without the server, lets apps in once the keys come, follows a rotation, and outlives the server`()
      async throws
    {
      let folder = try Folder()
      let issuer = try await Issuer(in: folder.path)
      let (first, second, stranger) = (
        try await issuer.ask("token k1"), try await issuer.ask("token k2"), try await issuer.ask("token k9")
      )
      _ = try await issuer.ask("hang")
      let url = "http://127.0.0.1:\(issuer.port)/jwks.json"
      let gateway = try await GatewayUnderTest(["auth: { jwt: { algorithm: ES256, jwks_url: \"\(url)\" } }"])
      #expect(try gateway.metric("trunkline_jwks_keys") == 0)
      let early = try app("early", gateway, first)
      // the app is asked to reconnect later, and does not fail
      let isRefused = await eventually(within: 20) {
        try gateway.sum("trunkline_app_hello_refused_total", "reason=\"keysUnavailable\"") >= 2
      }
      #expect(isRefused && early.isRunning && !early.text.contains("failed"), "\(early.text)")
      _ = try await issuer.ask("status 500")
      let isNoted = await eventually(within: 30) { try gateway.get("/readyz").body.contains("status 500") }
      let readiness = try gateway.get("/readyz").body
      #expect(isNoted, "\(readiness)")
      _ = try await issuer.ask("answer k1 max-age=3600")
      try await online(early)
      #expect(try gateway.metric("trunkline_jwks_keys") == 1)

      // the issuer signs with another key: the first token that names it makes the gateway fetch the keys
      _ = try await issuer.ask("answer k1,k2")
      let fetches = try gateway.sum("trunkline_jwks_fetches_total", "outcome=\"fetched\"")
      let rotated = try app("rotated", gateway, second)
      try await online(rotated)
      #expect(try gateway.sum("trunkline_jwks_fetches_total", "outcome=\"fetched\"") > fetches)

      // an unknown key is refused once a fetch has confirmed that it is unknown
      let refused = try app("refused", gateway, stranger)
      _ = try await refused.event("phone", within: 60) {
        $0["state"] as? String == "failed" && $0["error"] as? String == "loginRefused"
      }
      #expect(try gateway.sum("trunkline_app_hello_refused_total", "reason=\"tokenKeyUnknown\"") >= 1)

      // the server sends too much, then nonsense, then nothing: the gateway keeps its keys
      for mode in ["big", "nonsense", "hang"] {
        _ = try await issuer.ask(mode)
        let late = try app("late-\(mode)", gateway, first)
        try await online(late)
        late.type("quit")
        try await late.finish(within: 10)
      }
      for app in [early, rotated, refused] {
        app.type("quit")
        try await app.finish(within: 10)
      }
      try await gateway.finish()
    }

    @Test func `SIGHUP goes from a file to a URL and back`() async throws {
      let gateway = try await GatewayUnderTest()
      let issuer = try await Issuer(in: gateway.folder)
      let (token, own) = (try await issuer.ask("token k1"), try await gateway.token("alice", "d1"))
      _ = try await issuer.ask("answer k1")
      let file = gateway.folder + "/gateway.yaml"
      let before = try String(contentsOfFile: file, encoding: .utf8)
      let key = "auth: { jwt: { key_file: jwt.key } }"
      #expect(before.contains(key))
      let url = "auth: { jwt: { algorithm: ES256, jwks_url: \"http://127.0.0.1:\(issuer.port)/\" } }"
      for (text, token) in [(before.replacing(key, with: url), token), (before, own), (before.replacing(key, with: url), token)] {
        try text.write(toFile: file, atomically: true, encoding: .utf8)
        gateway.process.signal(SIGHUP)
        let app = try app("app-\(UUID().uuidString.prefix(4))", gateway, token)
        // a login from before the signal was handled is refused, and retried
        _ = try await app.event("phone", within: 60) { $0["state"] as? String == "online" }
        app.type("quit")
        try await app.finish(within: 10)
      }
      try await gateway.finish()
    }
  }
}
