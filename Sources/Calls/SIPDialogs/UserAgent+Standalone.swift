import TrunklineBytes
import TrunklineSIP

/// REGISTER and OPTIONS of our own: a transaction, and an answer to each realm's challenge (RFC 3261 §22.2, §22.3).
extension UserAgent {
  mutating func startRequest(_ id: RequestID, _ request: OutboundRequest) {
    guard !standalones.has(id) else { return }
    guard !standalones.isFull else {
      return step.emit(.requestAnswered(id, RequestOutcome(code: 503, sequence: request.sequence)))
    }
    var request = request
    if request.method != .register { request.trunk = byServiceRoute(request.trunk) }
    standalones.begin(id, request, tag: identifiers.newTag())
    sendStandalone(id)
  }

  private mutating func sendStandalone(_ id: RequestID) {
    let branch = identifiers.newBranch()
    guard let next = standalones.nextTry(id, cnonce: identifiers.newTag()) else { return }
    let request = next.request
    let (flow, trunk) = (request.trunk.flow, request.trunk.name)
    var writer = MessageWriter(method: request.method.name, uri: request.uri)
    writer.field(.via, via(flow, branch: branch, trunk))
    for proxy in request.trunk.proxies { writer.field(.route, "<\(proxy);lr>") }
    if request.method != .register { for route in request.trunk.serviceRoutes { writer.field(.route, route) } }
    writer.field(.maxForwards, "70")
    let from = request.from ?? "sip:\(rules(trunk).contactUser)@\(hostPort(flow, trunk))"
    writer.field(.from, "<\(from)>;tag=\(next.tag)")
    writer.field(.to, "<\(request.to)>")
    writer.field(.callID, request.callID)
    writer.field(.cseq, "\(next.sequence) \(request.method.name)")
    let own = contact(flow, trunk, user: request.contactUser)
    standalones.wasSent(id, contact: own)
    writer.field(.contact, request.removedContact.map { $0 + ";expires=0" } ?? own)
    if let expires = request.expires { writer.field(.expires, String(expires)) }
    for (name, value) in next.authorizations { writer.field(name, value) }
    // proxies may add themselves to the path of requests to our Contact (RFC 3327 §5.1)
    if request.method == .register { writer.field(.supported, "path") }
    if request.method == .options { writer.field(.accept, "application/sdp") }
    writer.field(.allow, rules(trunk).methods)
    for field in rules(trunk).extraFields { writer.field(named: field.name, field.value) }
    writer.field(.userAgent, configuration.product)
    let started = beginClient(
      .standalone(id), method: request.method, branch: branch, leg: nil, trunk: trunk, over: flow, bytes: writer.finish())
    if started == nil { standaloneFailed(id, code: 503, byTransport: false) }
  }

  mutating func standaloneFailed(_ id: RequestID, code: Int, byTransport: Bool, peer: PeerFailure? = nil) {
    guard let outcome = standalones.failed(id, code: code, byTransport: byTransport, peer: peer) else { return }
    step.emit(.requestAnswered(id, outcome))
  }

  mutating func standaloneFinished(_ id: RequestID, code: Int, _ message: Message) {
    guard let request = standalones.request(id) else { return }
    if code == 401 || code == 407, request.trunk.credentials != nil,
      standalones.challenged(id, challenges(in: message, of: request.trunk.name))
    {
      return sendStandalone(id)
    }
    guard let outcome = standalones.answered(id, code: code, message) else { return }
    step.emit(.requestAnswered(id, outcome))
  }
}
