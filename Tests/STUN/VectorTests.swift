import Testing
import TrunklineBytes

@testable import TrunklineSTUN

@Suite struct VectorTests {
  let password = IntegrityKey(password: "VOkJxbRl1RmTxUk/WvJxBt")

  @Test func `RFC 5769 §2-1 request`() throws {
    try withMessage(try sample("request-2.1-short-term")) { message in
      #expect(message.messageClass == .request && message.method == .binding)
      #expect(message.transaction == TransactionID(high: 0xb7e7_a701, low: 0xbc34_d686_fa87_dfae))
      #expect(text(message.username) == "evtj:h6vY")
      #expect(text(message.recipientUfrag) == "evtj" && text(message.senderUfrag) == "h6vY")
      #expect(message.priority == 0x6e00_01ff)
      #expect(message.controlled == 0x932f_f9b1_5126_3b36 && message.controlling == nil)
      #expect(message.hasFingerprint && message.unknownRequired.isEmpty)
      #expect(message.hasIntegrity(password))
      #expect(!message.hasIntegrity(IntegrityKey(password: "VOkJxbRl1RmTxUk/WvJxBT")))
    }
  }

  @Test(arguments: [
    ("response-2.2-ipv4", "192.0.2.1:32853"), ("response-2.3-ipv6", "[2001:db8:1234:5678:11:2233:4455:6677]:32853"),
  ])
  func `RFC 5769 §2-2 and §2-3 responses`(_ name: String, _ address: String) throws {
    try withMessage(try sample(name)) { message in
      #expect(message.messageClass == .success)
      #expect(message.mappedAddress == SocketAddress(address))
      #expect(message.hasIntegrity(password) && message.hasFingerprint)
    }
  }

  @Test func `RFC 5769 §2-4 request with long-term credentials`() throws {
    // MD5 of U+30DE U+30C8 U+30EA U+30C3 U+30AF U+30B9 ":example.org:TheMatrIX"
    let key = IntegrityKey(try #require(hexBytes("e8ca7ad59d5eb0518e312911d2dab2a9")))
    try withMessage(try sample("request-2.4-long-term")) { message in
      #expect(text(message.username) == "\u{30DE}\u{30C8}\u{30EA}\u{30C3}\u{30AF}\u{30B9}")
      #expect(message.hasIntegrity(key) && !message.hasFingerprint)
    }
  }

  @Test func `a key longer than a hash block is hashed first, as RFC 2104 asks`() throws {
    let message = [UInt8](repeating: 1, count: 40)
    let digest = message.withUnsafeBytes { IntegrityKey(Array(repeating: 0xaa, count: 80)).withDigest(of: $0) { Array($0) } }
    // Python: hmac.new(b"\\xaa" * 80, the 40 bytes with length field 44, "sha1")
    #expect(digest == hexBytes("38838076fd1b3b1ced1d64fdc57be8bffdcb0034"))
  }
}
