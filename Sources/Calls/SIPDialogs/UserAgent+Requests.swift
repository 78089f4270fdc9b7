import Bytes
import SIP

/// A request with what its handling needs, read once.
struct Request {
  let message: Message
  let envelope: Envelope
  let method: Method
  let flow: Flow
  let trunk: String
  let key: ServerKey
  let reply: Reply
}

extension UserAgent {
  /// A request from the network: RFC 3261 §8.2 and §9.2, in their order.
  mutating func received(request message: Message, _ flow: Flow, _ trunk: String) {
    guard let reply = Reply(message, source: flow) else { return counters.drop(.unreadable) }
    let method = message.method ?? .other
    let envelope: Envelope
    do throws(ParseError) {
      envelope = try message.checked()
    } catch {
      guard method != .ack else { return counters.drop(.strayAcknowledgement) }
      refuseStateless(
        reply, error.status == 505 ? .version : error.status == 416 ? .uriScheme : .malformed, trunk, code: error.status)
      return
    }
    let request = Request(
      message: message, envelope: envelope, method: method, flow: flow, trunk: trunk, key: serverKey(message, envelope, trunk),
      reply: reply)
    switch method {
    case .ack: return received(ack: request)
    case .cancel: return received(cancel: request)
    default: break
    }
    if let id = serverIndex[request.key] { return serverReceivedAgain(id, flow) }
    if let tag = envelope.to.tag {
      let dialog = DialogKey(callID: message.callID, localTag: message.text(tag))
      if let leg = dialogs[dialog] { return received(inDialog: request, leg) }
      return refuse(request, .noDialog, code: 481)
    }
    receivedOutside(request)
  }

  /// RFC 3261 §17.2.3. A branch without the magic cookie, or with nothing behind it, is of an RFC 2543 peer: the whole of what
  /// may not change stands in for it.
  private func serverKey(_ message: Message, _ envelope: Envelope, _ trunk: String) -> ServerKey {
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
    switch request.method {
    case .invite, .options: break
    case .bye: return refuse(request, .noDialog, code: 481)
    case .other: return refuse(request, .method, code: 501, fields: [(.allow, allowedMethods)])
    default: return refuse(request, .method, code: 405, fields: [(.allow, allowedMethods)])
    }
    if let unsupported = unsupportedOptions(request.message) {
      return refuse(request, .extensionRequired, code: 420, fields: [(.unsupported, unsupported)])
    }
    if request.method == .options { return answerOptions(request) }
    let called = request.envelope.requestURI.map { InboundInvite.Party(request.message, uri: $0, displayName: nil).number } ?? ""
    if isLoop(request.message, user: called) { return refuse(request, .loop, code: 482) }
    if merges[mergeKey(request)] != nil { return refuse(request, .merged, code: 482, reason: "Request Merged") }
    if request.envelope.maxForwards == 0 { return refuse(request, .tooManyHops, code: 483) }
    open(request)
  }

  /// A new call, after the last checks of the body.
  private mutating func open(_ request: Request) {
    if isDraining {
      return refuse(request, .draining, code: 503, fields: [(.retryAfter, String(configuration.retryAfterSeconds))])
    }
    guard legs.count < Limits.legs, servers.count < Limits.serverTransactions else {
      return refuseStateless(request.reply, .overload, request.trunk, code: 503)
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
    let invite = InboundInvite(request.message, request.envelope, trunk: request.trunk, flow: request.flow, sdp: sdp)
    let leg = openLeg(request, routes, isLateOffer: sdp == nil)
    emit(.inviteReceived(leg, invite))
  }

  private enum Offer {
    case sdp(String?)
    case refused
  }

  /// The offer of an INVITE; refuses what we can not read or answer.
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

  /// The options of Require that we lack, which is all of them; nil if there are none. A malformed list counts as it stands.
  func unsupportedOptions(_ message: Message) -> String? {
    guard let field = message.field(.require) else { return nil }
    guard let options = try? message.tokens(.require) else { return message.text(field.value) }
    return options.isEmpty ? nil : options.joined(separator: ", ")
  }

  func mergeKey(_ request: Request) -> MergeKey {
    MergeKey(
      callID: request.message.callID, fromTag: request.envelope.from.tag.map(request.message.text) ?? "",
      sequence: request.envelope.cseq.number)
  }

  /// OPTIONS outside a dialog says how we would answer an INVITE (RFC 3261 §11.2). Without state: it is cheap to answer again.
  private mutating func answerOptions(_ request: Request) {
    if isDraining {
      let retry = String(configuration.retryAfterSeconds)
      return respondStateless(request.reply, ResponseContent(code: 503, fields: [(.retryAfter, retry)]))
    }
    respondStateless(request.reply, ResponseContent(code: 200, fields: [(.allow, allowedMethods), (.accept, "application/sdp")]))
  }

  /// Refuses a request that no leg exists for. An INVITE goes through its transaction, so that retransmissions count once.
  mutating func refuse(
    _ request: Request, _ reason: RefusalReason, code: Int, reason phrase: String? = nil, fields: [(HeaderName, String)] = []
  ) {
    guard request.method == .invite, servers.count < Limits.serverTransactions else {
      return refuseStateless(request.reply, reason, request.trunk, code: code, fields: fields)
    }
    note(reason, isInvite: true, request.trunk)
    let id = beginServer(request.key, .invite, request.reply)
    respond(id, ResponseContent(code: code, reason: phrase, tag: newTag(), fields: fields))
  }

  private mutating func refuseStateless(
    _ reply: Reply, _ reason: RefusalReason, _ trunk: String, code: Int, fields: [(HeaderName, String)] = []
  ) {
    note(reason, isInvite: reply.message.method == .invite, trunk)
    var fields = fields
    if reason == .overload { fields.append((.retryAfter, String(configuration.retryAfterSeconds))) }
    respondStateless(reply, ResponseContent(code: code, fields: fields))
  }

  private mutating func note(_ reason: RefusalReason, isInvite: Bool, _ trunk: String) {
    counters.refused[reason, default: 0] += 1
    emit(.refused(reason, isInvite: isInvite, trunk: trunk))
  }
}
