import AppServer
import TestSockets
import Testing
import TrunklineBytes

/// An address that sends bad tokens is slowed down at the app port; `RefusedCredentialsTests` has the rates.
@Suite(.serialized) struct RefusedTokensTests {
  @Test(arguments: ["GET /v1/directory", "POST /v1/calls/5f0c7f0e-4a52-4c0e-9a1e-2f0d7f6f0a11/reject"])
  func `bad tokens over a connection that stays are answered 429 unseen, and the connection ends`(line: String) throws {
    let fixture = try Fixture { $0.directory = { _, _, _, answer in answer(.text(200, "all of it")) } }
    func ask(_ socket: TestSocket, _ token: String) -> String? {
      socket.write("\(line) HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer \(token)\r\nContent-Length: 0\r\n\r\n")
      return socket.response().map { String($0.head.split(separator: " ")[1]) }
    }
    let socket = try TestSocket(fixture.app.address)
    let answers = (0..<2_000).lazy.compactMap { _ in ask(socket, Fixture.token("nobody")) }.prefix { $0 != "429" }
    let first = Array(answers)
    #expect(first.count >= 20 && first.count < 2_000 && Set(first) == ["401"])
    #expect(ask(socket, Fixture.token()) == nil, "the connection is over")
    let other = try TestSocket(fixture.app.address)
    other.write("GET /v1/ready HTTP/1.1\r\nHost: a\r\n\r\n")
    #expect(other.response()?.head.hasPrefix("HTTP/1.1 200") == true, "what needs no token is answered")
  }
}
