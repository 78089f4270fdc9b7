import RESP
import Testing

@Suite struct RedisServersTests {
  @Test func `addresses are read as they are written`() {
    typealias Address = RedisServers.Address
    #expect(Address("10.0.0.3:6379") == Address("10.0.0.3", 6_379))
    #expect(Address("[::1]:6379") == Address("::1", 6_379) && Address("::1", 6_379).description == "[::1]:6379")
    for text in ["", "host", "host:", ":1", "host:0", "host:65536", "::1:6379", "host:x"] {
      #expect(Address(text) == nil, "\(text)")
    }
  }
}
