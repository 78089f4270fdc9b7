import TrunklineBytes
import TrunklineSIP

/// A request outside any dialog that waits for its outcome.
struct Standalone {
  var request: OutboundRequest
  var sequence: UInt32
  let tag: String
  var digest: DigestClient?
  /// Our Contact as it was sent.
  var contact = ""
}

/// REGISTER and OPTIONS of our own: a transaction, and an answer to each realm's challenge (RFC 3261 §22.2, §22.3).
extension UserAgent {
  mutating func startRequest(_ id: RequestID, _ request: OutboundRequest) {
    guard standalones[id] == nil else { return }
    guard standalones.count < Limits.standaloneRequests else {
      return emit(.requestAnswered(id, RequestOutcome(code: 503, sequence: request.sequence)))
    }
    var request = request
    if request.method != .register { request.trunk = byServiceRoute(request.trunk) }
    standalones[id] = Standalone(request: request, sequence: request.sequence, tag: newTag())
    sendStandalone(id)
  }

  private mutating func sendStandalone(_ id: RequestID) {
    guard let entry = standalones[id] else { return }
    let request = entry.request
    let (flow, trunk) = (request.trunk.flow, request.trunk.name)
    let branch = newBranch(for: "")
    let cnonce = newTag()
    let authorizations = standalones[id]?.digest?.authorizations(method: request.method, uri: request.uri, cnonce: cnonce) ?? []
    var writer = MessageWriter(method: request.method.name, uri: request.uri)
    writer.field(.via, via(flow, branch: branch, trunk))
    for proxy in request.trunk.proxies { writer.field(.route, "<\(proxy);lr>") }
    if request.method != .register { for route in request.trunk.serviceRoutes { writer.field(.route, route) } }
    writer.field(.maxForwards, "70")
    let from = request.from ?? "sip:\(rules(trunk).contactUser)@\(hostPort(flow, trunk))"
    writer.field(.from, "<\(from)>;tag=\(entry.tag)")
    writer.field(.to, "<\(request.to)>")
    writer.field(.callID, request.callID)
    writer.field(.cseq, "\(entry.sequence) \(request.method.name)")
    let own = contact(flow, trunk, user: request.contactUser)
    standalones[id]?.contact = own
    writer.field(.contact, request.removedContact.map { $0 + ";expires=0" } ?? own)
    if let expires = request.expires { writer.field(.expires, String(expires)) }
    for (name, value) in authorizations { writer.field(name, value) }
    // proxies may add themselves to the path of requests to our Contact (RFC 3327 §5.1)
    if request.method == .register { writer.field(.supported, "path") }
    if request.method == .options { writer.field(.accept, "application/sdp") }
    writer.field(.allow, rules(trunk).methods)
    for field in rules(trunk).extraFields { writer.field(named: field.name, field.value) }
    writer.field(.userAgent, configuration.product)
    let started = beginClient(
      .standalone(id), request.method, branch: branch, leg: nil, trunk: trunk, flow, writer.finish())
    if started == nil { standaloneFailed(id, code: 503, byTransport: false) }
  }

  mutating func standaloneFailed(_ id: RequestID, code: Int, byTransport: Bool, peer: PeerFailure? = nil) {
    guard let entry = standalones.removeValue(forKey: id) else { return }
    var outcome = RequestOutcome(code: code, sequence: entry.sequence)
    (outcome.byTransport, outcome.peer) = (byTransport, peer)
    outcome.contact = entry.contact.isEmpty || entry.request.method != .register ? nil : entry.contact
    emit(.requestAnswered(id, outcome))
  }

  mutating func standaloneFinished(_ id: RequestID, _ client: ClientTransaction, _ code: Int, _ message: Message) {
    guard let entry = standalones[id] else { return }
    if code == 401 || code == 407, acceptChallenge(id, message) {
      standalones[id]?.sequence += 1
      return sendStandalone(id)
    }
    standalones[id] = nil
    var outcome = RequestOutcome(code: code, sequence: entry.sequence)
    outcome.isResponse = true
    outcome.retryAfter = message.retryAfterSeconds
    outcome.minimumExpires = message.minimumExpiresSeconds
    if entry.request.method == .register {
      if (200..<300).contains(code) {
        outcome.expires = granted(message, entry.contact)
        outcome.serviceRoutes = message.serviceRouteSet
      }
      outcome.contact = entry.contact
    }
    emit(.requestAnswered(id, outcome))
  }

  private mutating func acceptChallenge(_ id: RequestID, _ message: Message) -> Bool {
    guard let entry = standalones[id], let credentials = entry.request.trunk.credentials else { return false }
    let challenges = challenges(in: message, of: entry.request.trunk.name)
    var digest = entry.digest ?? DigestClient(credentials)
    let isWorthIt = digest.accept(challenges)
    standalones[id]?.digest = digest
    return isWorthIt
  }

  /// The `expires` of our own Contact among those the registrar lists (RFC 3261 §10.2.4), else the header's.
  private func granted(_ message: Message, _ own: String) -> Int? {
    let wanted = uriText(own).split(separator: ";").first.map(String.init) ?? ""
    let contacts = (try? message.contacts) ?? []
    let mine = contacts.first { message.text($0.uri.whole).hasPrefix(wanted) } ?? (contacts.count == 1 ? contacts.first : nil)
    if let mine, let value = message.parameter("expires", of: mine) { return Int(message.text(value)) ?? message.expiresSeconds }
    return message.expiresSeconds
  }
}

extension Message {
  /// Service-Route values as written (RFC 3608 §5); empty without any, nil if they are malformed or exceed the limits.
  fileprivate var serviceRouteSet: [String]? {
    guard let routes = try? serviceRoutes, routes.count <= Limits.serviceRoutes else { return nil }
    let texts = routes.map { text($0.whole) }
    let isAcceptable = routes.allSatisfy { $0.uri.scheme == .sip || $0.uri.scheme == .sips }
    return isAcceptable && texts.reduce(0, { $0 + $1.utf8.count }) <= Limits.serviceRouteBytes ? texts : nil
  }
}
