import TrunklineBytes
import TrunklineSIP

/// REFER (RFC 3515, RFC 3892), both roles. One at a time on a leg; only where the trunk's rules allow transfers.
extension UserAgent {
  mutating func receivedRefer(_ request: Request, _ leg: Leg) {
    let message = request.message
    guard leg.phase == .confirmed else { return respondOnce(request, ResponseContent(code: leg.phase == .ending ? 481 : 491)) }
    guard !leg.refers.isBusy else { return respondOnce(request, ResponseContent(code: 491)) }
    if let unsupported = unsupportedOptions(message, request.trunk) {
      return respondOnce(request, ResponseContent(code: 420, fields: [(.unsupported, unsupported)]))
    }
    guard let target = (try? message.referTo) ?? nil, target.uri.whole.count <= Limits.referBytes else {
      return respondOnce(request, ResponseContent(code: 400, reason: "Refer-To"))
    }
    guard target.uri.scheme != .other else { return respondOnce(request, ResponseContent(code: 416)) }
    var replaces: Replaces?
    if let value = message.uriHeader("replaces", of: target.uri) {
      guard let read = Replaces(value) else { return respondOnce(request, ResponseContent(code: 400, reason: "Replaces")) }
      replaces = read
    }
    let transaction = beginServer(request.key, method: .refer, reply: request.reply, leg: leg.id)
    legs[leg.id]?.value.refers.receive(transaction, sequence: request.envelope.cseq.number)
    let whole = message.text(target.uri.whole)
    var referral = Referral(
      target: InboundInvite.Party(message, uri: target.uri, displayName: message.displayName(of: target)),
      uri: String(whole.prefix { $0 != "?" }), replaces: replaces,
      referredBy: message.field(.referredBy).map { message.text($0.value) })
    let parameters = message.text(target.uri.parameters).lowercased().split(separator: ";")
    referral.isOpaque =
      (target.uri.scheme == .sip || target.uri.scheme == .sips)
      && (target.uri.user.isEmpty || parameters.contains { $0.hasPrefix("x-") })
    step.emit(.referReceived(leg.id, referral))
  }

  mutating func acceptRefer(_ id: LegID) {
    guard let transaction = legs[id]?.value.refers.unanswered, let reply = servers.reply(transaction) else { return }
    legs[id]?.value.refers.accept()
    respond(transaction, ResponseContent(code: 202, fields: [(.contact, contact(reply.flow, reply.trunk))]))
    notifyRefer(id, 100)
  }

  mutating func refuseRefer(_ id: LegID, _ code: Int) {
    guard let transaction = legs[id]?.value.refers.unanswered, (300..<700).contains(code) else { return }
    respond(transaction, ResponseContent(code: code))
    legs[id]?.value.refers.refuse()
  }

  /// A NOTIFY with the status line of the referred call (RFC 3515 §2.4.5).
  mutating func notifyRefer(_ id: LegID, _ code: Int) {
    guard legs[id]?.value.phase == .confirmed, let event = legs[id]?.value.refers.notify(code) else { return }
    let state = code < 200 ? "active;expires=60" : "terminated;reason=noresource"
    sendInDialog(
      .notify, .notify, on: id,
      RequestContent(
        fields: [(.event, "refer;id=\(event)"), (.subscriptionState, state)],
        body: "SIP/2.0 \(code) \(reasonPhrase(code))\r\n", contentType: "message/sipfrag;version=2.0", refreshesTarget: true))
  }

  // MARK: our REFER

  mutating func refer(_ id: LegID, to: String, replacing replaces: Replaces?) {
    guard let leg = legs[id]?.value, leg.phase == .confirmed else { return }
    guard to.utf8.count <= Limits.referBytes, legs[id]?.value.refers.begin(sequence: leg.dialog.localSequence + 1) == true else {
      return step.emit(.referAnswered(id, code: 491))
    }
    let header = replaces.map { "?Replaces=" + percentEncodedHeader($0.text) } ?? ""
    sendInDialog(
      .refer, .refer, on: id,
      RequestContent(
        fields: [(.referTo, "<\(to)\(header)>"), (.referredBy, "<\(uriText(leg.dialog.localParty))>")], refreshesTarget: true))
  }

  /// From the view of the other leg's far end: its own tag is our remote one (RFC 3891 §4).
  mutating func refer(_ id: LegID, toLeg other: LegID) {
    guard let leg = legs[id]?.value, leg.phase == .confirmed else { return }
    guard let peer = legs[other]?.value, leg.trunk == peer.trunk, peer.phase == .confirmed, !peer.dialog.remoteTag.isEmpty else {
      return step.emit(.referAnswered(id, code: 481))
    }
    let replaces = Replaces(callID: peer.dialog.callID, toTag: peer.dialog.remoteTag, fromTag: peer.dialog.localTag)
    refer(id, to: peer.dialog.remoteTarget, replacing: replaces)
  }

  mutating func referAccepted(_ id: LegID, _ code: Int) {
    legs[id]?.value.refers.accepted(of: id, &step)
    step.emit(.referAnswered(id, code: code))
  }

  /// The receiver has been silent for too long: the outcome of the referred call is unknown. A later NOTIFY gets 481, which ends
  /// the subscription there, too.
  mutating func referTimedOut(_ id: LegID) {
    guard let leg = legs[id]?.value, leg.refers.isOpen else { return }
    legs[id]?.value.refers.end(of: id, &step)
    if leg.phase == .confirmed { step.emit(.referProgress(id, code: nil, isFinal: true)) }
  }

  mutating func referRefused(_ id: LegID, _ code: Int) {
    legs[id]?.value.refers.end(of: id, &step)
    step.emit(.referAnswered(id, code: code))
  }

  /// NOTIFY of our REFER; any other has no subscription (RFC 6665 §4.1.3).
  mutating func receivedNotify(_ request: Request, _ leg: Leg) {
    let message = request.message
    guard leg.refers.isOpen, leg.phase == .confirmed || leg.phase == .ending else {
      return respondOnce(request, ResponseContent(code: 481))
    }
    guard message.eventPackage == "refer" else {
      return respondOnce(request, ResponseContent(code: 489, reason: "Bad Event", fields: [(.allowEvents, "refer")]))
    }
    guard leg.refers.isOurs(message.eventID) else { return respondOnce(request, ResponseContent(code: 481)) }
    respondOnce(request, ResponseContent(code: 200))
    let code = message.referredStatus
    let isOver = message.subscriptionState == "terminated" || (code ?? 100) >= 200
    legs[leg.id]?.value.refers.notified(isOver: isOver, of: leg.id, &step)
    if leg.phase == .confirmed { step.emit(.referProgress(leg.id, code: code, isFinal: isOver)) }
  }
}

extension Message {
  /// The status of a `message/sipfrag` body (RFC 3420, RFC 3515 §2.4.5); nil if it has none.
  fileprivate var referredStatus: Int? {
    guard let type = try? contentType, type.mediaType == "message/sipfrag" else { return nil }
    let words = text(body).prefix(Limits.smallBodyBytes).split(maxSplits: 2, whereSeparator: \.isWhitespace)
    guard words.count > 1, words[0].uppercased() == "SIP/2.0", words[1].utf8.count == 3, let code = UInt16(words[1]),
      (100..<700).contains(code)
    else { return nil }
    return Int(code)
  }
}

/// A header value inside a URI: all but letters, digits and a few marks is escaped (RFC 3261 §19.1.1).
func percentEncodedHeader(_ text: String) -> String {
  text.utf8.reduce(into: "") { out, byte in
    let isPlain =
      (48...57).contains(byte) || (65...90).contains(byte) || (97...122).contains(byte) || "-_.!~*'()".utf8.contains(byte)
    out += isPlain ? String(UnicodeScalar(byte)) : "%" + hexString([byte]).uppercased()
  }
}
