import TrunklineBytes
import TrunklineSIP

extension UserAgent {
  /// Our Via on a flow toward a trunk.
  func via(_ flow: Flow, branch: String, _ trunk: String) -> String {
    "SIP/2.0/\(flow.transport.viaName) \(hostPort(flow, trunk));branch=\(branch);rport"
  }

  /// Our Contact on a flow toward a trunk.
  func contact(_ flow: Flow, _ trunk: String, user: String? = nil) -> String {
    "<sip:\(percentEncodedUser(user ?? rules(trunk).contactUser))@\(hostPort(flow, trunk))\(flow.transport.uriParameter)>"
  }

  /// The address where the trunk's peers reach us.
  func hostPort(_ flow: Flow, _ trunk: String) -> String {
    configuration.advertised.hostPort(flow, trunk: rules(trunk).advertised)
  }

  /// A request inside a dialog, with strict routers as in RFC 3261 §12.2.1.1.
  func request(
    _ method: Method, in dialog: Dialog, sequence: UInt32, branch: String, base: Flow,
    _ content: RequestContent = RequestContent(), trunk: String = ""
  ) -> (bytes: [UInt8], flow: Flow) {
    var uri = dialog.remoteTarget
    var routes = dialog.routeSet
    if let first = routes.first, !isLoose(first) {
      routes.removeFirst()
      routes.append("<\(uri)>")
      uri = uriText(first)
    }
    let reach = PeerReach(
      rule: rules(trunk).contactRewriting, isTranslated: dialog.isTranslated ?? false,
      followsConnection: dialog.followsConnection ?? false, localNetworks: configuration.advertised.localNetworks)
    let flow = nextHop(target: dialog.remoteTarget, routes: dialog.routeSet, base: base, own: configuration.own, reach: reach)
    var writer = MessageWriter(method: method.name, uri: uri)
    writer.field(.via, via(flow, branch: branch, trunk))
    for route in routes { writer.field(.route, route) }
    writer.field(.maxForwards, "70")
    writer.field(.from, dialog.localParty)
    writer.field(.to, dialog.remoteParty)
    writer.field(.callID, dialog.callID)
    writer.field(.cseq, "\(sequence) \(method.name)")
    if content.refreshesTarget {
      writer.field(.contact, contact(flow, trunk))
      writer.field(.allow, rules(trunk).methods)
      let options = rules(trunk).options
      if !options.isEmpty { writer.field(.supported, options.joined(separator: ", ")) }
    }
    for (name, value) in content.fields { writer.field(name, value) }
    writer.field(.userAgent, configuration.product)
    return (writer.finish(body: content.body, contentType: content.contentType), flow)
  }

  /// The first INVITE of a leg (RFC 3261 §8.1.1, §13.2.1).
  func inviteBytes(_ leg: Leg, _ invite: OutboundInvite, branch: String, authorizations: [(HeaderName, String)]) -> [UInt8] {
    var writer = MessageWriter(method: "INVITE", uri: leg.dialog.remoteTarget)
    writer.field(.via, via(leg.flow, branch: branch, leg.trunk))
    for proxy in invite.trunk.proxies { writer.field(.route, "<\(proxy);lr>") }
    for route in invite.trunk.serviceRoutes { writer.field(.route, route) }
    writer.field(.maxForwards, String(min(max(invite.maxForwards, 0), 255)))
    writer.field(.from, leg.dialog.localParty)
    writer.field(.to, leg.dialog.remoteParty)
    writer.field(.callID, leg.dialog.callID)
    writer.field(.cseq, "\(leg.inviteSequence) INVITE")
    writer.field(.contact, contact(leg.flow, leg.trunk))
    let rules = rules(leg.trunk)
    writer.field(.allow, rules.methods)
    // An INVITE without offer would require an answer in a PRACK; we avoid that by offering no 100rel.
    let reliability = invite.sdp == nil ? .off : rules.reliability
    let options = rules.options.filter { $0 != "100rel" || reliability == .supported }
    if !options.isEmpty { writer.field(.supported, options.joined(separator: ", ")) }
    if reliability == .required { writer.field(.require, "100rel") }
    if let timer = rules.sessionTimer {
      let minimum = max(timer.minimumSeconds, leg.session.minimum)
      writer.field(.sessionExpires, String(max(timer.seconds, minimum)))
      writer.field(.minSE, String(minimum))
    }
    for (name, value) in authorizations { writer.field(name, value) }
    writeIdentity(invite, rules, &writer)
    if invite.isPrivate { writer.field(.privacy, "id") }
    for field in rules.extraFields { writer.field(named: field.name, field.value) }
    for name in rules.parameters {
      let value = invite.parameters.first { $0.key.lowercased() == name.lowercased() }?.value
      if let value { writer.field(named: name, value) }
    }
    for (name, value) in invite.extraHeaders.prefix(Limits.extraHeaders) { writer.field(named: name, value) }
    writer.field(.userAgent, configuration.product)
    guard let location = invite.location, let sdp = invite.sdp else { return writer.finish(body: invite.sdp) }
    return Self.finish(writer, sdp: sdp, location: location, branch: branch, callID: leg.dialog.callID)
  }

  /// RFC 3325 §9.1, §9.2: asserted inside the trust domain; outside, it is our preferred identity. If From contains an account,
  /// this field contains the number that the callee sees, also another party's whose call is diverted.
  private func writeIdentity(_ invite: OutboundInvite, _ rules: TrunkRules, _ writer: inout MessageWriter) {
    guard var identity = invite.assertedIdentity else { return }
    if rules.fromUser != nil, !invite.isPrivate { identity = invite.from }
    identity = rules.identityUser ?? identity
    // The name belongs to the party that From shows.
    let name = identity == invite.from ? invite.displayName.map { quotedString($0) + " " } ?? "" : ""
    let address = "\(name)<\(party(identity, at: rules.fromDomain ?? invite.trunk.domain, invite.trunk.name))>"
    switch rules.identityHeader {
    case .auto: writer.field(rules.trustsIdentity ? .pAssertedIdentity : .pPreferredIdentity, address)
    case .asserted: writer.field(.pAssertedIdentity, address)
    case .preferred: writer.field(.pPreferredIdentity, address)
    case .remotePartyID:
      writer.field(named: "Remote-Party-ID", "\(address);party=calling;privacy=\(invite.isPrivate ? "full" : "off")")
    case .none: break
    }
  }

  /// A location by value (RFC 6442 §3.2, §4.1; RFC 5621): it may be used to route the call.
  private static func finish(
    _ writer: consuming MessageWriter, sdp: String, location: String, branch: String, callID: String
  ) -> [UInt8] {
    var writer = writer
    // A branch is random: a text that an app prepared cannot contain it.
    let boundary = "part-" + branch.filter { $0.isASCII && ($0.isLetter || $0.isNumber) }
    let name = "location." + callID.filter { $0.isASCII && ($0.isLetter || $0.isNumber) }.prefix(40) + "@trunkline.invalid"
    writer.field(named: "Geolocation", "<cid:\(name)>")
    writer.field(named: "Geolocation-Routing", "yes")
    let body =
      "--\(boundary)\r\nContent-Type: application/sdp\r\n\r\n\(sdp)\r\n--\(boundary)\r\nContent-Type: application/pidf+xml\r\n"
      + "Content-ID: <\(name)>\r\n\r\n\(location)\r\n--\(boundary)--\r\n"
    return writer.finish(body: body, contentType: "multipart/mixed;boundary=\(boundary)")
  }

  /// From of an outbound leg.
  func fromParty(_ invite: OutboundInvite, tag: String) -> String {
    if invite.isPrivate { return "\"Anonymous\" <sip:anonymous@anonymous.invalid>;tag=\(tag)" }
    let name = invite.displayName.map { quotedString($0) + " " } ?? ""
    let rules = rules(invite.trunk.name)
    let uri = party(rules.fromUser ?? invite.from, at: rules.fromDomain ?? invite.trunk.domain, invite.trunk.name)
    return "\(name)<\(uri)>;tag=\(tag)"
  }

  /// The ACK of a non-2xx: the INVITE's own Via, Route and CSeq number, To from the response (RFC 3261 §17.1.1.3).
  func acknowledgement(of client: ClientTransaction, _ response: Message) -> [UInt8] {
    derived(.ack, from: client, to: response)
  }

  /// The CANCEL of an INVITE (RFC 3261 §9.1).
  func cancellation(of client: ClientTransaction, _ reason: ReasonValue?) -> [UInt8] {
    derived(.cancel, from: client, to: nil, fields: reason.map { [(.reason, $0.description)] } ?? [])
  }

  private func derived(
    _ method: Method, from client: ClientTransaction, to response: Message?, fields: [(HeaderName, String)] = []
  ) -> [UInt8] {
    // Our own INVITE can be parsed; if not, there would be nothing to acknowledge.
    guard let invite = try? Message(client.request), case .request(_, _, let uri) = invite.startLine else { return [] }
    var writer = MessageWriter(method: method.name, uri: invite.text(uri))
    writer.copy(.via, of: invite)
    writer.copy(.route, of: invite)
    writer.field(.maxForwards, "70")
    writer.copy(.from, of: invite)
    if let response, let to = response.field(.to) { writer.copy(to, of: response) } else { writer.copy(.to, of: invite) }
    writer.copy(.callID, of: invite)
    let number = (try? invite.cseq)?.number ?? 1
    writer.field(.cseq, "\(number) \(method.name)")
    for (name, value) in fields { writer.field(name, value) }
    writer.field(.userAgent, configuration.product)
    return writer.finish()
  }
}
