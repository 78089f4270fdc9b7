import Testing
import TrunklineBytes

@testable import TrunklineSTUN

@Suite struct WriterTests {
  let key = IntegrityKey(password: "0123456789abcdefABCDEF")

  private func check(room: Int = 256) -> [UInt8]? {
    written(room: room) { writer in
      writer.addUsername(recipient: "abcd".utf8, sender: "efghi".utf8)
      writer.addPriority(1_853_817_087)
      writer.addControlling(tieBreaker: 0x0102_0304_0506_0708)
      writer.addUseCandidate()
      writer.addIntegrity(key)
      writer.addFingerprint()
    }
  }

  @Test func `a connectivity check is read as it was written`() throws {
    let bytes = try #require(check())
    try withMessage(bytes) { message in
      #expect(text(message.username) == "abcd:efghi")
      #expect(message.priority == 1_853_817_087 && message.usesCandidate)
      #expect(message.controlling == 0x0102_0304_0506_0708 && message.controlled == nil)
      #expect(message.hasIntegrity(key) && message.hasFingerprint)
    }
  }

  @Test func `a buffer that is too small by any amount gives no message`() throws {
    let size = try #require(check()).count
    for room in 0..<size { #expect(check(room: room) == nil) }
    #expect(check(room: size)?.count == size)
  }

  @Test(arguments: ["192.0.2.7:1", "[2001:db8::7]:65535", "[::ffff:c000:207]:5"])
  func `a mapped address survives, IPv4 in IPv6 clothes becomes IPv4`(_ address: String) throws {
    let address = try #require(SocketAddress(address))
    let bytes = try #require(written(.success) { $0.addMappedAddress(address) })
    try withMessage(bytes) { #expect($0.mappedAddress == SocketAddress(address.ip.unmapped, address.port)) }
  }

  @Test func `an error carries its number and the attributes that were not understood`() throws {
    let request = try #require(written { $0.addPriority(1) })
    var strange = request + [0x12, 0x34, 0, 1, 9, 0, 0, 0] + [0x00, 0x02, 0, 0] + [0x92, 0x34, 0, 0]
    strange[3] = UInt8(strange.count - 20)
    let unknown = try withMessage(strange) { $0.unknownRequired }
    #expect(unknown.count == 2 && unknown[0] == 0x1234 && unknown[1] == 2)
    let answer = try #require(
      written(.error) { writer in
        writer.addError(.unknownAttribute)
        writer.addUnknownAttributes(unknown)
      })
    try withMessage(answer) { #expect($0.messageClass == .error && $0.errorCode == 420) }
    #expect(answer.suffix(8) == [0, 0x0a, 0, 4, 0x12, 0x34, 0, 2])
  }

  @Test(arguments: [STUNClass.request, .indication, .success, .error], [UInt16(1), 0x0f, 0x80, 0xff, 0x55])
  func `class and method share the type field without mixing`(_ messageClass: STUNClass, _ method: UInt16) throws {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 20, alignment: 1)
    defer { buffer.deallocate() }
    var writer = STUNWriter(
      messageClass, method: STUNMethod(rawValue: method), transaction: TransactionID(high: 1, low: 2), into: buffer)
    #expect(writer.finish() == 20)
    try withMessage(Array(buffer)) { #expect($0.messageClass == messageClass && $0.method.rawValue == method) }
  }
}
