import Testing
import TrunklineBytes

@Suite struct SourceRatesTests {
  private let start = Instant.zero + .seconds(100)

  @Test func `a source has its share of a second and no more, whatever the others do`() {
    var rates = SourceRates(perSource: 3, inAll: 100)
    func taken(_ address: IPAddress, _ now: Instant) -> Int { (0..<9).count { _ in rates.consume(address, at: now) } }
    #expect(taken(IPAddress(192, 0, 2, 1), start) == 3)
    #expect(taken(IPAddress(192, 0, 2, 2), start) == 3)
    #expect(taken(IPAddress(192, 0, 2, 1), start + .seconds(1)) == 3)
  }

  @Test func `all sources together have theirs, and what one is refused is not taken from it`() {
    var rates = SourceRates(perSource: 3, inAll: 10)
    #expect((0..<50).count { _ in rates.consume(IPAddress(192, 0, 2, 1), at: start) } == 3)
    #expect((2..<50).count { rates.consume(IPAddress(192, 0, 2, $0), at: start) } == 7)
  }

  @Test func `addresses of one IPv6 subscriber share what one may have`() throws {
    var rates = SourceRates(perSource: 3, inAll: 100)
    let hosts = try (1...9).map { try #require(IPAddress("2001:db8::\($0)")) }
    #expect(hosts.count { rates.consume($0, at: start) } == 3)
    #expect(rates.consume(try #require(IPAddress("2001:db8:0:1::1")), at: start))
    #expect(try #require(IPAddress("::ffff:192.0.2.1")).subscriber == IPAddress(192, 0, 2, 1))
  }

  @Test func `the table does not grow beyond its limit`() {
    var rates = SourceRates(perSource: 1, inAll: 1_000_000, sources: 100)
    for number in 0..<100_000 { _ = rates.consume(IPAddress(v4: UInt32(number)), at: start) }
    #expect(rates.count <= 100)
  }
}
