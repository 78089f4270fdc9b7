import Testing
import TrunklineBytes
import TrunklineDTLS
import TrunklineICE
import TrunklineSDP
import TrunklineSTUN
import TrunklineTURN

@testable import TrunklineClientMachines

/// When the media of a call goes over a TURN server, and when it does not.
@Suite struct ClientMediaRelayTests {
  private static let phone = SocketAddress(IPAddress(10, 0, 0, 2), 4_000)
  private static let gateway = SocketAddress(IPAddress(198, 51, 100, 7), 40_000)
  private static let relayed = SocketAddress(IPAddress(192, 0, 2, 15), 50_000)

  /// The phone's media, a gateway that is ICE-lite, and a TURN server that takes who comes; time goes by as the test says.
  private final class Rig {
    var media: ClientMedia
    var gateway: AppNegotiation
    var agent: LiteAgent
    var now = Instant.zero
    var output = ClientMedia.Output()
    /// Datagrams to the gateway itself reach it.
    var isOpen = false
    /// The server answers.
    var isServing = true
    var givesAddress = ClientMediaRelayTests.relayed
    var connects: [Int] = []
    var disconnects: [Int] = []
    var reports: [ClientCall.MediaReport] = []
    /// Methods of what the server got, and octets of what it relayed that is no STUN.
    var asked: [STUNMethod] = []
    var relayedData = 0
    var direct = 0

    init(servers: [String] = ["turns:turn.example"]) throws {
      let identity = try DTLSIdentity()
      var configuration = try #require(
        ClientMedia.Configuration(localAddresses: [ClientMediaRelayTests.phone], identity: identity))
      configuration.relays = try servers.map { try #require(TURNServer(url: $0, username: "u", password: "p")) }
      media = ClientMedia(configuration: configuration, random: .seeded(1))
      configuration.localAddresses = [ClientMediaRelayTests.gateway]
      gateway = AppNegotiation(
        .gateway, endpoint: ClientMedia.endpoint(configuration, "gateway1", "gatewaypassword123456789", .seeded(2)), sessionID: 1)
      agent = LiteAgent(ufrag: "gateway1", password: "gatewaypassword123456789")
    }

    func answer() {
      media.handle(.answer(offer: gateway.makeOffer(), generation: 1), at: now, into: &output)
      pump()
    }
    /// ICE restart, as `media.restart` does it.
    func restart(_ generation: Int) throws {
      media.handle(.offer(generation: generation), at: now, into: &output)
      pump()
      guard case .described(let sdp, _) = reports.last else { throw SDPMissing() }
      let (ufrag, password) = ("gateway\(generation)", "gatewaypassword12345678\(generation)")
      gateway.endpoint.ufrag = ufrag
      gateway.endpoint.password = password
      agent.restart(ufrag: ufrag, password: password, remoteUfrag: nil, generation: generation)
      media.handle(.apply(answer: try gateway.answer(to: sdp).sdp, generation: generation), at: now, into: &output)
      pump()
    }
    struct SDPMissing: Error {}

    func run(for time: Duration) {
      let end = now + time
      while let due = media.nextDeadline, due <= end {
        now = max(now, due)
        media.handleTimeout(at: now, into: &output)
        let next = media.nextDeadline
        #expect(next.map { $0 > now } ?? true)
        pump()
      }
      now = end
    }

    /// Everybody answers at once.
    func pump() {
      for _ in 0..<50 {
        var (toGateway, toServer): ([[UInt8]], [(Int, [UInt8])]) = ([], [])
        output.forEachDatagram { bytes, _, _ in toGateway.append(Array(bytes)) }
        output.forEachRelayed { bytes, number in toServer.append((number, Array(bytes))) }
        let opened = output.connects.map(\.connection)
        connects += opened
        disconnects += output.disconnects
        reports += output.reports
        output.removeAll()
        if toGateway.isEmpty, toServer.isEmpty, opened.isEmpty { return }
        direct += toGateway.count
        for number in opened where isServing { media.relayOpened(number, at: now, into: &output) }
        for bytes in toGateway where isOpen {
          guard var reply = check(bytes, from: ClientMediaRelayTests.phone) else { continue }
          reply.withUnsafeMutableBytes {
            media.receive($0, from: ClientMediaRelayTests.gateway, to: ClientMediaRelayTests.phone, at: now, into: &output)
          }
        }
        for (number, bytes) in toServer where isServing { serve(bytes, number) }
      }
      Issue.record("they talk without end")
    }

    private func check(_ bytes: [UInt8], from source: SocketAddress) -> [UInt8]? {
      var reply = [UInt8](repeating: 0, count: 256)
      let outcome = bytes.withUnsafeBytes { bytes in
        reply.withUnsafeMutableBytes { agent.handle(bytes, from: source, at: now, reply: $0) }
      }
      return outcome.replyCount > 0 ? Array(reply[..<outcome.replyCount]) : nil
    }

    private func serve(_ bytes: [UInt8], _ number: Int) {
      if bytes[0] >= 0x40 { return relayedData += 1 }
      let parsed = bytes.withUnsafeBytes { bytes -> (STUNMethod, TransactionID, [UInt8])? in
        guard let message = try? STUNMessage(bytes) else { return nil }
        return (message.method, message.transaction, message.dataRange.map { Array(bytes[$0]) } ?? [])
      }
      guard let (method, id, data) = parsed else { return }
      asked.append(method)
      if method == .send {
        guard let reply = check(data, from: ClientMediaRelayTests.relayed) else { return relayedData += 1 }
        send(.indication, .data, id, number) { writer in
          writer.addPeer(ClientMediaRelayTests.gateway)
          reply.withUnsafeBytes { writer.addData($0) }
        }
      } else {
        send(.success, method, id, number) { if method == .allocate { $0.addRelayedAddress(givesAddress) } }
      }
    }

    private func send(
      _ kind: STUNClass, _ method: STUNMethod, _ id: TransactionID, _ number: Int, _ body: (inout STUNWriter) -> Void
    ) {
      var bytes = [UInt8](repeating: 0, count: 600)
      let count = bytes.withUnsafeMutableBytes { buffer -> Int in
        var writer = STUNWriter(kind, method: method, transaction: id, into: buffer)
        body(&writer)
        return writer.finish() ?? 0
      }
      media.relayReceived(number, Array(bytes[..<count]), at: now, into: &output)
    }

    var failures: Int {
      reports.count { if case .failed = $0 { true } else { false } }
    }
  }

  @Test func `on an open network no server is asked`() throws {
    let rig = try Rig()
    rig.isOpen = true
    rig.answer()
    rig.run(for: .seconds(10))
    #expect(rig.agent.nomination?.remote == Self.phone)
    #expect(rig.connects.isEmpty && rig.failures == 0)
  }

  @Test func `without UDP a server is asked after 0.4 s, and its pair is nominated soon after`() throws {
    let rig = try Rig()
    rig.answer()
    rig.run(for: .milliseconds(399))
    #expect(rig.connects.isEmpty)
    rig.run(for: .milliseconds(201))
    #expect(rig.connects.count == 1 && rig.agent.nomination?.remote == Self.relayed)
    #expect(rig.media.agent.nominatedKinds?.local == .relayed)
    #expect(rig.asked.contains(.channelBind), "\(rig.asked.map(\.rawValue))")
    #expect(rig.relayedData > 0, "the DTLS handshake goes the same way")
  }

  @Test func `what is asked for too late is given back`() throws {
    let rig = try Rig()
    rig.isServing = false
    rig.answer()
    rig.run(for: .milliseconds(500))
    #expect(rig.connects.count == 1)
    rig.isOpen = true
    rig.run(for: .seconds(2))
    #expect(rig.agent.nomination?.remote == Self.phone && rig.disconnects == rig.connects)
  }

  @Test func `a path that does not come about with every way open is followed by one over TURN alone, and that by one with all`()
    throws
  {
    let rig = try Rig()
    rig.isServing = false
    rig.answer()
    rig.run(for: .seconds(15))
    #expect(rig.failures == 1)
    rig.isServing = true
    rig.direct = 0
    rig.connects = []
    try rig.restart(2)
    #expect(rig.connects.count == 1, "at once")
    rig.run(for: .milliseconds(300))
    #expect(rig.direct == 0 && rig.agent.nomination?.remote == Self.relayed && rig.agent.nomination?.generation == 2)
  }

  @Test func `a path over TURN alone that no server has fails, and the next one has all ways`() throws {
    let rig = try Rig()
    rig.isServing = false
    rig.answer()
    rig.run(for: .seconds(15))
    try rig.restart(2)
    let number = try #require(rig.connects.last)
    rig.media.relayClosed(number, "refused", at: rig.now, into: &rig.output)
    rig.pump()
    #expect(rig.failures == 2)
    rig.isOpen = true
    try rig.restart(3)
    rig.run(for: .milliseconds(300))
    #expect(rig.agent.nomination?.remote == Self.phone && rig.agent.nomination?.generation == 3)
  }

  @Test func `a server that goes in the call is a failure; the next path has another allocation, and the old one goes 5 s later`()
    throws
  {
    let rig = try Rig()
    rig.answer()
    rig.run(for: .seconds(1))
    let first = try #require(rig.connects.last)
    // a change of the network, say: the old allocation serves until the new path is there
    try rig.restart(2)
    rig.run(for: .seconds(1))
    let second = try #require(rig.connects.last)
    #expect(second != first && !rig.disconnects.contains(first))
    rig.run(for: .seconds(5))
    #expect(rig.disconnects.contains(first) && !rig.disconnects.contains(second))
    rig.media.relayClosed(second, "reset", at: rig.now, into: &rig.output)
    rig.pump()
    #expect(rig.failures == 1)
    rig.media.handle(.close, at: rig.now, into: &rig.output)
    rig.pump()
    #expect(rig.media.nextDeadline == nil || rig.media.relays.nextDeadline == nil)
  }

  @Test func `a server that says it is our own address has nothing from us`() throws {
    let rig = try Rig()
    rig.givesAddress = Self.phone
    rig.answer()
    rig.run(for: .seconds(3))
    #expect(rig.connects.count == 1 && rig.agent.nomination == nil && !rig.asked.contains(.send))
  }

  @Test(arguments: 1...20 as ClosedRange<UInt64>)
  func `a deadline is later than the timeout that was handled, in any order of things`(
    seed: UInt64
  ) throws {
    var random = SplitMix64(seed: seed)
    func pick(_ count: Int) -> Int { Int(random.next() % UInt64(count)) }
    let rig = try Rig(servers: ["turns:turn.example", "turn:other.example"])
    rig.answer()
    var generation = 1
    for _ in 0..<60 {
      switch pick(9) {
      case 0: rig.isOpen.toggle()
      case 1: rig.isServing.toggle()
      case 2: rig.givesAddress = [Self.relayed, Self.phone][pick(2)]
      case 3:
        generation += 1
        try rig.restart(generation)
      case 4: rig.media.handle(.activate(isConnected: pick(2) == 0), at: rig.now, into: &rig.output)
      case 5: if let number = rig.connects.last { rig.media.relayClosed(number, "reset", at: rig.now, into: &rig.output) }
      case 6: if let number = rig.connects.last { rig.media.relayOpened(number, at: rig.now, into: &rig.output) }
      default: rig.run(for: .milliseconds(pick(12_000)))
      }
      rig.pump()
    }
    rig.media.handle(.close, at: rig.now, into: &rig.output)
    rig.run(for: .seconds(60))
  }

  @Test func `news of connections that are none change nothing`() throws {
    let rig = try Rig()
    rig.answer()
    for number in [-1, 0, 15, 16, 99, Int.max] {
      rig.media.relayOpened(number, at: rig.now, into: &rig.output)
      rig.media.relayReceived(number, [0x40, 0, 0, 1], at: rig.now, into: &rig.output)
      rig.media.relayClosed(number, "", at: rig.now, into: &rig.output)
    }
    rig.pump()
    #expect(rig.failures == 0 && rig.connects.isEmpty)
  }
}
