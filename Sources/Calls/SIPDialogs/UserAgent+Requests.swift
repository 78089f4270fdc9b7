import TrunklineBytes
import TrunklineSIP

/// A request with the values that its handling needs, read once.
struct Request {
  let message: Message
  let envelope: Envelope
  let method: Method
  let flow: Flow
  /// By the source address; for a new call the account that it is for.
  var trunk: String
  let key: ServerKey
  let reply: Reply

  /// Empty for RFC 2543 peers.
  var fromTag: String { envelope.from.tag.map(message.text) ?? "" }
  var isFromEdge: Bool { key.trunk == Edge.peer }
  /// Its Via names another address than its source.
  var isTranslated: Bool {
    let host = message.text(envelope.via.host).filter { $0 != "[" && $0 != "]" }
    return IPAddress(host).map { $0.unmapped != flow.remote.ip.unmapped } ?? false
  }
}

extension UserAgent {
  /// A request from the network: RFC 3261 §8.2 and §9.2, in their order.
  mutating func received(request message: Message, _ flow: Flow, _ peer: String) {
    let trunk = sender(of: message, from: peer)
    guard let reply = Reply(message, source: flow, trunk: trunk) else { return step.counters.drop(.unreadable) }
    let method = message.method ?? .other
    let envelope: Envelope
    do throws(ParseError) {
      envelope = try message.checked()
    } catch {
      guard method != .ack else { return step.counters.drop(.strayAcknowledgement) }
      guard rules(trunk).peerCredentials == nil else { return step.counters.drop(.challengeLimit) }
      refuseStateless(
        reply, error.status == 505 ? .version : error.status == 416 ? .uriScheme : .malformed, on: trunk, code: error.status)
      return
    }
    var request = Request(
      message: message, envelope: envelope, method: method, flow: flow, trunk: trunk, key: serverKey(message, envelope, on: peer),
      reply: reply)
    switch method {
    case .ack: return received(ack: request)
    case .cancel: return received(cancel: request)
    default: break
    }
    if let id = servers.transaction(of: request.key) { return servers.receivedAgain(id, from: flow, &step) }
    // An edge passes requests of a dialog, and two edges may alternate.
    if rules(trunk).peerCredentials != nil, !request.isFromEdge || envelope.to.tag == nil {
      guard let admitted = admit(guest: request) else { return }
      request.trunk = admitted
    }
    if let tag = envelope.to.tag {
      let dialog = DialogKey(callID: message.callID, localTag: message.text(tag))
      if let leg = legs.id(of: dialog) { return received(inDialog: request, leg) }
      return refuse(request, .noDialog, code: 481)
    }
    if let uri = envelope.requestURI { request.trunk = trunks.accounts.trunk(of: request.trunk, called: message.text(uri.user)) }
    receivedOutside(request)
  }

  /// RFC 3261 §17.2.3. A branch without the magic cookie, or with nothing after it, is from an RFC 2543 peer: all the fields that
  /// may not change replace it.
  func serverKey(_ message: Message, _ envelope: Envelope, on trunk: String) -> ServerKey {
    let branch = envelope.via.branch.map(message.text) ?? ""
    var sentBy = message.text(envelope.via.host).lowercased()
    if let port = envelope.via.port { sentBy += ":\(port)" }
    let method = envelope.cseq.method == .ack || envelope.cseq.method == .cancel ? "INVITE" : message.methodName
    if branch.hasPrefix(magicCookie), branch.utf8.count > magicCookie.utf8.count {
      return ServerKey(trunk: trunk, branch: branch, sentBy: sentBy, method: method)
    }
    let from = envelope.from.tag.map(message.text) ?? ""
    let uri = envelope.requestURI.map { message.text($0.whole) } ?? ""
    let legacy = "\(message.callID) \(from) \(envelope.cseq.number) \(uri) \(message.text(envelope.via.whole))"
    return ServerKey(trunk: trunk, branch: legacy, sentBy: sentBy, method: method)
  }

  /// A request outside any dialog (RFC 3261 §8.2).
  private mutating func receivedOutside(_ request: Request) {
    if request.isFromEdge {
      edges.received(request.flow, isQuestion: request.method == .options, at: step.now)
      if request.method == .invite, edges.isStale(request.flow, at: step.now) { return refuse(request, .stale, code: 503) }
    }
    if request.method == .invite, let overload, !replacesCall(request) {
      return refuseStateless(request.reply, overload, on: request.trunk, code: 503)
    }
    if !request.isFromEdge, request.message.field(.trunklineTrunk) != nil { step.counters.foreignTrunkNames += 1 }
    switch request.method {
    case .invite where request.trunk == Edge.peer: return refuseUnnamed(request)
    case .invite, .options: break
    case .bye, .prack, .update, .info, .notify: return refuse(request, .noDialog, code: 481)
    case .other: return refuse(request, .method, code: 501, fields: [(.allow, rules(request.trunk).methods)])
    default: return refuse(request, .method, code: 405, fields: [(.allow, rules(request.trunk).methods)])
    }
    if let unsupported = unsupportedOptions(request.message, request.trunk) {
      return refuse(request, .extensionRequired, code: 420, fields: [(.unsupported, unsupported)])
    }
    if request.method == .options { return answerOptions(request) }
    let called = request.envelope.requestURI.map { InboundInvite.Party(request.message, uri: $0, displayName: nil).number } ?? ""
    if identifiers.isLoop(request.message, user: called) { return refuse(request, .loop, code: 482) }
    if servers.isMerged(mergeKey(request)) { return refuse(request, .merged, code: 482, reason: "Request Merged") }
    if request.envelope.maxForwards == 0 { return refuse(request, .tooManyHops, code: 483) }
    open(request)
  }

  /// An INVITE that replaces an active call is no new load.
  private func replacesCall(_ request: Request) -> Bool {
    rules(request.trunk).allowsTransfer && request.message.field(.replaces) != nil
  }

  /// A new call, after the last checks of the body.
  private mutating func open(_ request: Request) {
    if isDraining {
      return refuse(request, .draining, code: 503, fields: [(.retryAfter, String(configuration.retryAfterSeconds))])
    }
    guard legs.hasRoom, servers.hasRoom else {
      return refuseStateless(request.reply, .overload, on: request.trunk, code: 503)
    }
    let sdp: String?
    switch offer(of: request) {
    case .refused: return
    case .sdp(let text): sdp = text
    }
    let routes: [String]
    do throws(ParseError) { routes = try request.message.recordRouteSet } catch {
      return refuse(request, .malformed, code: error.status)
    }
    let (reliability, session, replaces): (TrunkRules.Reliability, SessionAgreement, LegID?)
    do throws(Refused) {
      reliability = try self.reliability(request)
      session = try agreement(request.message, replacing: nil, on: request.trunk)
      replaces = try replaced(request)
    } catch {
      let reason: RefusalReason =
        switch error.content.code {
        case 421: .extensionRequired
        case 422: .sessionInterval
        default: .replaces
        }
      return refuse(request, reason, code: error.content.code, fields: error.content.fields)
    }
    var invite = InboundInvite(
      request.message, request.envelope, trunk: request.trunk, flow: request.flow, sdp: sdp,
      rules(request.trunk))
    invite.isReliable = reliability == .required
    invite.replaces = replaces
    invite.isFromEdge = request.isFromEdge
    let leg = openLeg(request, routes: routes, isLateOffer: sdp == nil, reliability: reliability, session: session)
    step.emit(.inviteReceived(leg, invite))
  }

  /// How our provisional responses are sent (RFC 3262 §3). Throws 421 if the trunk requires 100rel and the INVITE lacks it.
  private func reliability(_ request: Request) throws(Refused) -> TrunkRules.Reliability {
    let rule = rules(request.trunk).reliability
    if request.message.lists("100rel", in: .require) { return .required }
    let supports = request.message.lists("100rel", in: .supported)
    if rule == .required, !supports { throw Refused(421, [(.require, "100rel")]) }
    return supports ? rule : .off
  }

  /// The leg that Replaces names (RFC 3891 §3); nil without the header, or if transfers are not allowed. Throws the status of §3
  /// for a dialog that does not exist, has ended, or is already answered.
  private func replaced(_ request: Request) throws(Refused) -> LegID? {
    guard rules(request.trunk).allowsTransfer else { return nil }
    let value: Replaces?
    do { value = try request.message.replaces } catch { throw Refused(400) }
    guard let value else { return nil }
    guard let leg = legs.leg(of: DialogKey(callID: value.callID, localTag: value.toTag)),
      trunks.accounts.mayBeOne(leg.trunk, request.trunk), leg.dialog.remoteTag == value.fromTag
    else { throw Refused(481) }
    switch leg.phase {
    // The 2xx confirms a dialog (RFC 3261 §12), and this request may have overtaken the ACK; the BYE waits for the ACK.
    case .answered, .confirmed:
      if value.isEarlyOnly { throw Refused(486) }
      return leg.id
    case .ending: throw Refused(603)
    case .ringing, .calling: throw Refused(481)
    }
  }

  private enum Offer {
    case sdp(String?)
    case refused
  }

  /// The offer of an INVITE; refuses one that we cannot read or answer.
  private mutating func offer(of request: Request) -> Offer {
    do throws(ParseError) {
      guard try request.message.accepts("application/sdp") else {
        refuse(request, .notAcceptable, code: 406)
        return .refused
      }
      let encoding = request.message.field(.contentEncoding).map { request.message.text($0.value).lowercased() }
      if let encoding, encoding != "identity" {
        refuse(request, .mediaType, code: 415, fields: [(.accept, "application/sdp"), (HeaderName.contentEncoding, "identity")])
        return .refused
      }
      switch try request.message.sessionBody {
      case .none: return .sdp(nil)
      case .sdp(let text): return .sdp(text)
      case .other:
        refuse(request, .mediaType, code: 415, fields: [(.accept, "application/sdp")])
        return .refused
      }
    } catch {
      refuse(request, .malformed, code: error.status)
      return .refused
    }
  }

  /// The options of Require that we lack; nil if there are none. A malformed list counts as a whole.
  func unsupportedOptions(_ message: Message, _ trunk: String) -> String? {
    guard let field = message.field(.require) else { return nil }
    guard let options = try? message.tokens(.require) else { return message.text(field.value) }
    let known = rules(trunk).options
    let unknown = options.filter { !known.contains($0.lowercased()) }
    return unknown.isEmpty ? nil : unknown.joined(separator: ", ")
  }

  func mergeKey(_ request: Request) -> MergeKey {
    MergeKey(
      callID: request.message.callID, fromTag: request.fromTag,
      sequence: request.envelope.cseq.number,
      called: InboundInvite.called(request.message, request.envelope, rules(request.trunk)).number)
  }

  /// The answer to OPTIONS outside a dialog is that to an INVITE (RFC 3261 §11.2). Without state: it is cheap to answer again.
  private mutating func answerOptions(_ request: Request) {
    if isDraining {
      let retry = String(configuration.retryAfterSeconds)
      return respondStateless(request.reply, ResponseContent(code: 503, fields: [(.retryAfter, retry)]))
    }
    respondStateless(request.reply, ResponseContent(code: 200, fields: capabilities(request.trunk)))
  }

  /// The capabilities in an answer to OPTIONS (RFC 3261 §11.2).
  func capabilities(_ trunk: String) -> [(HeaderName, String)] {
    let rules = rules(trunk)
    var fields: [(HeaderName, String)] = [(.allow, rules.methods), (.accept, "application/sdp")]
    if !rules.options.isEmpty { fields.append((.supported, rules.options.joined(separator: ", "))) }
    return fields
  }

  /// Refuses a request that has no leg. An INVITE goes through its transaction, so that retransmissions count once.
  mutating func refuse(
    _ request: Request, _ reason: RefusalReason, code: Int, reason phrase: String? = nil, fields: [(HeaderName, String)] = []
  ) {
    guard request.method == .invite, servers.hasRoom else {
      return refuseStateless(request.reply, reason, on: request.trunk, code: code, fields: fields)
    }
    noteRefusal(reason, request.message, on: request.trunk)
    let id = beginServer(request.key, method: .invite, reply: request.reply)
    respond(id, ResponseContent(code: code, reason: phrase, tag: identifiers.newTag(), fields: fields))
  }

  private mutating func refuseStateless(
    _ reply: Reply, _ reason: RefusalReason, on trunk: String, code: Int, fields: [(HeaderName, String)] = []
  ) {
    noteRefusal(reason, reply.message, on: trunk)
    var fields = fields
    if reason.isOverload { fields.append((.retryAfter, String(configuration.retryAfterSeconds))) }
    respondStateless(reply, ResponseContent(code: code, fields: fields))
  }

  mutating func noteRefusal(_ reason: RefusalReason, _ message: Message, on trunk: String) {
    step.counters.refused[reason, default: 0] += 1
    step.emit(.refused(reason, invite: message.method == .invite ? RefusedInvite(message, reason) : nil, trunk: trunk))
  }
}
