import Testing
import TrunklineBytes
import TrunklineSIP

@testable import TrunklineSIPDialogs

/// What is not the same with every carrier: where it reaches us, where it writes the number, how it knows us.
@Suite struct CarrierHabitTests {
  private func advertised(_ text: String, local: [String] = []) throws -> AdvertisedAddresses {
    AdvertisedAddresses(
      [.init(.udp, try #require(SocketAddress("0.0.0.0:5060")), as: try #require(AdvertisedHost(text)))],
      localNetworks: LocalNetworks(local.compactMap { IPNetwork($0) }))
  }

  private func invite(_ rules: TrunkRules = TrunkRules(), _ advertised: AdvertisedAddresses = AdvertisedAddresses()) throws
    -> Message
  {
    var wire = Wire(advertised: advertised)
    wire.input(.rules(["carrier": rules]))
    let trunk = TrunkPeer(name: "carrier", domain: "carrier.example", flow: udp)
    let call = OutboundInvite(
      trunk: trunk, to: "+15559990001", from: "+15551230001", assertedIdentity: "+15551230001", sdp: offer)
    return try #require(wire.command(.invite(.outbound(1), call)).first)
  }

  @Test(arguments: [
    ("203.0.113.5", "203.0.113.5:5060"), ("sip.example.com", "sip.example.com:5060"), ("203.0.113.5:6060", "203.0.113.5:6060"),
  ]) func `Via and Contact say what is advertised`(host: String, said: String) throws {
    let invite = try invite(TrunkRules(), advertised(host))
    #expect(invite.value(.via)?.hasPrefix("SIP/2.0/UDP \(said);branch=") == true)
    #expect(invite.value(.contact) == "<sip:trunkline@\(said)>")
  }

  @Test func `a peer in a local network is told our own address, and a trunk what it says itself`() throws {
    let local = try invite(TrunkRules(), advertised("203.0.113.5", local: ["203.0.113.0/24"]))
    #expect(local.value(.contact) == "<sip:trunkline@198.51.100.9:5060>")
    var rules = TrunkRules()
    rules.advertised = AdvertisedHost("vpn.example.com:5070")
    let own = try invite(rules, advertised("203.0.113.5", local: ["203.0.113.0/24"]))
    #expect(own.value(.contact) == "<sip:trunkline@vpn.example.com:5070>")
  }

  @Test func `responses, REGISTER and OPTIONS say it too`() throws {
    var wire = Wire(advertised: try advertised("203.0.113.5"))
    var rules = TrunkRules()
    rules.contactUser = "gw"
    wire.input(.rules(["carrier": rules]))
    wire.receive(request("INVITE", sdp: offer))
    let leg = try #require(wire.events().compactMap { if case .inviteReceived(let leg, _) = $0 { leg } else { nil } }.first)
    let ringing = try #require(wire.command(.respondProvisional(leg, code: 180, reason: nil, sdp: nil)).first)
    #expect(ringing.value(.contact) == "<sip:gw@203.0.113.5:5060>")
    let probe = OutboundRequest(
      trunk: TrunkPeer(name: "carrier", domain: "carrier.example", flow: udp), method: .options, uri: "sip:carrier.example",
      to: "sip:carrier.example", callID: "c")
    let options = try #require(wire.command(.request(RequestID(1), probe)).first)
    #expect(options.value(.from)?.hasPrefix("<sip:gw@203.0.113.5:5060>;tag=") == true)
    #expect(options.value(.contact) == "<sip:gw@203.0.113.5:5060>")
  }

  @Test(
    arguments: [
      // Request-URI user, To user, P-Called-Party-ID, the rule, what counts
      ("+15551230001", "+15551230009", nil, nil, "+15551230001"), ("gw", "+15551230009", nil, nil, "+15551230009"),
      ("", "+15551230009", nil, nil, "+15551230009"), ("gw", "gw", nil, nil, "gw"),
      ("gw", "anything", "+15551230007", [.pCalledPartyID, .to], "+15551230007"),
      ("gw", "+15551230009", nil, [.pCalledPartyID, .to], "+15551230009"),
      ("+15551230001", "+15551230009", nil, [.to], "+15551230009"), ("+15551230001", "gw", nil, [.to], "+15551230001"),
    ] as [(String, String, String?, [TrunkRules.CalledNumber]?, String)])
  func `the called number is where the carrier writes it`(
    uri: String, to: String, called: String?, sources: [TrunkRules.CalledNumber]?, number: String
  ) throws {
    var (wire, rules) = (Wire(), TrunkRules())
    rules.contactUser = "gw"
    if let sources { rules.called = sources }
    wire.input(.rules(["carrier": rules]))
    let user = uri.isEmpty ? "" : uri + "@"
    let text = request(
      "INVITE", uri: "sip:\(user)198.51.100.9", extra: called.map { ["P-Called-Party-ID: <sip:\($0)@carrier.example>"] } ?? [],
      sdp: offer)
    wire.receive(text.replacing("To: <sip:+15551230001@", with: "To: <sip:\(to)@"))
    let invite = wire.events().compactMap { if case .inviteReceived(_, let invite) = $0 { invite } else { nil } }.first
    #expect(invite?.to.number == number)
  }

  @Test func `From is the account that the carrier wants, and the number stands beside it`() throws {
    var rules = TrunkRules()
    (rules.fromUser, rules.fromDomain) = ("account-7", "voip.example")
    let invite = try invite(rules)
    #expect(invite.value(.from)?.hasPrefix("<sip:account-7@voip.example>;tag=") == true)
    #expect(invite.value(.pPreferredIdentity) == "<sip:+15551230001@voip.example>")
  }

  @Test(
    arguments: [
      // as ever
      (.auto, nil, nil, false, "", "P-Preferred-Identity: \"Ann\" <sip:+15551230001@carrier.example>"),
      // CLIP no screening: another number is shown than that of the line
      (.auto, "+15550000000", nil, false, "", "P-Preferred-Identity: <sip:+15550000000@carrier.example>"),
      (.asserted, nil, nil, false, "", "P-Asserted-Identity: \"Ann\" <sip:+15551230001@carrier.example>"),
      (.preferred, nil, "account", false, "", "P-Preferred-Identity: \"Ann\" <sip:+15551230001@carrier.example>"),
      (
        .remotePartyID, nil, nil, false, "",
        "Remote-Party-ID: \"Ann\" <sip:+15551230001@carrier.example>;party=calling;privacy=off"
      ),
      (.remotePartyID, "+1", nil, true, "", "Remote-Party-ID: <sip:+1@carrier.example>;party=calling;privacy=full"),
      (.none, "+1", nil, false, "", nil),
      // diverted: another's number is shown, and the name is his
      (.auto, nil, nil, false, "+4930111", "P-Preferred-Identity: <sip:+15551230001@carrier.example>"),
      // … where an account stands in From
      (.auto, nil, "account", false, "+4930111", "P-Preferred-Identity: \"Ann\" <sip:+4930111@carrier.example>"),
      (.auto, nil, "account", true, "+4930111", "P-Preferred-Identity: <sip:+15551230001@carrier.example>"),
    ] as [(TrunkRules.IdentityHeader, String?, String?, Bool, String, String?)])
  func `the field beside From says who calls, as the trunk wants it`(
    header: TrunkRules.IdentityHeader, user: String?, account: String?, isPrivate: Bool, from: String, field: String?
  ) throws {
    var rules = TrunkRules()
    (rules.identityHeader, rules.identityUser, rules.fromUser) = (header, user, account)
    var wire = Wire()
    wire.input(.rules(["carrier": rules]))
    let invite = OutboundInvite(
      trunk: TrunkPeer(name: "carrier", domain: "carrier.example", flow: udp), to: "+15559990001",
      from: from.isEmpty ? "+15551230001" : from, displayName: "Ann", isPrivate: isPrivate, assertedIdentity: "+15551230001",
      sdp: offer)
    let sent = try #require(wire.command(.invite(.outbound(1), invite)).first)
    let lines = String(decoding: sent.bytes, as: UTF8.self).split(separator: "\r\n").filter {
      $0.hasPrefix("P-") || $0.hasPrefix("Remote-Party-ID")
    }
    #expect(lines.map(String.init) == (field.map { [$0] } ?? []))
  }

  @Test func `an outbound proxy is the route of what goes to the carrier`() throws {
    var wire = Wire()
    var trunk = TrunkPeer(name: "carrier", domain: "carrier.example", flow: udp)
    trunk.proxies = ["sip:proxy.carrier.example;transport=tcp"]
    let call = OutboundInvite(trunk: trunk, to: "+15559990001", from: "+15551230001", sdp: offer)
    let invite = try #require(wire.command(.invite(.outbound(1), call)).first)
    #expect(invite.value(.route) == "<sip:proxy.carrier.example;transport=tcp;lr>")
    #expect(invite.uri == "sip:+15559990001@carrier.example")
  }

  @Test func `two accounts at one carrier are told apart by the contact that is called`() throws {
    var (wire, first, second) = (Wire(), TrunkRules(), TrunkRules())
    (first.contactUser, second.contactUser, second.peersKnownAs) = ("one", "two", "carrier")
    wire.input(.rules(["carrier": first, "carrier-2": second]))
    func trunk(_ contact: String, _ callID: String) -> String? {
      wire.receive(request("INVITE", uri: "sip:\(contact)@198.51.100.9", branch: "z9hG4bK" + callID, callID: callID, sdp: offer))
      return wire.events().compactMap { if case .inviteReceived(_, let invite) = $0 { invite.trunk } else { nil } }.first
    }
    #expect(trunk("one", "a") == "carrier" && trunk("two", "b") == "carrier-2" && trunk("+1", "c") == "carrier")
  }

  @Test func `a call of the second account is found again by requests from another of the carrier's addresses`() throws {
    var (wire, second) = (Wire(), TrunkRules())
    (second.contactUser, second.peersKnownAs) = ("two", "carrier")
    wire.input(.rules(["carrier": TrunkRules(), "carrier-2": second]))
    let peer = TrunkPeer(name: "carrier-2", domain: "carrier.example", flow: udp)
    let invite = try #require(
      wire.command(.invite(.outbound(1), OutboundInvite(trunk: peer, to: "+1", from: "+2", sdp: offer))).first)
    let other = Flow(transport: .udp, local: gatewayAddress, remote: try #require(SocketAddress("203.0.113.8:5060")))
    wire.receive(reply(invite, 180), on: other)
    #expect(wire.events().contains { if case .progress = $0 { true } else { false } })
  }

  // MARK: what a carrier wants to see in our requests

  @Test(arguments: [("+15559990000", true), ("5559990000", true), ("*31#", true), ("sales", false), ("+", false), ("", false)])
  func `user=phone stands behind telephone numbers, where the trunk wants it`(number: String, isPhone: Bool) throws {
    for marks in [true, false] {
      var rules = TrunkRules()
      rules.marksPhones = marks
      var wire = Wire()
      wire.input(.rules(["carrier": rules]))
      let peer = TrunkPeer(name: "carrier", domain: "carrier.example", flow: tcp)
      let sent = try #require(
        wire.command(.invite(Wire.out, OutboundInvite(trunk: peer, to: number, from: number, sdp: offer))).first)
      let mark = marks && isPhone ? ";user=phone" : ""
      let user = number.replacing("#", with: "%23")
      #expect(sent.uri == "sip:\(user)@carrier.example;transport=tcp\(mark)")
      #expect(sent.value(.to) == "<sip:\(user)@carrier.example\(mark)>")
      #expect(sent.value(.from)?.hasPrefix("<sip:\(user)@carrier.example\(mark)>") == true)
    }
  }

  @Test func `a withheld number and an account are no telephone numbers`() throws {
    var rules = TrunkRules()
    (rules.marksPhones, rules.fromUser) = (true, "1234567t0")
    var wire = Wire()
    wire.input(.rules(["carrier": rules]))
    let peer = TrunkPeer(name: "carrier", domain: "carrier.example", flow: udp)
    func from(_ isPrivate: Bool, _ leg: LegID) throws -> String? {
      let invite = OutboundInvite(trunk: peer, to: "+1", from: "+2", isPrivate: isPrivate, sdp: offer)
      return try #require(wire.command(.invite(leg, invite)).first).value(.from)
    }
    #expect(try from(false, .outbound(1))?.hasPrefix("<sip:1234567t0@carrier.example>") == true)
    #expect(try from(true, .outbound(2))?.contains("user=phone") == false)
  }

  @Test func `fixed header fields stand in INVITE, REGISTER and OPTIONS, and not inside dialogs`() throws {
    var rules = TrunkRules()
    rules.extraFields = ["X-Tenant: 7", "P-Access-Network-Info:IEEE-802.3"].compactMap { .init($0) }
    func fields(_ message: Message) -> [String] {
      message.fields.filter { $0.name == .other }.map { message.text($0.value) }.filter { ["7", "IEEE-802.3"].contains($0) }
    }
    var (wire, invite) = try Wire.calling(rules: rules)
    #expect(fields(invite) == ["7", "IEEE-802.3"])
    wire.receive(reply(invite, 200, extra: ["Contact: <sip:c@203.0.113.7>"], sdp: answer))
    #expect(fields(try #require(wire.command(.bye(Wire.out, nil)).first)) == [])
    let peer = TrunkPeer(name: "carrier", domain: "carrier.example", flow: udp)
    for (index, method) in [Method.register, .options].enumerated() {
      let request = OutboundRequest(trunk: peer, method: method, uri: "sip:carrier.example", to: "sip:a@b", callID: "c\(index)")
      #expect(fields(try #require(wire.command(.request(RequestID(UInt64(index)), request)).first)) == ["7", "IEEE-802.3"])
    }
  }

  @Test(arguments: [
    "Via: SIP/2.0/UDP x", "v: x", "CONTACT: <sip:a@b>", "Authorization: Digest", "Route: <sip:a>", "X A: 1", "X-A", "X-A:", ": 1",
    "X-A: 1\r\nX-B: 2", "X-A: 1\nBye: 2", "X-Ä: 1", "X-A: \u{0}", "X-A: " + String(repeating: "a", count: 512),
  ])
  func `what is no header field, or one that is ours to write, is no fixed field`(text: String) {
    #expect(TrunkRules.ExtraField(text) == nil)
  }
}
