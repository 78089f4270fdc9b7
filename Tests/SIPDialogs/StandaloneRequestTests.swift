import Testing
import TrunklineBytes
import TrunklineSIP

@testable import TrunklineSIPDialogs

/// REGISTER and OPTIONS of our own, outside any dialog.
@Suite struct StandaloneRequestTests {
  private let id = RequestID(3)

  private func sent(_ method: Method, _ credentials: Credentials? = nil) throws -> (Wire, Message) {
    var wire = Wire()
    let request = OutboundRequest(
      trunk: TrunkPeer(name: "carrier", domain: "carrier.example", flow: udp, credentials: credentials), method: method,
      uri: "sip:carrier.example", from: "sip:u@carrier.example", to: "sip:u@carrier.example", callID: "reg-1", sequence: 5,
      contactUser: method == .register ? "u" : nil, expires: method == .register ? 600 : nil)
    let message = try #require(wire.command(.request(id, request)).first)
    return (wire, message)
  }

  private func outcome(_ wire: inout Wire) -> RequestOutcome? {
    for case .requestAnswered(id, let outcome) in wire.events() { return outcome }
    return nil
  }

  @Test func `a REGISTER names our address and how long`() throws {
    let (_, register) = try sent(.register)
    _ = try register.checked()
    #expect(register.uri == "sip:carrier.example" && register.value(.contact) == "<sip:u@198.51.100.9:5060>")
    #expect(register.value(.expires) == "600" && register.value(.to) == "<sip:u@carrier.example>")
    #expect(register.value(.cseq) == "5 REGISTER" && register.value(.callID) == "reg-1")
  }

  @Test func `the binding of another address is taken out by its Contact as it was written, and no other is named`() throws {
    var (wire, register) = try sent(.register)
    wire.receive(reply(register, 200, extra: ["Expires: 300"]))
    let contact = try #require(outcome(&wire)?.contact)
    #expect(contact == register.value(.contact))
    var request = OutboundRequest(
      trunk: TrunkPeer(name: "carrier", domain: "carrier.example", flow: udp), method: .register, uri: "sip:carrier.example",
      from: "sip:u@carrier.example", to: "sip:u@carrier.example", callID: "reg-1", sequence: 7, contactUser: "u")
    request.removedContact = "<sip:u@198.51.100.10:5060>"
    let removal = try #require(wire.command(.request(RequestID(4), request)).first)
    _ = try removal.checked()
    #expect(removal.value(.contact) == "<sip:u@198.51.100.10:5060>;expires=0" && removal.value(.expires) == nil)
    #expect(try removal.contacts.count == 1 && removal.value(.cseq) == "7 REGISTER")
  }

  @Test func `the time granted is that of our own contact`() throws {
    var (wire, register) = try sent(.register)
    wire.receive(
      reply(
        register, 200, extra: ["Contact: <sip:other@192.0.2.1>;expires=9, <sip:u@198.51.100.9:5060>;expires=77", "Expires: 5"]))
    #expect(outcome(&wire)?.expires == 77)
    var (plain, other) = try sent(.register)
    plain.receive(reply(other, 200, extra: ["Expires: 300"]))
    #expect(outcome(&plain)?.expires == 300)
  }

  @Test(arguments: ["MD5", "SHA-256"]) func `a challenge is answered once, a stale nonce once more`(algorithm: String) throws {
    func challenge(_ nonce: String, _ more: String = "") -> [String] {
      ["WWW-Authenticate: Digest realm=\"r\", nonce=\"\(nonce)\", qop=\"auth\", algorithm=\(algorithm)\(more)"]
    }
    var (wire, register) = try sent(.register, Credentials(username: "u", password: "p"))
    let answered = try #require(wire.receive(reply(register, 401, extra: challenge("a"))).first)
    #expect(answered.value(.authorization)?.contains("algorithm=\(algorithm)") == true && answered.value(.cseq) == "6 REGISTER")
    let renewed = try #require(wire.receive(reply(answered, 401, extra: challenge("b", ", stale=true"))).first)
    #expect(renewed.value(.authorization)?.contains("nonce=\"b\"") == true)
    #expect(wire.receive(reply(renewed, 401, extra: challenge("c", ", stale=true"))).isEmpty)
    let end = outcome(&wire)
    #expect(end?.code == 401 && end?.sequence == 7)
  }

  @Test func `auth-int alone, another scheme, and a challenge from elsewhere are not answered`() throws {
    let credentials = Credentials(username: "u", password: "p")
    for challenge in [
      "Digest realm=\"r\", nonce=\"a\", qop=\"auth-int\"", "Basic realm=\"r\"",
      "Digest realm=\"r\", nonce=\"a\", algorithm=MD5-sess",
    ] {
      var (wire, register) = try sent(.register, credentials)
      #expect(wire.receive(reply(register, 401, extra: ["WWW-Authenticate: \(challenge)"])).isEmpty)
      #expect(outcome(&wire)?.code == 401)
    }
    var (wire, register) = try sent(.register, credentials)
    let elsewhere = Flow(transport: .udp, local: gatewayAddress, remote: SocketAddress("203.0.113.99:5060")!)
    #expect(
      wire.receive(reply(register, 401, extra: ["WWW-Authenticate: Digest realm=\"r\", nonce=\"a\""]), on: elsewhere).isEmpty)
    #expect(outcome(&wire) == nil)
  }

  @Test func `a REGISTER is not authorized for another realm than the trunk's`() throws {
    var (wire, register) = try sent(.register, Credentials(username: "u", password: "p"))
    var rules = TrunkRules()
    rules.realm = "carrier.example"
    wire.input(.rules(["carrier": rules]))
    #expect(wire.receive(reply(register, 401, extra: ["WWW-Authenticate: Digest realm=\"r\", nonce=\"a\""])).isEmpty)
    #expect(wire.agent.statistics.foreignChallenges == 1)
    #expect(wire.events().map(\.name) == ["challenge refused carrier r", "outcome 401"])
  }

  @Test func `423, silence and a dead way are told as they are`() throws {
    var (brief, register) = try sent(.register)
    brief.receive(reply(register, 423, extra: ["Min-Expires: 1800"]))
    let outcome423 = outcome(&brief)
    #expect(outcome423?.code == 423 && outcome423?.minimumExpires == 1800 && outcome423?.isResponse == true)
    var (silent, _) = try sent(.options)
    _ = silent.advance(.seconds(33))
    let unanswered = outcome(&silent)
    #expect(unanswered?.code == 408 && unanswered?.isResponse == false && unanswered?.peer == nil)
    #expect(silent.isEmpty)
    var (dead, _) = try sent(.options)
    dead.input(.transportFailed(udp))
    _ = dead.advance(.seconds(4))
    let failed = outcome(&dead)
    #expect(failed?.code == 503 && failed?.byTransport == true && failed?.peer == nil)
    for peer in [UserAgent.PeerFailure.refused, .closed] {
      var (request, _) = try sent(.options)
      request.input(.transportFailed(udp, peer))
      _ = request.advance(.seconds(4))
      #expect(outcome(&request)?.peer == peer)
    }
  }

  // MARK: several realms

  private func challenge(_ realm: String, _ nonce: String, proxy: Bool = false, stale: Bool = false) -> String {
    "\(proxy ? "Proxy-Authenticate" : "WWW-Authenticate"): Digest realm=\"\(realm)\", nonce=\"\(nonce)\", qop=\"auth\"\(stale ? ", stale=true" : "")"
  }

  private func realms(_ message: Message) -> [String] {
    let values =
      ((try? message.authentication(.proxyAuthorization)) ?? []) + ((try? message.authentication(.authorization)) ?? [])
    return values.map { "\($0["realm"] ?? "") \($0["nonce"] ?? "") \($0["nc"] ?? "")" }
  }

  @Test func `challenges of several realms in a row are answered, all of them in the next request`() throws {
    var (wire, register) = try sent(.register, Credentials(username: "u", password: "p"))
    let one = try #require(wire.receive(reply(register, 407, extra: [challenge("proxy", "a", proxy: true)])).first)
    #expect(realms(one) == ["proxy a 00000001"])
    let two = try #require(wire.receive(reply(one, 401, extra: [challenge("home", "b")])).first)
    #expect(realms(two) == ["proxy a 00000002", "home b 00000001"] && two.value(.cseq) == "7 REGISTER")
    wire.receive(reply(two, 200, extra: ["Expires: 60"]))
    #expect(outcome(&wire)?.code == 200)
  }

  @Test func `several realms in one response are answered together`() throws {
    var (wire, register) = try sent(.register, Credentials(username: "u", password: "p"))
    let both = [challenge("one", "a", proxy: true), challenge("two", "b", proxy: true)]
    let again = try #require(wire.receive(reply(register, 407, extra: both)).first)
    #expect(realms(again) == ["one a 00000001", "two b 00000001"])
  }

  @Test func `a new nonce without stale is worth one more try, and the realm that refuses again ends it`() throws {
    var (wire, register) = try sent(.register, Credentials(username: "u", password: "p"))
    let one = try #require(wire.receive(reply(register, 407, extra: [challenge("r", "a", proxy: true)])).first)
    let two = try #require(wire.receive(reply(one, 407, extra: [challenge("r", "b", proxy: true)])).first)
    #expect(realms(two) == ["r b 00000001"])
    let three = try #require(wire.receive(reply(two, 401, extra: [challenge("home", "c")])).first)
    #expect(realms(three) == ["r b 00000002", "home c 00000001"])
    #expect(wire.receive(reply(three, 407, extra: [challenge("r", "d", proxy: true)])).isEmpty)
    #expect(outcome(&wire)?.code == 407)
  }

  @Test func `one realm that refuses ends it, whoever else asks beside it`() throws {
    var (wire, register) = try sent(.register, Credentials(username: "u", password: "p"))
    let one = try #require(wire.receive(reply(register, 407, extra: [challenge("r", "a", proxy: true)])).first)
    let both = [challenge("r", "a", proxy: true), challenge("new", "b", proxy: true)]
    #expect(wire.receive(reply(one, 407, extra: both)).isEmpty)
  }

  @Test func `fifty challenges are no reason to go on asking`() throws {
    var (wire, register) = try sent(.register, Credentials(username: "u", password: "p"))
    #expect(wire.receive(reply(register, 401, extra: (0..<50).map { challenge("r\($0)", "n") })).isEmpty)
    #expect(outcome(&wire)?.code == 401)
    var (row, first) = try sent(.register, Credentials(username: "u", password: "p"))
    var (last, count) = (first, 0)
    while let next = row.receive(reply(last, 401, extra: [challenge("r\(count)", "n\(count)")])).first, count < 50 {
      (last, count) = (next, count + 1)
    }
    #expect(count == 4 && outcome(&row)?.code == 401)
  }

  // MARK: Service-Route

  @Test(
    arguments: [
      (
        ["Service-Route: <sip:orig@scscf.example;lr>, <sip:edge.example;lr>"],
        ["<sip:orig@scscf.example;lr>", "<sip:edge.example;lr>"]
      ),
      ([], []), (["Service-Route: <sip:\(String(repeating: "a", count: 8_000)).example;lr>"], nil),
      (["Service-Route: " + (0..<9).map { "<sip:h\($0);lr>" }.joined(separator: ", ")], nil),
      (["Service-Route: <http://x/>"], nil), (["Service-Route: <<"], nil),
    ] as [([String], [String]?)])
  func `the routes of a registrar are taken as they are written, within bounds`(fields: [String], routes: [String]?) throws {
    var (wire, register) = try sent(.register)
    #expect(register.value(.supported) == "path")
    wire.receive(reply(register, 200, extra: ["Expires: 300"] + fields))
    let told = outcome(&wire)
    #expect(told?.code == 200 && told?.serviceRoutes == routes)
  }

  @Test func `they stand behind the outbound proxy on all but REGISTER`() throws {
    var peer = TrunkPeer(name: "carrier", domain: "carrier.example", flow: udp)
    (peer.proxies, peer.serviceRoutes) = (["sip:proxy.example"], ["<sip:orig@scscf.example;lr>"])
    let expected = ["<sip:proxy.example;lr>", "<sip:orig@scscf.example;lr>"]
    func routes(_ message: Message) -> [String] { message.fields.filter { $0.name == .route }.map { message.text($0.value) } }
    var wire = Wire()
    let invite = OutboundInvite(trunk: peer, to: "+1", from: "+2", sdp: offer)
    #expect(routes(try #require(wire.command(.invite(Wire.out, invite)).first)) == expected)
    for (method, count) in [(Method.options, 2), (.register, 1)] {
      let request = OutboundRequest(
        trunk: peer, method: method, uri: "sip:carrier.example", to: "sip:carrier.example", callID: "c-\(method.name)")
      let message = try #require(wire.command(.request(RequestID(UInt64(count)), request)).first)
      #expect(routes(message) == Array(expected.prefix(count)))
    }
  }

  @Test(
    arguments: [
      ("<sip:orig@203.0.113.40:5070;lr>", "udp 203.0.113.40:5070"), ("<sip:203.0.113.40;lr>", "udp 203.0.113.40:5060"),
      ("<sip:203.0.113.40;transport=tcp;lr>", "tcp 203.0.113.40:5060"), ("<sip:scscf.example;lr>", "udp 203.0.113.7:5060"),
      ("<sip:198.51.100.9:5060;lr>", "udp 203.0.113.7:5060"), ("<sip:127.0.0.1:5070;lr>", "udp 203.0.113.7:5060"),
      ("<sip:[fe80::1];lr>", "udp 203.0.113.7:5060"), ("<sips:203.0.113.40;lr>", "udp 203.0.113.7:5060"),
      ("<sip:10.0.0.3;lr>", "udp 203.0.113.7:5060"),
    ])
  func `requests go to the first of the registrar's routes that is an address, and never to this machine`(
    route: String, expected: String
  ) throws {
    let own = OwnAddresses(addresses: [gatewayAddress.ip], ports: [5060])
    func first(_ proxies: [String], _ method: Method) -> String? {
      var peer = TrunkPeer(name: "carrier", domain: "carrier.example", flow: udp)
      (peer.proxies, peer.serviceRoutes) = (proxies, [route])
      var wire = Wire(own: own)
      if method == .invite {
        wire.command(.invite(Wire.out, OutboundInvite(trunk: peer, to: "+1", from: "+2", sdp: offer)))
      } else {
        wire.command(
          .request(
            id, OutboundRequest(trunk: peer, method: method, uri: "sip:carrier.example", to: "sip:carrier.example", callID: "c")))
      }
      return wire.output.messages.first.map { "\($0.flow.transport) \($0.flow.remote)" }
    }
    #expect(first([], .invite) == expected && first([], .options) == expected)
    let toServer = "udp 203.0.113.7:5060"
    #expect(first(["sip:proxy.example"], .invite) == toServer && first([], .register) == toServer)
  }

  @Test func `where the server and the route are the same, silence tries it once`() throws {
    var peer = TrunkPeer(name: "carrier", domain: "carrier.example", flow: udp)
    let second = Flow(transport: .udp, local: gatewayAddress, remote: SocketAddress("203.0.113.8:5060")!)
    (peer.serviceRoutes, peer.further) = (["<sip:203.0.113.40;lr>"], [TrunkTarget(second)])
    var wire = Wire()
    wire.command(.invite(Wire.out, OutboundInvite(trunk: peer, to: "+1", from: "+2", sdp: offer)))
    #expect(wire.agent.legs[Wire.out]?.value.servers.hasNext == false)
  }
}
