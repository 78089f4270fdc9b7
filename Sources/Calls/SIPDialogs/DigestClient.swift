import CTrunklineOpenSSL
import TrunklineBytes
import TrunklineSIP

/// The client side of digest access authentication (RFC 3261 §22.4, RFC 7616, RFC 8760): MD5 and SHA-256, qop `auth` or none.
struct DigestClient {
  enum Algorithm: Equatable { case md5, sha256 }

  /// A challenge that we can answer.
  struct Challenge: Equatable {
    var realm: String
    var nonce: String
    var opaque: String?
    var algorithm: Algorithm
    /// As the server wrote it; nil if absent.
    var algorithmName: String?
    var hasQop: Bool
    var isStale: Bool
    var isProxy: Bool

    var key: Realm { Realm(name: realm, isProxy: isProxy) }
  }

  /// A proxy and a user agent server may share the name of a realm: each has its own header.
  struct Realm: Hashable {
    var name: String
    var isProxy: Bool
  }

  private struct Answer {
    var challenge: Challenge
    var nonceCount: UInt32 = 0
    /// The realm has had another try, for a nonce marked stale, or for a new one without that mark.
    var wasStale = false
    var wasRefused = false
  }

  let credentials: Credentials
  /// By realm, in the order of the challenges.
  private var answers: [Answer] = []

  init(_ credentials: Credentials) { self.credentials = credentials }

  var realms: Set<Realm> { Set(answers.map(\.challenge.key)) }

  /// Stores the challenges of one response, one per realm (RFC 3261 §22.3). True if another try is useful: a realm is new, and
  /// none refuses the credentials it got. A stale nonce justifies one more try (RFC 7616 §3.3), and so does a new one: servers
  /// behind one name do not share their nonces.
  mutating func accept(_ challenges: [Challenge]) -> Bool {
    guard !challenges.isEmpty else { return false }
    var next = answers
    for challenge in challenges {
      guard let index = next.firstIndex(where: { $0.challenge.key == challenge.key }) else {
        guard next.count < Limits.answeredRealms else { return false }
        next.append(Answer(challenge: challenge))
        continue
      }
      guard challenge.nonce != next[index].challenge.nonce, challenge.isStale ? !next[index].wasStale : !next[index].wasRefused
      else {
        return false
      }
      if challenge.isStale { next[index].wasStale = true } else { next[index].wasRefused = true }
      next[index].challenge = challenge
      next[index].nonceCount = 0
    }
    answers = next
    return true
  }

  /// Stores challenges to another request of the leg, which has its own single try at each realm.
  mutating func answer(_ challenges: [Challenge]) {
    for challenge in challenges {
      guard let index = answers.firstIndex(where: { $0.challenge.key == challenge.key }) else {
        if answers.count < Limits.answeredRealms { answers.append(Answer(challenge: challenge)) }
        continue
      }
      if challenge.nonce != answers[index].challenge.nonce { answers[index].nonceCount = 0 }
      answers[index].challenge = challenge
    }
  }

  /// The challenges of a 401 or 407 that we can answer, the best of each realm: SHA-256 before MD5. Unsupported schemes,
  /// algorithms and qop (`auth-int` alone) are skipped.
  static func challenges(in response: Message) -> [Challenge] {
    let isProxy = response.statusCode == 407
    guard let values = try? response.authentication(isProxy ? .proxyAuthenticate : .wwwAuthenticate) else { return [] }
    let usable = values.compactMap { read($0, isProxy: isProxy) }
    var realms: Set<Realm> = []
    return (usable.filter { $0.algorithm == .sha256 } + usable.filter { $0.algorithm != .sha256 })
      .filter { realms.insert($0.key).inserted }
  }

  private static func read(_ value: AuthenticationValue, isProxy: Bool) -> Challenge? {
    guard value.isDigest, let realm = value["realm"], let nonce = value["nonce"], !nonce.isEmpty else { return nil }
    let algorithm: Algorithm
    switch value["algorithm"]?.uppercased() {
    case nil, "MD5": algorithm = .md5
    case "SHA-256": algorithm = .sha256
    default: return nil
    }
    if let qop = value["qop"] {
      let offered = qop.split { $0 == "," || $0 == " " }.map { $0.lowercased() }
      guard offered.contains("auth") else { return nil }
    }
    return Challenge(
      realm: realm, nonce: nonce, opaque: value["opaque"], algorithm: algorithm, algorithmName: value["algorithm"],
      hasQop: value["qop"] != nil, isStale: value["stale"]?.lowercased() == "true", isProxy: isProxy)
  }

  /// The headers that answer all realms for one request (RFC 3261 §22.3).
  mutating func authorizations(method: Method, uri: String, cnonce: String) -> [(HeaderName, String)] {
    answers.indices.map { index in
      answers[index].nonceCount += 1
      return authorization(answers[index], method: method, uri: uri, cnonce: cnonce)
    }
  }

  private func authorization(_ answer: Answer, method: Method, uri: String, cnonce: String) -> (HeaderName, String) {
    let challenge = answer.challenge
    let digits = String(answer.nonceCount, radix: 16)
    let count = String(repeating: "0", count: max(0, 8 - digits.count)) + digits
    let response = Self.response(
      challenge, username: credentials.username, password: credentials.password.exposed, method: method.name, uri: uri,
      cnonce: cnonce,
      nonceCount: count)
    var value = "Digest username=\(quotedString(credentials.username)), realm=\(quotedString(challenge.realm))"
    value += ", nonce=\(quotedString(challenge.nonce)), uri=\(quotedString(uri)), response=\"\(response)\""
    if let name = challenge.algorithmName { value += ", algorithm=\(name)" }
    if challenge.hasQop { value += ", cnonce=\"\(cnonce)\", qop=auth, nc=\(count)" }
    if let opaque = challenge.opaque { value += ", opaque=\(quotedString(opaque))" }
    return (challenge.isProxy ? .proxyAuthorization : .authorization, value)
  }

  static func response(
    _ challenge: Challenge, username: String, password: String, method: String, uri: String, cnonce: String, nonceCount: String
  ) -> String {
    func hash(_ text: String) -> String { hexString(digest(challenge.algorithm, Array(text.utf8))) }
    let a1 = hash("\(username):\(challenge.realm):\(password)")
    let a2 = hash("\(method):\(uri)")
    if challenge.hasQop { return hash("\(a1):\(challenge.nonce):\(nonceCount):\(cnonce):auth:\(a2)") }
    return hash("\(a1):\(challenge.nonce):\(a2)")
  }

  private static func digest(_ algorithm: Algorithm, _ bytes: [UInt8]) -> [UInt8] {
    var out = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
    var count: UInt32 = 0
    let ok = EVP_Digest(bytes, bytes.count, &out, &count, algorithm == .md5 ? EVP_md5() : EVP_sha256(), nil)
    // A library without MD5 (FIPS) returns no digest: the peer refuses the empty response and the call fails as unauthorised.
    return ok == 1 ? Array(out.prefix(Int(count))) : []
  }
}

extension UserAgent {
  /// The challenges to answer on behalf of a trunk: those of its realm, if it has one.
  mutating func challenges(in response: Message, of trunk: String) -> [DigestClient.Challenge] {
    let all = DigestClient.challenges(in: response)
    guard let realm = rules(trunk).realm, let other = all.first else { return all }
    let own = all.filter { $0.realm == realm }
    if own.isEmpty {
      step.counters.foreignChallenges += 1
      step.emit(.challengeRefused(trunk: trunk, realm: String(other.realm.prefix(Limits.shownRealmCharacters))))
    }
    return own
  }
}
