import Testing
import TrunklineBytes
import TrunklineSTUN

@testable import TrunklineTURN

/// A client, the time, and a server that the test plays.
final class TURNRig {
  static let realm = Array("turn.test".utf8)
  static let relayed = SocketAddress("192.0.2.15:50000")!
  static let gateway = SocketAddress("198.51.100.7:40000")!
  static let password = "secret"

  var client: TURNClient
  var now = Instant.zero
  var output = TURNClient.Output()
  var nonce = Array("nonce-1".utf8)

  init(isStream: Bool = false, family: IPAddress.Family = .v4, password: String = TURNRig.password) {
    client = TURNClient(
      username: "1700000000:alice", password: Redacted(password), isStream: isStream, family: family, random: .seeded(7))
  }

  /// A copy, from which another test can continue.
  func copy() -> TURNRig {
    let other = TURNRig()
    (other.client, other.now, other.output, other.nonce) = (client, now, output, nonce)
    return other
  }

  var key: IntegrityKey { IntegrityKey(username: Array("1700000000:alice".utf8), realm: Self.realm, password: Self.password) }

  func take() -> [[UInt8]] {
    defer { output.messages = [] }
    return output.messages
  }
  func takeEvents() -> [TURNClient.Event] {
    defer { output.events = [] }
    return output.events
  }

  /// The one message that the client has sent.
  func sent() throws -> [UInt8] {
    let messages = take()
    try #require(messages.count == 1, "\(messages.count) messages")
    return messages[0]
  }

  func start() { client.start(at: now, into: &output) }
  func wait(_ time: Duration) {
    now = now + time
    handleTimeout()
  }
  /// A deadline that stays in the past stops the loop that waits for it, or makes it spin.
  func handleTimeout() {
    client.handleTimeout(at: now, into: &output)
    #expect(client.nextDeadline.map { $0 > now } ?? true)
  }
  @discardableResult func receive(_ bytes: [UInt8]) -> TURNClient.Payload? {
    bytes.withUnsafeBytes { client.receive($0, at: now, into: &output) }
  }

  /// An answer to `request`; signed unless `isSigned` is false.
  func answer(
    _ request: [UInt8], _ kind: STUNClass = .success, isSigned: Bool = true, _ body: (inout STUNWriter) -> Void = { _ in }
  ) -> [UInt8] {
    write(kind, Self.method(of: request), Self.transaction(of: request)) { writer in
      body(&writer)
      if isSigned { writer.addIntegrity(key) }
    }
  }
  func write(_ kind: STUNClass, _ method: STUNMethod, _ id: TransactionID, _ body: (inout STUNWriter) -> Void) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: 1_500)
    let count = bytes.withUnsafeMutableBytes { buffer in
      var writer = STUNWriter(kind, method: method, transaction: id, into: buffer)
      body(&writer)
      return writer.finish() ?? 0
    }
    return Array(bytes[..<count])
  }
  static func method(of bytes: [UInt8]) -> STUNMethod { bytes.withUnsafeBytes { (try? STUNMessage($0))?.method } ?? .binding }
  static func transaction(of bytes: [UInt8]) -> TransactionID {
    bytes.withUnsafeBytes { (try? STUNMessage($0))?.transaction } ?? TransactionID(high: 0, low: 0)
  }

  func challenge(_ request: [UInt8], _ code: STUNErrorCode = .unauthenticated) -> [UInt8] {
    answer(request, .error, isSigned: false) { writer in
      writer.addError(code)
      writer.addRealm(Self.realm)
      writer.addNonce(nonce)
    }
  }
  func success(_ request: [UInt8], lifetime: UInt32 = 600, relayed: SocketAddress = TURNRig.relayed) -> [UInt8] {
    answer(request) { writer in
      writer.addRelayedAddress(relayed)
      writer.addLifetime(seconds: lifetime)
    }
  }
  func error(_ request: [UInt8], _ code: STUNErrorCode, isSigned: Bool = true) -> [UInt8] {
    answer(request, .error, isSigned: isSigned) { $0.addError(code) }
  }

  /// Passes the challenge and gets an allocation, with a permission for the gateway.
  func allocate(lifetime: UInt32 = 600) throws {
    client.permit(Self.gateway.ip, at: now, into: &output)
    start()
    receive(challenge(try sent()))
    receive(success(try sent(), lifetime: lifetime))
    #expect(takeEvents() == [.allocated(Self.relayed)])
    let permission = try sent()
    #expect(Self.method(of: permission) == .createPermission)
    receive(answer(permission))
  }
}

extension [UInt8] {
  /// Reads a message for the tests.
  func message<R>(_ body: (STUNMessage) throws -> R) throws -> R { try withUnsafeBytes { try body(try STUNMessage($0)) } }
}
