import Testing
import TrunklineBytes
import TrunklineSTUN
import TrunklineTURN

@testable import TrunklineClientMachines

/// Which TURN server the client asks at which time, and which one relays for it.
@Suite struct ClientRelaysTests {
  private static let gateway = SocketAddress("198.51.100.7:40000")!
  private static let relayed = SocketAddress("192.0.2.15:50000")!

  private static func server(_ url: String) throws -> TURNServer {
    try #require(TURNServer(url: url, username: "u", password: "p"))
  }

  /// The relays, the time, and servers that answer as the test requires.
  private final class Rig {
    var relays: ClientRelays
    var now = Instant.zero
    var output = ClientMedia.Output()

    init(_ urls: [String], peers: [SocketAddress] = [gateway]) throws {
      relays = ClientRelays(try urls.map { try server($0) }, peers: peers, firstNumber: 16, random: .seeded(3))
    }

    func take() -> (connects: [Int], hosts: [String], sent: [Int: [[UInt8]]], closed: [Int]) {
      defer { output.removeAll() }
      var sent: [Int: [[UInt8]]] = [:]
      output.forEachRelayed { sent[$1, default: []].append(Array($0)) }
      return (output.connects.map(\.connection), output.connects.map(\.server.host), sent, output.disconnects)
    }
    func start() { relays.start(at: now, into: &output) }
    func wait(_ time: Duration) {
      now = now + time
      relays.handleTimeout(at: now, into: &output)
      #expect(relays.nextDeadline.map { $0 > now } ?? true)
    }
    func received(_ number: Int, _ bytes: [UInt8]) -> [[UInt8]] {
      var payloads: [[UInt8]] = []
      relays.received(number, bytes, at: now, into: &output) { payloads.append(Array($1)) }
      return payloads
    }

    /// Opens the connection and answers as a server that requires no credentials.
    func allocate(_ number: Int) throws {
      relays.opened(number, at: now, into: &output)
      let request = try #require(take().sent[number]?.first)
      _ = received(number, answer(request) { $0.addRelayedAddress(relayed) })
    }
    func answer(_ request: [UInt8], _ kind: STUNClass = .success, _ body: (inout STUNWriter) -> Void = { _ in }) -> [UInt8] {
      var bytes = [UInt8](repeating: 0, count: 500)
      let count = bytes.withUnsafeMutableBytes { buffer -> Int in
        request.withUnsafeBytes { request in
          guard let asked = try? STUNMessage(request) else { return 0 }
          var writer = STUNWriter(kind, method: asked.method, transaction: asked.transaction, into: buffer)
          body(&writer)
          return writer.finish() ?? 0
        }
      }
      return Array(bytes[..<count])
    }
  }

  private static let both = ["turns:b.example:443", "turn:a.example"]

  @Test func `UDP is asked first, the next server 300 ms later, and the first to allocate is used`() throws {
    let rig = try Rig(Self.both)
    rig.start()
    #expect(rig.take().hosts == ["a.example"])
    rig.wait(.milliseconds(299))
    #expect(rig.take().hosts.isEmpty)
    rig.wait(.milliseconds(1))
    let second = rig.take()
    #expect(second.hosts == ["b.example"] && second.connects == [17])
    try rig.allocate(17)
    #expect(rig.relays.drainEvents() == [.ready(Self.relayed)] && rig.relays.relayed == Self.relayed)
    let after = rig.take()
    #expect(after.closed == [16], "the other one is let go")
    #expect(after.sent[17]?.count == 1, "the permission")
  }

  @Test func `a server that fails gives way at once, and after the last one there is no relay`() throws {
    let rig = try Rig(Self.both)
    rig.start()
    _ = rig.take()
    rig.relays.closed(16, "refused", at: rig.now, into: &rig.output)
    #expect(rig.take().connects == [17] && rig.relays.drainEvents().isEmpty)
    rig.relays.closed(17, "refused", at: rig.now, into: &rig.output)
    #expect(rig.relays.drainEvents() == [.exhausted] && rig.relays.nextDeadline == nil)
    rig.relays.closed(17, "refused", at: rig.now, into: &rig.output)
    rig.relays.opened(16, at: rig.now, into: &rig.output)
    #expect(rig.relays.drainEvents().isEmpty && rig.take().sent.isEmpty)
  }

  @Test func `servers that do not answer are given up after 8 s each`() throws {
    let rig = try Rig(Self.both)
    rig.start()
    rig.wait(.milliseconds(300))
    _ = rig.take()
    rig.wait(.milliseconds(7_700))
    #expect(rig.take().closed == [16])
    rig.wait(.milliseconds(300))
    #expect(rig.take().closed == [17] && rig.relays.drainEvents() == [.exhausted])
  }

  @Test func `a server may point to another one, once`() throws {
    let rig = try Rig(["turns:a.example"])
    rig.start()
    let other = try #require(SocketAddress("203.0.113.9:5349"))
    for number in [16, 17] {
      rig.relays.opened(number, at: rig.now, into: &rig.output)
      let request = try #require(rig.take().sent[number]?.first)
      _ = rig.received(
        number,
        rig.answer(request, .error) { writer in
          writer.addError(.tryAlternate)
          writer.addAlternateServer(other)
        })
      guard number == 16 else { break }
      #expect(rig.output.connects.map(\.server.alternate) == [other] && rig.output.connects.first?.server.host == "a.example")
    }
    #expect(rig.relays.drainEvents() == [.exhausted] && rig.take().connects.isEmpty)
  }

  @Test func `a stream without TURN messages is closed`() throws {
    let rig = try Rig(["turn:a.example?transport=tcp"])
    rig.start()
    rig.relays.opened(16, at: rig.now, into: &rig.output)
    _ = rig.take()
    #expect(rig.received(16, Array("HTTP/1.1 400 Bad Request\r\n\r\n".utf8)).isEmpty)
    #expect(rig.take().closed == [16] && rig.relays.drainEvents() == [.exhausted])
  }

  @Test func `data of peers is read from the stream wherever it is cut, and data for them is framed`() throws {
    let rig = try Rig(["turns:a.example"])
    rig.start()
    try rig.allocate(16)
    _ = rig.relays.drainEvents()
    rig.relays.bind(Self.gateway, at: rig.now, into: &rig.output)
    let bind = try #require(rig.take().sent[16]?.last)
    _ = rig.received(16, rig.answer(bind))
    [UInt8](1...5).withUnsafeBytes { rig.relays.send($0, to: Self.gateway, into: &rig.output) }
    #expect(rig.take().sent == [16: [[0x40, 0, 0, 5, 1, 2, 3, 4, 5, 0, 0, 0]]])
    let stream: [UInt8] = [0x40, 0, 0, 1, 9, 0, 0, 0, 0x40, 0, 0, 3, 6, 7, 8, 0]
    var got: [[UInt8]] = []
    for byte in stream { got += rig.received(16, [byte]) }
    #expect(got == [[9], [6, 7, 8]])
  }

  @Test func `an allocation lost before media used it is followed by the next server's, one in use is lost`() throws {
    for isInUse in [false, true] {
      let rig = try Rig(Self.both)
      rig.start()
      try rig.allocate(16)
      _ = rig.relays.drainEvents()
      if isInUse { rig.relays.bind(Self.gateway, at: rig.now, into: &rig.output) }
      _ = rig.take()
      rig.relays.closed(16, "reset", at: rig.now, into: &rig.output)
      #expect(rig.relays.drainEvents() == [.lost(Self.relayed, "reset")] && rig.relays.relayed == nil)
      #expect(rig.take().connects == (isInUse ? [] : [17]))
    }
  }

  @Test func `the end gives the allocation back and closes everything`() throws {
    let rig = try Rig(Self.both)
    rig.start()
    try rig.allocate(16)
    _ = rig.take()
    rig.relays.close(at: rig.now, into: &rig.output)
    let last = rig.take()
    let lifetime = try last.sent[16]?.last?.withUnsafeBytes { try STUNMessage($0).lifetimeSeconds }
    #expect(lifetime == 0 && last.closed == [16])
    rig.wait(.seconds(60))
    #expect(rig.take().connects.isEmpty && rig.relays.nextDeadline == nil)
  }

  @Test func `servers beyond the limit are not asked`() throws {
    let rig = try Rig((0..<50).map { "turn:h\($0).example" })
    rig.start()
    for _ in 0..<100 { rig.wait(.milliseconds(300)) }
    #expect(rig.take().connects.count == Limits.relayServers)
  }

  @Test(arguments: 1...30 as ClosedRange<UInt64>) func `any news in any order is survived`(seed: UInt64) throws {
    var random = SplitMix64(seed: seed)
    let rig = try Rig(Self.both + ["turn:c.example?transport=tcp"])
    rig.start()
    for _ in 0..<200 {
      let number = 15 + Int(random.next() % 6)
      switch random.next() % 7 {
      case 0: rig.relays.opened(number, at: rig.now, into: &rig.output)
      case 1: _ = rig.received(number, (0..<Int(random.next() % 40)).map { _ in UInt8(truncatingIfNeeded: random.next()) })
      case 2: if random.next() % 5 == 0 { rig.relays.closed(number, "", at: rig.now, into: &rig.output) }
      case 3: rig.relays.bind(Self.gateway, at: rig.now, into: &rig.output)
      case 4:
        for (connection, messages) in rig.take().sent {
          for message in messages { _ = rig.received(connection, rig.answer(message) { $0.addRelayedAddress(Self.relayed) }) }
        }
      case 5: [UInt8](1...9).withUnsafeBytes { rig.relays.send($0, to: Self.gateway, into: &rig.output) }
      default: rig.wait(.milliseconds(Int64(random.next() % 3_000)))
      }
    }
    _ = rig.relays.drainEvents()
  }
}
