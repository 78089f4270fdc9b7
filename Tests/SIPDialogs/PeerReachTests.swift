import Testing
import TrunklineBytes
import TrunklineSIP

@testable import TrunklineSIPDialogs

/// Where requests inside a dialog go if Contact does not lead to the peer: behind a NAT, and after the peer has changed its
/// connection.
@Suite struct PeerReachTests {
  private func address(_ text: String) -> SocketAddress { SocketAddress(text)! }

  /// An answered call whose INVITE came from `source` with this Via and Contact; the leg and our tag.
  private func call(
    from source: String, via: String? = nil, contact: String, rule: TrunkRules.ContactRewriting = .auto, route: String? = nil,
    transport: TransportProtocol = .udp, local: [IPNetwork] = []
  ) throws -> (Wire, LegID, String) {
    var rules = TrunkRules()
    rules.contactRewriting = rule
    var wire = Wire(advertised: AdvertisedAddresses(localNetworks: LocalNetworks(local)))
    wire.input(.rules(["carrier": rules]))
    wire.flow = Flow(transport: transport, local: gatewayAddress, remote: address(source))
    let sentBy = "SIP/2.0/\(transport.viaName) \(via ?? contact);rport"
    wire.receive(
      request("INVITE", via: sentBy, extra: route.map { ["Record-Route: \($0)"] } ?? [], sdp: offer)
        .replacing("<sip:bob@203.0.113.7:5060>", with: "<sip:bob@\(contact)>"))
    guard case .inviteReceived(let leg, _) = try #require(wire.events().first) else { throw Missing() }
    let tag = try #require(wire.command(.answer(leg, sdp: answer)).first?.toTag)
    wire.receive(request("ACK", branch: "z9hG4bKack", toTag: tag, via: sentBy))
    _ = wire.events()
    return (wire, leg, tag)
  }

  /// Where our BYE goes, and its Request-URI.
  private func bye(_ wire: inout Wire, _ leg: LegID) throws -> (to: SocketAddress, uri: String) {
    let bye = try #require(wire.command(.bye(leg, nil)).first)
    return (try #require(wire.output.messages.first).flow.remote, bye.uri)
  }

  @Test(
    arguments: [
      // a PBX behind a NAT: private, carriers' NAT, link-local, documentation, IPv6 seen over IPv4
      ("8.8.4.4:40000", "192.168.1.20:5060", "192.168.1.20:5060", true), ("8.8.4.4:40000", "10.0.0.9", "10.0.0.9", true),
      ("8.8.4.4:40000", "100.64.3.4", "100.64.3.4", true), ("8.8.4.4:40000", "172.20.1.1", "172.20.1.1", true),
      ("8.8.4.4:40000", "169.254.1.1", "169.254.1.1", true), ("8.8.4.4:40000", "192.0.2.1", "192.0.2.1", true),
      ("8.8.4.4:40000", "[fe80::1]", "[fe80::1]", true), ("8.8.4.4:40000", "[fd00::1]", "[2001:db8::1]", true),
      // its Via was corrected on the way, its Contact was not
      ("8.8.4.4:40000", "8.8.4.4:40000", "192.168.1.20:5060", true),
      // a NAT inside a private network shows in Via alone
      ("10.9.0.1:40000", "192.168.77.2:5060", "192.168.77.2:5060", true),
      // a host name, our own address, our own port
      ("8.8.4.4:40000", "pbx.example", "pbx.example", true), ("8.8.4.4:40000", "198.51.100.9", "198.51.100.9:5060", true),
      // a proxy on this machine, which knows the path
      ("127.0.0.1:5070", "127.0.0.1:5070", "192.168.1.20:5060", true),
      ("127.0.0.1:5070", "127.0.0.1:5070", "8.8.4.4:5060", false),
      // the peer may choose any address that can be routed to
      ("8.8.4.4:5060", "8.8.4.4", "9.9.9.9:5070", false), ("8.8.4.4:40000", "8.8.4.4:5070", "8.8.4.4:5070", false),
      ("10.9.0.1:5060", "10.9.0.1", "10.9.0.7:5070", false), ("10.9.0.1:5060", "10.9.0.1", "8.8.4.4:5070", false),
      ("10.9.0.1:40000", "8.8.4.4", "8.8.4.4:5070", false), ("203.0.113.7:5060", "203.0.113.7", "203.0.113.8:5070", false),
    ] as [(String, String, String, Bool)])
  func `our BYE goes the way the call came where the Contact can not be routed to`(
    source: String, via: String, contact: String, isWay: Bool
  ) throws {
    var (wire, leg, _) = try call(from: source, via: via, contact: contact)
    let sent = try bye(&wire, leg)
    #expect(sent.uri == "sip:bob@\(contact)", "the request is addressed to the Contact all the same")
    #expect(sent.to == (isWay ? address(source) : address(contact.contains(":") ? contact : contact + ":5060")))
  }

  @Test func `a Record-Route behind a NAT leads nowhere either`() throws {
    var (wire, leg, _) = try call(from: "8.8.4.4:40000", contact: "10.0.0.9", route: "<sip:10.0.0.1;lr>")
    #expect(try bye(&wire, leg).to == address("8.8.4.4:40000"))
  }

  @Test func `a NAT inside a private network is none where the Contact is in a network of ours`() throws {
    let network = try #require(IPNetwork("192.168.77.0/24"))
    var (wire, leg, _) = try call(from: "10.9.0.1:40000", contact: "192.168.77.2:5060", local: [network])
    #expect(try bye(&wire, leg).to == address("192.168.77.2:5060"))
  }

  @Test func `the trunk's rule decides: always the way the call came, or never`() throws {
    var (always, one, _) = try call(from: "8.8.4.4:5060", contact: "9.9.9.9:5070", rule: .always)
    #expect(try bye(&always, one).to == address("8.8.4.4:5060"))
    var (never, two, _) = try call(from: "8.8.4.4:40000", contact: "192.168.1.20:5060", rule: .never)
    #expect(try bye(&never, two).to == address("192.168.1.20:5060"))
  }

  @Test func `an answer from behind a NAT is acknowledged and ended the way our INVITE went`() throws {
    let server = Flow(transport: .udp, local: gatewayAddress, remote: address("8.8.4.4:5060"))
    var (wire, invite) = try Wire.calling(flow: server)
    wire.flow = server
    let acknowledged = wire.receive(reply(invite, 200, extra: ["Contact: <sip:c@192.168.1.20:5060>"], sdp: answer))
    #expect(acknowledged.map(\.method) == [.ack] && wire.output.messages.map(\.flow.remote) == [address("8.8.4.4:5060")])
    #expect(try bye(&wire, Wire.out).to == address("8.8.4.4:5060"))
    // a second fork's too
    let other = wire.receive(reply(invite, 200, tag: "other", extra: ["Contact: <sip:c@192.168.1.21:5060>"], sdp: answer))
    #expect(other.map(\.method) == [.ack, .bye])
    #expect(wire.output.messages.allSatisfy { $0.flow.remote == address("8.8.4.4:5060") })
  }

  @Test func `a NAT that forgets: requests go to the port that the last one of the peer came from`() throws {
    var (wire, leg, tag) = try call(from: "8.8.4.4:40000", contact: "192.168.1.20:5060")
    let moved = Flow(transport: .udp, local: gatewayAddress, remote: address("8.8.4.4:41234"))
    let info = request("INFO", branch: "z9hG4bKi", toTag: tag, cseq: 2, via: "SIP/2.0/UDP 192.168.1.20:5060;rport")
    #expect(wire.receive(info, on: moved).map(\.statusCode) == [200])
    #expect(wire.output.changedLegs.contains(leg), "the journal knows it")
    #expect(try bye(&wire, leg).to == address("8.8.4.4:41234"))
  }

  // MARK: connections

  private func tcp(_ remote: String) -> Flow { Flow(transport: .tcp, local: gatewayAddress, remote: address(remote)) }

  private func inside(_ method: String, _ tag: String, cseq: Int, via: String = "SIP/2.0/TCP 8.8.4.4:5060;rport") -> String {
    request(method, branch: "z9hG4bKc\(cseq)", toTag: tag, cseq: cseq, via: via)
  }

  @Test(arguments: [true, false]) func `a request on another connection moves the call to it`(isOtherHost: Bool) throws {
    let next = tcp(isOtherHost ? "9.9.9.9:50000" : "8.8.4.4:50000")
    var (wire, leg, tag) = try call(from: "8.8.4.4:33000", contact: "8.8.4.4:5060", transport: .tcp)
    #expect(wire.receive(inside("OPTIONS", tag, cseq: 2), on: next).map(\.statusCode) == [200])
    wire.input(.transportFailed(tcp("8.8.4.4:33000"), .closed, wasOpen: true))
    #expect(try bye(&wire, leg).to == next.remote)
    #expect(wire.output.messages.first?.flow == next)
  }

  @Test func `the ACK moves the call too`() throws {
    var (wire, leg, _) = try call(from: "8.8.4.4:33000", contact: "8.8.4.4:5060", transport: .tcp)
    _ = leg
    wire = Wire()
    wire.flow = tcp("8.8.4.4:33000")
    wire.receive(
      request("INVITE", via: "SIP/2.0/TCP 8.8.4.4:5060", sdp: offer)
        .replacing("<sip:bob@203.0.113.7:5060>", with: "<sip:bob@8.8.4.4:5060>"))
    guard case .inviteReceived(let ringing, _) = try #require(wire.events().first) else { throw Missing() }
    let tag = try #require(wire.command(.answer(ringing, sdp: answer)).first?.toTag)
    wire.receive(inside("ACK", tag, cseq: 1), on: tcp("9.9.9.9:50000"))
    #expect(wire.events().map(\.name) == ["ack"])
    #expect(try bye(&wire, ringing).to == address("9.9.9.9:50000"))
  }

  @Test func `a connection that the call moved to and lost leads back to where the peer listens`() throws {
    var (wire, leg, tag) = try call(from: "8.8.4.4:33000", contact: "8.8.4.4:5060", transport: .tcp)
    wire.receive(inside("OPTIONS", tag, cseq: 2), on: tcp("9.9.9.9:50000"))
    wire.input(.transportFailed(tcp("8.8.4.4:33000"), .closed, wasOpen: true))
    wire.input(.transportFailed(tcp("9.9.9.9:50000"), .closed, wasOpen: true))
    #expect(try bye(&wire, leg).to == address("8.8.4.4:5060"))
  }

  @Test func `a call of ours that moved to a connection and lost it goes to the server again`() throws {
    let server = tcp("8.8.4.4:5060")
    var (wire, invite) = try Wire.calling(flow: server)
    wire.flow = server
    wire.receive(reply(invite, 200, extra: ["Contact: <sip:c@8.8.4.4:5060;transport=tcp>"], sdp: answer))
    wire.receive(wire.inside("OPTIONS", invite, cseq: 1), on: tcp("8.8.4.4:50000"))
    wire.input(.transportFailed(tcp("8.8.4.4:50000"), .closed, wasOpen: true))
    #expect(try bye(&wire, Wire.out).to == address("8.8.4.4:5060"))
  }

  @Test func `what is out of order, of another dialog or over another transport moves nothing`() throws {
    var (wire, leg, tag) = try call(from: "8.8.4.4:33000", contact: "8.8.4.4:5060", transport: .tcp)
    let other = tcp("9.9.9.9:50000")
    #expect(wire.receive(inside("OPTIONS", tag, cseq: 1), on: other).map(\.statusCode) == [500])
    #expect(wire.receive(inside("OPTIONS", "none", cseq: 2), on: other).map(\.statusCode) == [481])
    #expect(
      wire.receive(inside("OPTIONS", tag, cseq: 2).replacing("tag=77", with: "tag=78"), on: other).map(\.statusCode) == [481])
    let plain = Flow(transport: .udp, local: gatewayAddress, remote: address("9.9.9.9:5060"))
    let datagram = inside("OPTIONS", tag, cseq: 3, via: "SIP/2.0/UDP 9.9.9.9:5060;rport")
    #expect(wire.receive(datagram, on: plain).map(\.statusCode) == [200])
    #expect(try bye(&wire, leg).to == address("8.8.4.4:33000"))
  }

  // MARK: no peer there

  @Test func `an unanswered BYE is reported, with its destination`() throws {
    var (wire, leg, _) = try call(from: "8.8.4.4:40000", contact: "192.168.1.20:5060", rule: .never)
    wire.command(.bye(leg, nil))
    _ = wire.advance(.seconds(33))
    #expect(wire.events().map(\.name) == ["closed"])
    let request = try #require(wire.output.unanswered.first)
    #expect(wire.output.unanswered.count == 1 && request.leg == leg && request.method == .bye && request.failure == .timeout)
    #expect(request.flow.remote == address("192.168.1.20:5060") && request.contact == address("192.168.1.20:5060"))
    #expect(request.trunk == "carrier" && request.callID == "call-1" && wire.agent.statistics.unanswered == [.bye: 1])
    #expect(wire.isEmpty)
  }

  @Test(
    arguments: [
      (UserAgent.PeerFailure.refused, LocalFailure.connectionRefused), (.closed, .connectionClosed), (.noRoute, .noRoute),
      (.noTLS, .noTLS), (nil, .notSent),
    ] as [(UserAgent.PeerFailure?, LocalFailure)])
  func `each cause of an undelivered request has a name`(peer: UserAgent.PeerFailure?, failure: LocalFailure) throws {
    var (wire, leg, _) = try call(from: "8.8.4.4:33000", contact: "8.8.4.4:5060", transport: .tcp)
    wire.command(.bye(leg, nil))
    wire.input(.transportFailed(tcp("8.8.4.4:33000"), peer))
    #expect(wire.events().map(\.name) == ["closed"] && wire.output.unanswered.map(\.failure) == [failure])
  }

  @Test func `a request that had any answer is reported by its own event alone`() throws {
    var (wire, leg, _, _) = try Wire.confirmed()
    let ping = try #require(wire.command(.ping(leg)).first)
    wire.receive(reply(ping, 100))
    _ = wire.advance(.seconds(33))
    #expect(wire.events().map(\.name) == ["ping false"] && wire.output.unanswered.isEmpty)
    wire.endAndExpectNothing(leg)
  }
}
