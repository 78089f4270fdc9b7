import Testing
import TrunklineBytes
import TrunklineSTUN

@testable import TrunklineTURN

/// The rows of the client's table.
@Suite struct TURNClientTests {
  @Test func `Allocate is asked without credentials, then with realm and nonce of the 401, and is told once`() throws {
    let rig = TURNRig()
    rig.start()
    let first = try rig.sent()
    try first.message { message in
      #expect(message.method == .allocate && message.messageClass == .request && message.username == nil)
      #expect(!message.hasIntegrityAttribute)
    }
    rig.receive(rig.challenge(first))
    let second = try rig.sent()
    try second.message { message in
      #expect(message.username.map { String(decoding: $0, as: UTF8.self) } == "1700000000:alice")
      #expect(message.realm == TURNRig.realm && message.nonce == Array("nonce-1".utf8))
      #expect(message.hasIntegrity(rig.key))
      #expect(message.transaction != TURNRig.transaction(of: first))
    }
    rig.receive(rig.success(second))
    rig.receive(rig.success(second))
    #expect(rig.takeEvents() == [.allocated(TURNRig.relayed)])
    #expect(rig.client.state == .allocated && rig.client.relayed == TURNRig.relayed)
  }

  @Test func `IPv6 peers have a relay of that family`() throws {
    let rig = TURNRig(family: .v6)
    rig.start()
    #expect(try rig.sent().message { $0.requestedFamily } == .v6)
    let other = TURNRig()
    other.start()
    #expect(try other.sent().message { $0.requestedFamily } == nil)
  }

  @Test(arguments: [
    (STUNErrorCode.forbidden, TURNFailure.forbidden), (.allocationMismatch, .allocationMismatch),
    (.addressFamilyNotSupported, .addressFamily), (.wrongCredentials, .wrongCredentials),
    (.unsupportedTransport, .unsupportedTransport), (.allocationQuotaReached, .quotaReached),
    (.insufficientCapacity, .insufficientCapacity), (.serverError, .refused(500)), (.tryAlternate, .tryAlternate(nil)),
    (.unauthenticated, .unauthorized),
  ])
  func `a refused Allocate is a failure that says why, and nothing more is sent`(code: STUNErrorCode, why: TURNFailure) throws {
    let rig = TURNRig()
    rig.start()
    rig.receive(rig.challenge(try rig.sent()))
    rig.receive(rig.error(try rig.sent(), code))
    #expect(rig.takeEvents() == [.failed(why)] && rig.client.state == .failed(why))
    rig.wait(.seconds(3_600))
    #expect(rig.take().isEmpty && rig.client.nextDeadline == nil)
  }

  @Test func `300 names the server to ask instead`() throws {
    let rig = TURNRig()
    rig.start()
    let other = try #require(SocketAddress("203.0.113.9:3478"))
    rig.receive(
      rig.answer(try rig.sent(), .error, isSigned: false) { writer in
        writer.addError(.tryAlternate)
        writer.addAlternateServer(other)
      })
    #expect(rig.takeEvents() == [.failed(.tryAlternate(other))])
  }

  @Test func `a stale nonce is replaced, and the fourth in a row is a failure`() throws {
    let rig = TURNRig()
    rig.start()
    rig.receive(rig.challenge(try rig.sent()))
    for number in 2...3 {
      rig.nonce = Array("nonce-\(number)".utf8)
      rig.receive(rig.challenge(try rig.sent(), .staleNonce))
      #expect(try rig.output.messages.first?.message { $0.nonce } == rig.nonce)
    }
    rig.receive(rig.challenge(try rig.sent(), .staleNonce))
    #expect(rig.takeEvents() == [.failed(.staleNonce)])
  }

  @Test func `a stale nonce in a call is replaced without a word`() throws {
    let rig = TURNRig()
    try rig.allocate()
    rig.wait(.seconds(240))
    let permission = try rig.sent()
    rig.nonce = Array("later".utf8)
    rig.receive(rig.challenge(permission, .staleNonce))
    let again = try rig.sent()
    try again.message { #expect($0.method == .createPermission && $0.nonce == rig.nonce && $0.hasIntegrity(rig.key)) }
    rig.receive(rig.answer(again))
    #expect(rig.takeEvents().isEmpty && rig.client.state == .allocated)
  }

  // MARK: time

  @Test func `over UDP a request is sent seven times, at 0, 0.5, 1.5, 3.5, 7.5, 15.5 and 31.5 s, and fails at 39.5 s`() throws {
    let rig = TURNRig()
    rig.start()
    let first = try rig.sent()
    var at: [Int64] = []
    while rig.client.state == .allocating {
      rig.now = try #require(rig.client.nextDeadline)
      rig.handleTimeout()
      for message in rig.take() {
        #expect(message == first)
        at.append(rig.now.nanoseconds / 1_000_000)
      }
    }
    #expect(at == [500, 1_500, 3_500, 7_500, 15_500, 31_500])
    #expect(rig.now.nanoseconds / 1_000_000 == 39_500 && rig.takeEvents() == [.failed(.noAnswer)])
  }

  @Test func `over a stream nothing is sent again, and a server that is away is one after 10 s`() throws {
    let rig = TURNRig(isStream: true)
    rig.start()
    _ = try rig.sent()
    rig.wait(.seconds(9))
    #expect(rig.take().isEmpty && rig.client.state == .allocating)
    rig.wait(.seconds(1))
    #expect(rig.takeEvents() == [.failed(.noAnswer)])
  }

  @Test func `an allocation is refreshed a minute before its end, a short one at half its time`() throws {
    let rig = TURNRig()
    try rig.allocate(lifetime: 600)
    #expect(rig.client.refreshAt == rig.now + .seconds(540))
    rig.client.permissions[0].refreshAt = nil
    rig.wait(.seconds(540))
    let refresh = try rig.sent()
    try refresh.message { #expect($0.method == .refresh && $0.lifetimeSeconds == nil && $0.hasIntegrity(rig.key)) }
    rig.receive(rig.answer(refresh) { $0.addLifetime(seconds: 60) })
    #expect(rig.client.refreshAt == rig.now + .seconds(30))
  }

  @Test func `a lifetime of years is believed for an hour, one of nothing not at all`() throws {
    let rig = TURNRig()
    try rig.allocate(lifetime: .max)
    #expect(rig.client.refreshAt == rig.now + .seconds(3_540))
    let other = TURNRig()
    other.start()
    other.receive(other.challenge(try other.sent()))
    other.receive(other.success(try other.sent(), lifetime: 0))
    #expect(other.takeEvents() == [.failed(.allocationMismatch)])
  }

  @Test(arguments: [STUNErrorCode.allocationMismatch, .unauthenticated, .serverError])
  func `a Refresh that is refused in a call ends the allocation`(code: STUNErrorCode) throws {
    let rig = TURNRig()
    try rig.allocate()
    rig.client.permissions[0].refreshAt = nil
    rig.wait(.seconds(540))
    rig.receive(rig.error(try rig.sent(), code))
    guard case .failed = rig.client.state else { return #expect(Bool(false), "\(rig.client.state)") }
    #expect(rig.takeEvents().count == 1)
  }

  @Test func `a server that is away in a call is noticed by the refresh of the permission`() throws {
    let rig = TURNRig()
    try rig.allocate()
    rig.wait(.seconds(240))
    while rig.client.state == .allocated {
      rig.now = try #require(rig.client.nextDeadline)
      rig.handleTimeout()
    }
    #expect(rig.takeEvents() == [.failed(.noAnswer)])
  }

  @Test func `a server that media goes over and that has forgotten us is found out within 4 s of silence`() throws {
    let rig = TURNRig()
    try rig.allocate()
    rig.client.bind(TURNRig.gateway, at: rig.now, into: &rig.output)
    rig.receive(rig.answer(try rig.sent()))
    for _ in 0..<5 {
      rig.wait(.seconds(3))
      #expect(rig.take().isEmpty)
      rig.receive([0x40, 0, 0, 1, 1])
    }
    rig.wait(.seconds(4))
    let refresh = try rig.sent()
    #expect(TURNRig.method(of: refresh) == .refresh)
    rig.wait(.milliseconds(100))
    #expect(rig.take().isEmpty, "asked once")
    rig.receive(rig.error(refresh, .allocationMismatch))
    #expect(rig.takeEvents() == [.failed(.allocationMismatch)])
  }

  @Test func `permissions are refreshed each 4 minutes, channels each 9`() throws {
    let rig = TURNRig()
    try rig.allocate(lifetime: 3_600)
    rig.client.bind(TURNRig.gateway, at: rig.now, into: &rig.output)
    rig.receive(rig.answer(try rig.sent()))
    var seen: [STUNMethod: Int] = [:]
    for _ in 0..<36 {
      rig.wait(.seconds(60))
      for request in rig.take() {
        seen[TURNRig.method(of: request), default: 0] += 1
        rig.receive(rig.answer(request))
      }
    }
    #expect(seen[.createPermission] == 9 && seen[.channelBind] == 4, "\(seen)")
  }

  // MARK: peers

  @Test func `a peer that the server refuses is told; when no peer is left there is no relay`() throws {
    let rig = TURNRig()
    let other = try #require(IPAddress("10.0.0.1"))
    for ip in [TURNRig.gateway.ip, other] { rig.client.permit(ip, at: rig.now, into: &rig.output) }
    rig.start()
    rig.receive(rig.challenge(try rig.sent()))
    rig.receive(rig.success(try rig.sent()))
    _ = rig.takeEvents()
    let requests = rig.take()
    #expect(try requests.map { try $0.message { $0.peerAddress?.ip } } == [TURNRig.gateway.ip, other])
    rig.receive(rig.error(requests[1], .forbidden))
    #expect(rig.takeEvents() == [.refused(other, 403)])
    var octets: [UInt8] = []
    let (isSent, isRefused) = [1, 2].withUnsafeBytes { bytes in
      (
        rig.client.write(bytes, to: TURNRig.gateway, into: &octets),
        rig.client.write(bytes, to: SocketAddress(other, 9), into: &octets)
      )
    }
    #expect(isSent && !isRefused)
    rig.receive(rig.error(requests[0], .forbidden))
    #expect(rig.takeEvents() == [.refused(TURNRig.gateway.ip, 403), .failed(.forbidden)])
  }

  @Test func `peers beyond the limit are none`() throws {
    let rig = TURNRig()
    try rig.allocate()
    for number in 0..<100 { rig.client.permit(IPAddress(10, 0, 0, UInt8(number)), at: rig.now, into: &rig.output) }
    #expect(rig.take().count == Limits.peers - 1)
    for number in 0..<100 {
      rig.client.bind(SocketAddress(TURNRig.gateway.ip, UInt16(number + 1)), at: rig.now, into: &rig.output)
    }
    #expect(rig.take().count == Limits.peers)
  }

  // MARK: data

  @Test(arguments: [false, true])
  func `data goes as indications until the channel is confirmed, and is padded on a stream`(isStream: Bool) throws {
    let rig = TURNRig(isStream: isStream)
    try rig.allocate()
    let payload: [UInt8] = [0x80, 1, 2, 3, 4]
    func written(_ peer: SocketAddress = TURNRig.gateway) -> [UInt8]? {
      var octets: [UInt8] = [9]
      guard payload.withUnsafeBytes({ rig.client.write($0, to: peer, into: &octets) }) else { return nil }
      return Array(octets.dropFirst())
    }
    rig.client.bind(TURNRig.gateway, at: rig.now, into: &rig.output)
    let bind = try rig.sent()
    try bind.message { #expect($0.method == .channelBind && $0.channelNumber == 0x4000 && $0.peerAddress == TURNRig.gateway) }
    let indication = try #require(written())
    try indication.message { message in
      #expect(message.method == .send && message.messageClass == .indication && message.peerAddress == TURNRig.gateway)
      #expect(message.dataRange.map { Array(indication[$0]) } == payload)
    }
    rig.receive(rig.answer(bind))
    #expect(written() == [0x40, 0, 0, 5] + payload + (isStream ? [0, 0, 0] : []))
    #expect(written(SocketAddress(TURNRig.gateway.ip, 1))?.first == 0, "another port has no channel")
    #expect(written(try #require(SocketAddress("203.0.113.1:1"))) == nil, "and who has no permission gets nothing")
  }

  @Test func `a channel that is refused leaves indications`() throws {
    let rig = TURNRig()
    try rig.allocate()
    rig.client.bind(TURNRig.gateway, at: rig.now, into: &rig.output)
    rig.receive(rig.error(try rig.sent(), .badRequest))
    var octets: [UInt8] = []
    let isSent = [1].withUnsafeBytes { rig.client.write($0, to: TURNRig.gateway, into: &octets) }
    #expect(isSent && octets.first == 0 && rig.client.state == .allocated)
  }

  @Test func `data of the gateway comes by indication and by channel`() throws {
    let rig = TURNRig()
    try rig.allocate()
    let data = rig.write(.indication, .data, TransactionID(high: 1, low: 2)) { writer in
      writer.addPeer(TURNRig.gateway)
      [7, 8, 9].withUnsafeBytes { writer.addData($0) }
    }
    let payload = try #require(rig.receive(data))
    #expect(payload.peer == TURNRig.gateway && Array(data[payload.octets]).prefix(1) == [7])
    rig.client.bind(TURNRig.gateway, at: rig.now, into: &rig.output)
    // the server may use it before its answer is here
    #expect(rig.receive([0x40, 0, 0, 2, 5, 6, 0, 0]) == .init(peer: TURNRig.gateway, octets: 4..<6))
    #expect(rig.receive([0x40, 0, 0, 0]) == .init(peer: TURNRig.gateway, octets: 4..<4))
  }

  @Test func `too long a datagram is not sent`() throws {
    let rig = TURNRig()
    try rig.allocate()
    var octets: [UInt8] = []
    let isSent = [UInt8](repeating: 0, count: Limits.payloadBytes + 1).withUnsafeBytes {
      rig.client.write($0, to: TURNRig.gateway, into: &octets)
    }
    #expect(!isSent && octets.isEmpty)
    let isLongest = [UInt8](repeating: 0, count: Limits.payloadBytes).withUnsafeBytes {
      rig.client.write($0, to: TURNRig.gateway, into: &octets)
    }
    #expect(isLongest)
  }

  // MARK: the end

  @Test func `the end gives the allocation back with lifetime 0, and nothing comes after it`() throws {
    let rig = TURNRig()
    try rig.allocate()
    rig.client.close(at: rig.now, into: &rig.output)
    try rig.sent().message { #expect($0.method == .refresh && $0.lifetimeSeconds == 0 && $0.hasIntegrity(rig.key)) }
    rig.client.close(at: rig.now, into: &rig.output)
    rig.wait(.seconds(3_600))
    #expect(rig.take().isEmpty && rig.takeEvents().isEmpty && rig.client.nextDeadline == nil)
    var octets: [UInt8] = []
    #expect(![1].withUnsafeBytes { rig.client.write($0, to: TURNRig.gateway, into: &octets) })
    #expect(rig.receive([0x40, 0, 0, 1, 1]) == nil)
  }
}
