import TrunklineSIP

/// Our credentials toward the peer of a leg: what its challenges were answered with (RFC 3261 §22.2).
///
/// | input | with credentials | without |
/// |---|---|---|
/// | `accept`: the INVITE was challenged | true if another try is useful | false |
/// | `answer`: another request was challenged | true: each request has one try for each realm | false |
/// | `authorizations` | for each realm that has challenged | none |
/// | `restart`: the next server is tried | no realm has challenged | – |
struct DialogAuthentication {
  private let credentials: Credentials?
  private var digest: DigestClient?

  init(_ credentials: Credentials? = nil) { self.credentials = credentials }

  var hasCredentials: Bool { credentials != nil }

  mutating func accept(_ challenges: [DigestClient.Challenge]) -> Bool {
    guard let credentials else { return false }
    var next = digest ?? DigestClient(credentials)
    let isUseful = next.accept(challenges)
    digest = next
    return isUseful
  }

  mutating func answer(_ challenges: [DigestClient.Challenge]) -> Bool {
    guard let credentials else { return false }
    var next = digest ?? DigestClient(credentials)
    next.answer(challenges)
    digest = next
    return true
  }

  mutating func authorizations(method: Method, uri: String, cnonce: String) -> [(HeaderName, String)] {
    digest?.authorizations(method: method, uri: uri, cnonce: cnonce) ?? []
  }

  mutating func restart() { digest = nil }
}
