import Testing
import TrunklineBytes
import TrunklineClientMachines

@Suite struct NAT64Tests {
  /// RFC 6052 §2.4: 192.0.2.33 under each length of prefix.
  @Test(arguments: [
    ("2001:db8:c000:221::", 32), ("2001:db8:1c0:2:21::", 40), ("2001:db8:122:c000:2:2100::", 48),
    ("2001:db8:122:3c0:0:221::", 56),
    ("2001:db8:122:344:c0:2:2100::", 64), ("2001:db8:122:344::c000:221", 96),
  ])
  func `an IPv4 address under a prefix`(text: String, length: Int) throws {
    // the same prefix as DNS64 returns it: with 192.0.0.170 as the address
    let known = try #require(IPAddress(text)?.replacing192_0_2_33(length))
    let nat64 = try #require(NAT64(answer: known))
    #expect(nat64.length == length)
    #expect(nat64.address(of: IPAddress(192, 0, 2, 33)) == IPAddress(text))
    #expect(nat64.address(of: known) == nil)
  }

  @Test func `an address without a known IPv4 address shows no prefix`() {
    for text in ["2001:db8::1", "::", "192.0.0.170"] { #expect(IPAddress(text).flatMap { NAT64(answer: $0) } == nil, "\(text)") }
    #expect(IPAddress("64:ff9b::192.0.0.171").flatMap { NAT64(answer: $0) }?.length == 96)
  }
}

extension IPAddress {
  /// The address with 192.0.0.170 instead of 192.0.2.33.
  fileprivate func replacing192_0_2_33(_ length: Int) -> IPAddress? {
    let indexes = Array((length / 8..<16).filter { $0 != 8 || length == 96 }.prefix(4))
    var bytes = self.bytes
    guard indexes.map({ bytes[$0] }) == [192, 0, 2, 33] else { return nil }
    for (index, octet) in zip(indexes, [192, 0, 0, 170] as [UInt8]) { bytes[index] = octet }
    func word(_ range: Range<Int>) -> UInt64 { bytes[range].reduce(0) { $0 << 8 | UInt64($1) } }
    return IPAddress(v6High: word(0..<8), low: word(8..<16))
  }
}
