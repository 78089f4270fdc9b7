import Testing
import TrunklineBytes
import TrunklineSIP

@testable import TrunklineSIPDialogs

/// Which senders are trusted, and which get our password: each header and each challenge from each kind of sender.
@Suite struct TrustMatrixTests {
  // MARK: headers with an identity

  /// A header, and whether it is trusted from a trunk with `trust_identity`.
  static let claims: [(header: String, isKnown: Bool)] = [
    ("P-Asserted-Identity: \"Boss\" <sip:+1666@x>", true), ("P-Asserted-Identity: <tel:+1666>", true),
    ("p-asserted-identity : <sip:+1666@x>,\r\n <tel:+1666>", true), ("P-Preferred-Identity: <sip:+1666@x>", false),
    ("Remote-Party-ID: \"Boss\" <sip:+1666@x>;party=calling;screen=yes;privacy=off", false),
    ("Diversion: <sip:+1666@x>;reason=user-busy", true),
    ("History-Info: <sip:+1666@x>;index=1, <sip:+1777@x;cause=302>;index=1.1", true),
    ("CC-Diversion: <sip:+1666@x>", false), ("P-Called-Party-ID: <sip:+1666@x>", false), ("P-Charge-Info: <sip:+1666@x>", false),
    ("Referred-By: <sip:+1666@x>", false), ("Reply-To: <sip:+1666@x>", false),
  ]

  @Test(arguments: claims.indices, [false, true]) func `who calls is told by From, unless the trunk is trusted`(
    index: Int, isTrusted: Bool
  ) throws {
    let (header, isKnown) = Self.claims[index]
    let (wire, _, invite) = try Wire.ringing(rules: TrunkRules(trustsIdentity: isTrusted), extra: [header])
    #expect(invite.from.number == "+15557654321", "From is From, whoever says what")
    let told = ([invite.assertedIdentity?.number].compactMap(\.self) + invite.divertedFrom.map(\.number)).contains("+1666")
    #expect(told == (isTrusted && isKnown), "\(header)")
    _ = wire
  }

  @Test func `a guest is trusted no more than the trunk it came by, and the password does not make it so`() throws {
    var rules = TrunkRules()
    rules.peerCredentials = Credentials(username: "pbx", password: "secret")
    var wire = Wire()
    wire.input(.rules(["carrier": rules]))
    let sent = wire.receive(request("INVITE", extra: Self.claims.map(\.header), sdp: offer))
    #expect(sent.map(\.statusCode) == [401] && wire.events().allSatisfy { $0.name.hasPrefix("refused") })
  }

  @Test(arguments: [false, true]) func `a withheld number stays withheld, trusted or not`(isTrusted: Bool) throws {
    for value in ["id", "user", "header;id", "ID ; critical"] {
      let (_, _, invite) = try Wire.ringing(
        rules: TrunkRules(trustsIdentity: isTrusted), extra: ["Privacy: \(value)", "P-Asserted-Identity: <sip:+1666@x>"])
      #expect(invite.isPrivate, "\(value)")
    }
  }

  // MARK: challenges

  /// Our requests that may be challenged.
  enum Ours: String, CaseIterable, Sendable { case invite, register, options, bye, info, reinvite, update, refer }
  /// The sender of the challenge.
  enum From: String, CaseIterable, Sendable {
    /// The address that was asked, as the trunk that was asked.
    case asked
    /// The same host, which is the same peer: from another port, over another transport, under another trunk's name.
    case otherPort, otherTransport, otherName
    /// Another server of the same trunk, and another trunk.
    case otherServer, otherTrunk
    /// The asked address, with another branch or a method that was not ours.
    case otherBranch, otherMethod

    var isAsked: Bool { [.asked, .otherPort, .otherTransport, .otherName].contains(self) }
  }
  private static let challenge = [
    "WWW-Authenticate: Digest realm=\"carrier\", nonce=\"n\", algorithm=SHA-256, qop=\"auth\"",
    "Proxy-Authenticate: Digest realm=\"carrier\", nonce=\"n\", algorithm=MD5",
  ]

  @Test(arguments: Ours.allCases, From.allCases) func `a challenge from any host but the one we asked gets no credentials`(
    what: Ours, sender: From
  ) throws {
    var (wire, asked) = try sent(what)
    for code in [401, 407] {
      var text = reply(asked, code, extra: Self.challenge)
      var flow = udp
      switch sender {
      case .asked, .otherName: break
      case .otherServer, .otherTrunk: flow.remote = SocketAddress("203.0.113.99:5060")!
      case .otherPort: flow.remote.port = 5070
      case .otherTransport: flow = tcp
      case .otherBranch: text = text.replacing(asked.branch ?? "", with: "z9hG4bKnot-ours")
      case .otherMethod: text = text.replacing(" \(asked.method?.name ?? "")\r\n", with: " MESSAGE\r\n")
      }
      let isOther = sender == .otherName || sender == .otherTrunk
      let answered = wire.receive(text, on: flow, trunk: isOther ? "other" : "carrier")
      let told = answered.filter { $0.field(.authorization) != nil || $0.field(.proxyAuthorization) != nil }
      #expect(told.isEmpty == !sender.isAsked, "\(code): \(answered.map(\.method))")
      #expect(
        wire.output.messages.allSatisfy { $0.flow == udp }, "they go where the request went, wherever the challenge came from")
      if sender.isAsked {
        #expect(told.map(\.method) == [asked.method] && told.allSatisfy { $0.value(.authorization)?.contains("secret") != true })
        break  // a second one is another matter: once
      }
    }
    // nor later: a retransmission equals the request sent before
    let later = wire.advance(.seconds(3)).map(\.message)
    if !sender.isAsked {
      #expect(later.allSatisfy { $0.field(.authorization) == nil && $0.field(.proxyAuthorization) == nil })
    }
  }

  /// Our request that waits for its response, on a trunk with a password.
  private func sent(_ what: Ours) throws -> (Wire, Message) {
    let credentials = Credentials(username: "u", password: "secret")
    let peer = TrunkPeer(name: "carrier", domain: "carrier.example", flow: udp, credentials: credentials)
    if what == .register || what == .options {
      var wire = Wire()
      let method: Method = what == .register ? .register : .options
      let request = OutboundRequest(
        trunk: peer, method: method, uri: "sip:carrier.example", from: "sip:u@carrier.example", to: "sip:u@carrier.example",
        callID: "own", sequence: 1, contactUser: "u", expires: what == .register ? 60 : nil)
      let first = try #require(wire.command(.request(RequestID(1), request)).first)
      return (wire, first)
    }
    if what == .invite { return try Wire.calling(credentials: credentials) }
    let rules = TrunkRules(allowsTransfer: true)
    let extra = what == .update ? ["Session-Expires: 90;refresher=uac", "Allow: UPDATE"] : []
    var (wire, _) = try Wire.answered(rules: rules, extra: extra, credentials: credentials)
    let messages: [Message]
    switch what {
    case .bye: messages = wire.command(.bye(Wire.out, nil))
    case .info: messages = wire.command(.sendDigit(Wire.out, "5", milliseconds: 160))
    case .reinvite: messages = wire.command(.offer(Wire.out, sdp: offer))
    case .refer: messages = wire.command(.refer(Wire.out, to: "sip:+1900@carrier.example", replaces: nil))
    default: messages = wire.advance(.seconds(46)).map(\.message)
    }
    return (wire, try #require(messages.first))
  }

  // MARK: where requests in a dialog go

  @Test(arguments: [
    "127.0.0.1", "127.9.9.9:22", "169.254.169.254:80", "224.0.0.1", "239.255.255.250:1900", "[::1]:5060", "[fe80::1]",
    "[ff02::1]",
    "[::ffff:127.0.0.1]", "0.0.0.0", "255.255.255.255",
  ])
  func `a Contact or Record-Route sends our requests neither to this machine nor to its link`(host: String) throws {
    for header in ["Contact: <sip:x@\(host)>", "Record-Route: <sip:\(host);lr>", "Record-Route: <sip:\(host);transport=tcp>"] {
      let contact = header.hasPrefix("Contact") ? [] : ["Contact: <sip:c@203.0.113.7>"]
      var (wire, invite) = try Wire.calling()
      wire.receive(reply(invite, 200, extra: contact + [header], sdp: answer))
      for command in [UserAgent.Command.ping(Wire.out), .bye(Wire.out, nil)] {
        wire.command(command)
        #expect(wire.output.messages.allSatisfy { $0.flow.remote.ip == carrierAddress.ip }, "\(header)")
        #expect(!wire.output.messages.isEmpty)
      }
    }
  }

  /// 198.51.100.9 has the listeners, 198.51.100.10 and 192.168.7.1 are further addresses of the same machine.
  static let own = OwnAddresses(
    addresses: [gatewayAddress.ip, IPAddress(198, 51, 100, 10), IPAddress(192, 168, 7, 1)], ports: [5_060, 5_061, 8_080, 9_090])

  /// An incoming call whose caller names an address for our requests; returns where our BYE goes.
  private func bye(toward header: String, from peer: SocketAddress) throws -> SocketAddress? {
    var wire = Wire(own: Self.own)
    wire.flow = Flow(transport: .udp, local: gatewayAddress, remote: peer)
    let isContact = header.hasPrefix("Contact")
    let text = request("INVITE", extra: isContact ? [] : [header], sdp: offer)
    wire.receive(isContact ? text.replacing("Contact: <sip:bob@203.0.113.7:5060>", with: header) : text)
    let leg = try #require(wire.events().compactMap(\.leg).first)
    let ok = try #require(wire.command(.answer(leg, sdp: answer)).first)
    let tag = try #require(try ok.to?.tag.map(ok.text))
    wire.receive(request("ACK", branch: "z9hG4bKack", toTag: tag))
    #expect(wire.command(.bye(leg, nil)).map(\.method) == [.bye])
    return wire.output.messages.first?.flow.remote
  }

  @Test(arguments: [
    "198.51.100.9", "198.51.100.9:8080", "198.51.100.10:5061", "192.168.7.1:22", "192.168.7.1", "[::ffff:198.51.100.9]:9090",
  ])
  func `a peer elsewhere cannot make us send requests to our own addresses`(host: String) throws {
    for header in ["Contact: <sip:x@\(host)>", "Contact: <sip:x@\(host);transport=tcp>", "Record-Route: <sip:\(host);lr>"] {
      #expect(try bye(toward: header, from: carrierAddress) == carrierAddress, "\(header)")
    }
  }

  @Test(arguments: ["198.51.100.9", "198.51.100.10:9090", "127.0.0.1:8080", "127.0.0.1:5060", "0.0.0.0:5061"])
  func `nobody makes us send requests to our own listeners, not even a peer on this machine`(host: String) throws {
    for peer in [SocketAddress(.loopback, 5_070), SocketAddress(IPAddress(198, 51, 100, 10), 5_070)] {
      #expect(try bye(toward: "Contact: <sip:x@\(host)>", from: peer) == peer)
      #expect(try bye(toward: "Record-Route: <sip:\(host);lr>", from: peer) == peer)
    }
  }

  @Test func `a peer on this machine is found at its own port, as a proxy beside us is`() throws {
    let peer = SocketAddress(IPAddress(198, 51, 100, 10), 5_070)
    let proxy = SocketAddress(IPAddress(198, 51, 100, 9), 5_080)
    #expect(try bye(toward: "Record-Route: <sip:\(proxy);lr>", from: peer) == proxy)
    #expect(try bye(toward: "Contact: <sip:x@127.0.0.1:5080>", from: .init(.loopback, 5_070)) == .init(.loopback, 5_080))
    #expect(try bye(toward: "Contact: <sip:x@203.0.113.99:5080>", from: carrierAddress)?.port == 5_080, "others go anywhere")
  }
}
