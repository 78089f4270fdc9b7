import Foundation
import Testing
import TrunklineBytes

@testable import AppServer

@Suite(.serialized) struct RefusedTokensTests {
  private let start = Instant(nanoseconds: 1_000_000_000)
  private let loud = IPAddress(192, 0, 2, 1)
  private let quiet = IPAddress(192, 0, 2, 2)

  @Test func `an address with too many bad tokens waits for its rate, others do not`() {
    var refused = RefusedTokens()
    for _ in 0..<Limits.refusedTokens {
      #expect(refused.admits(loud, at: start))
      refused.note(loud, at: start)
    }
    #expect(!refused.admits(loud, at: start) && refused.admits(quiet, at: start))
    #expect(refused.admits(loud, at: start + .milliseconds(1_000 / Int64(Limits.refusedTokens) + 1)))
  }

  @Test func `IPv6 counts by the network of one customer, and what is remembered is bounded`() throws {
    var refused = RefusedTokens()
    let network = try #require(IPAddress("2001:db8:1:1::"))
    for host in 1...Limits.refusedTokens { refused.note(IPAddress(v6High: network.high, low: UInt64(host)), at: start) }
    #expect(try !refused.admits(#require(IPAddress("2001:db8:1:1::ffff")), at: start))
    for number in 0..<20_000 { refused.note(IPAddress(v4: UInt32(number)), at: start) }
    #expect(!refused.admits(quiet, at: start), "what finds no room has one bound together")
    #expect(refused.admits(quiet, at: start + .seconds(60)))
  }

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
    #expect(first.count >= Limits.refusedTokens && first.count < 2_000 && Set(first) == ["401"])
    #expect(ask(socket, Fixture.token()) == nil, "the connection is over")
    let other = try TestSocket(fixture.app.address)
    other.write("GET /v1/ready HTTP/1.1\r\nHost: a\r\n\r\n")
    #expect(other.response()?.head.hasPrefix("HTTP/1.1 200") == true, "what needs no token is answered")
  }
}
