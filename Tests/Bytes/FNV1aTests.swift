import Testing
import TrunklineBytes

@Suite struct FNV1aTests {
  /// From the authors' test vectors (draft-eastlake-fnv, appendix C).
  @Test(
    arguments: [("", 0xcbf2_9ce4_8422_2325), ("a", 0xaf63_dc4c_8601_ec8c), ("foobar", 0x8594_4171_f739_67e8)]
      as [(String, UInt64)])
  func `the hash of a text is that of its octets, in one piece or several`(_ text: String, _ expected: UInt64) {
    #expect(FNV1a(text.utf8).value == expected)
    var hash = FNV1a()
    for octet in text.utf8 { hash.add(CollectionOfOne(octet)) }
    #expect(hash.value == expected)
  }
}
