import TrunklineBytes
import TrunklineSIP

/// Requests of ours outside any dialog (REGISTER, OPTIONS) that wait for their outcome (RFC 3261 §8.1, §10, §11).
///
/// | state | `begin` | 401, 407 | other final response | no response |
/// |---|---|---|---|---|
/// | unknown | waiting; the table is full: refused | – | – | – |
/// | waiting | ignored: the ID is in use | sent again with the next CSeq, if the credentials are new to a realm; else an outcome | outcome, unknown | outcome, unknown |
struct StandaloneRequests {
  /// What one try is written from.
  struct Try {
    let request: OutboundRequest
    let sequence: UInt32
    let tag: String
    let authorizations: [(HeaderName, String)]
  }

  private struct Waiting {
    let request: OutboundRequest
    var sequence: UInt32
    let tag: String
    var digest: DigestClient?
    /// Our Contact as it was sent.
    var contact = ""
  }

  private var waiting: [RequestID: Waiting] = [:]

  var isFull: Bool { waiting.count >= Limits.standaloneRequests }
  func has(_ id: RequestID) -> Bool { waiting[id] != nil }
  func request(_ id: RequestID) -> OutboundRequest? { waiting[id]?.request }

  mutating func begin(_ id: RequestID, _ request: OutboundRequest, tag: String) {
    guard waiting[id] == nil, !isFull else { return }
    waiting[id] = Waiting(request: request, sequence: request.sequence, tag: tag)
  }

  /// The next message of the request: with credentials once it was challenged.
  mutating func nextTry(_ id: RequestID, cnonce: String) -> Try? {
    guard let entry = waiting[id] else { return nil }
    let authorizations =
      waiting[id]?.digest?.authorizations(method: entry.request.method, uri: entry.request.uri, cnonce: cnonce) ?? []
    return Try(request: entry.request, sequence: entry.sequence, tag: entry.tag, authorizations: authorizations)
  }

  /// The Contact that a try was sent with.
  mutating func wasSent(_ id: RequestID, contact: String) { waiting[id]?.contact = contact }

  /// Whether another try is useful: the trunk has credentials, and each realm has tries left.
  mutating func challenged(_ id: RequestID, _ challenges: [DigestClient.Challenge]) -> Bool {
    guard let entry = waiting[id], let credentials = entry.request.trunk.credentials else { return false }
    var digest = entry.digest ?? DigestClient(credentials)
    let isUseful = digest.accept(challenges)
    waiting[id]?.digest = digest
    if isUseful { waiting[id]?.sequence += 1 }
    return isUseful
  }

  /// No response, or no message: the outcome; nil if the request was over.
  mutating func failed(_ id: RequestID, code: Int, byTransport: Bool, peer: UserAgent.PeerFailure? = nil) -> RequestOutcome? {
    guard let entry = waiting.removeValue(forKey: id) else { return nil }
    var outcome = RequestOutcome(code: code, sequence: entry.sequence)
    outcome.byTransport = byTransport
    outcome.peer = peer
    outcome.contact = entry.contact.isEmpty || entry.request.method != .register ? nil : entry.contact
    return outcome
  }

  /// The final response: the outcome; nil if the request was over.
  mutating func answered(_ id: RequestID, code: Int, _ message: Message) -> RequestOutcome? {
    guard let entry = waiting.removeValue(forKey: id) else { return nil }
    var outcome = RequestOutcome(code: code, sequence: entry.sequence)
    outcome.isResponse = true
    outcome.retryAfter = message.retryAfterSeconds
    outcome.minimumExpires = message.minimumExpiresSeconds
    if entry.request.method == .register {
      if (200..<300).contains(code) {
        outcome.expires = Self.granted(message, entry.contact)
        outcome.serviceRoutes = message.serviceRouteSet
      }
      outcome.contact = entry.contact
    }
    return outcome
  }

  /// The `expires` of our own Contact among those the registrar lists (RFC 3261 §10.2.4), else the header's.
  private static func granted(_ message: Message, _ own: String) -> Int? {
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
