import Testing
import TrunklineBytes

@testable import TrunklineSTUN

/// What TURN (RFC 8656 §18) and long-term credentials (RFC 8489 §9.2) add to a message.
@Suite struct TURNAttributeTests {
  private func written(_ method: STUNMethod, room: Int = 1_500, _ build: (inout STUNWriter) -> Void) -> [UInt8]? {
    var bytes = [UInt8](repeating: 0xff, count: room)
    let count = bytes.withUnsafeMutableBytes { buffer -> Int? in
      var writer = STUNWriter(.request, method: method, transaction: TransactionID(high: 7, low: 9), into: buffer)
      build(&writer)
      return writer.finish()
    }
    return count.map { Array(bytes[..<$0]) }
  }

  @Test func `the key of RFC 5769 §2-4 comes of user name, realm and password, and its request is written to the octet`() throws {
    let user = Array("\u{30DE}\u{30C8}\u{30EA}\u{30C3}\u{30AF}\u{30B9}".utf8)
    let key = IntegrityKey(username: user, realm: Array("example.org".utf8), password: "TheMatrIX")
    let vector = try sample("request-2.4-long-term")
    try withMessage(vector) { message in
      #expect(message.hasIntegrity(key))
      #expect(message.transaction == TransactionID(high: 0x78ad_3433, low: 0xc6ad_72c0_29da_412e))
    }
    var bytes = [UInt8](repeating: 0, count: 200)
    let count = bytes.withUnsafeMutableBytes { buffer -> Int in
      var writer = STUNWriter(.request, transaction: TransactionID(high: 0x78ad_3433, low: 0xc6ad_72c0_29da_412e), into: buffer)
      writer.addUsername(user)
      writer.addNonce(Array("f//499k954d6OL34oL9FSTvy64sA".utf8))
      writer.addRealm(Array("example.org".utf8))
      writer.addIntegrity(key)
      return writer.finish() ?? 0
    }
    #expect(Array(bytes[..<count]) == vector)
  }

  @Test(arguments: ["192.0.2.1:32853", "[2001:db8:1234:5678:11:2233:4455:6677]:32853"])
  func `every attribute is read as it was written`(text: String) throws {
    let address = try #require(SocketAddress(text))
    let bytes = try #require(
      written(.allocate) { writer in
        writer.addRequestedTransportUDP()
        writer.addRequestedFamily(.v6)
        writer.addLifetime(seconds: 777)
        writer.addChannel(0x4123)
        writer.addPeer(address)
        writer.addRelayedAddress(address)
        writer.addAlternateServer(address)
        writer.addRealm([1, 2, 3])
        writer.addNonce([4, 5])
        [UInt8](arrayLiteral: 9, 8, 7, 6, 5).withUnsafeBytes { writer.addData($0) }
      })
    try withMessage(bytes) { message in
      #expect(message.method == .allocate && message.unknownRequired.isEmpty)
      #expect(message.lifetimeSeconds == 777 && message.channelNumber == 0x4123 && message.requestedFamily == .v6)
      #expect(message.peerAddress == address && message.relayedAddress == address && message.alternateServer == address)
      #expect(message.realm == [1, 2, 3] && message.nonce == [4, 5])
      #expect(message.dataRange.map { Array(bytes[$0]) } == [9, 8, 7, 6, 5])
    }
  }

  @Test func `an ICE agent understands none of them, as before`() throws {
    let bytes = try #require(
      written(.binding) { writer in
        writer.addLifetime(seconds: 1)
        writer.addPeer(SocketAddress(.loopback, 1))
      })
    try withMessage(bytes) { message in
      #expect(message.unknownRequired.count == 2 && message.lifetimeSeconds == nil && message.peerAddress == nil)
    }
  }

  @Test(arguments: [0x000c, 0x000d, 0x0012, 0x0016, 0x0017, 0x0019, 0x8023] as [UInt16])
  func `a length that an attribute cannot have is a bad attribute`(type: UInt16) throws {
    for length in [0, 1, 3, 5, 9] {
      let bytes = try #require(
        written(.allocate) { writer in
          writer.begin(type, length)
          for _ in 0..<(length + 3) & ~3 { writer.put8(1) }
        })
      #expect(throws: STUNError.badAttribute(offset: 20), "\(length)") { try withMessage(bytes) { _ in } }
    }
  }

  @Test func `a realm that is too long is neither written nor read`() throws {
    let long = [UInt8](repeating: 1, count: 764)
    #expect(written(.allocate) { $0.addRealm(long) } == nil)
    let bytes = try #require(
      written(.allocate) { writer in
        writer.begin(Attribute.realm, 764)
        for _ in 0..<764 { writer.put8(1) }
      })
    #expect(throws: STUNError.badAttribute(offset: 20)) { try withMessage(bytes) { _ in } }
  }

  @Test func `data that does not fit is not written past the buffer`() {
    let data = [UInt8](repeating: 1, count: 100)
    for room in 0..<124 {
      #expect(written(.send, room: room) { writer in data.withUnsafeBytes { writer.addData($0) } } == nil, "\(room)")
    }
  }

  @Test func `every error code has its phrase`() throws {
    for code in STUNErrorCode.allCases {
      let bytes = try #require(written(.allocate) { $0.addError(code) })
      try withMessage(bytes) { #expect($0.errorCode == code.rawValue) }
    }
  }
}
