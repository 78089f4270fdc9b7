import Testing
import TrunklineBytes

@testable import WebServer

@Suite struct RefusedCredentialsTests {
  private let start = Instant(nanoseconds: 1_000_000_000)
  private let loud = IPAddress(192, 0, 2, 1)
  private let quiet = IPAddress(192, 0, 2, 2)

  @Test func `an address with too many bad credentials waits for its rate, others do not`() {
    var refused = RefusedCredentials()
    for _ in 0..<Limits.refusedCredentials {
      #expect(refused.admits(loud, at: start))
      refused.note(loud, at: start)
    }
    #expect(!refused.admits(loud, at: start) && refused.admits(quiet, at: start))
    #expect(refused.admits(loud, at: start + .milliseconds(1_000 / Int64(Limits.refusedCredentials) + 1)))
  }

  @Test func `IPv6 counts by the network of one customer, and what is remembered is bounded`() throws {
    var refused = RefusedCredentials()
    let network = try #require(IPAddress("2001:db8:1:1::"))
    for host in 1...Limits.refusedCredentials { refused.note(IPAddress(v6High: network.high, low: UInt64(host)), at: start) }
    #expect(try !refused.admits(#require(IPAddress("2001:db8:1:1::ffff")), at: start))
    for number in 0..<20_000 { refused.note(IPAddress(v4: UInt32(number)), at: start) }
    #expect(!refused.admits(quiet, at: start), "what finds no room has one bound together")
    #expect(refused.admits(quiet, at: start + .seconds(60)))
  }
}
