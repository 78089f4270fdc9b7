import Bytes
import COpenSSL
import SIP

/// The client side of digest access authentication (RFC 3261 §22.4, RFC 7616, RFC 8760): MD5 and SHA-256, qop `auth` or none.
struct DigestClient {
  enum Algorithm: Equatable { case md5, sha256 }

  /// A challenge that we can answer.
  struct Challenge: Equatable {
    var realm: String
    var nonce: String
    var opaque: String?
    var algorithm: Algorithm
    /// As written by the server; nil if it left it out.
    var algorithmName: String?
    var hasQop: Bool
    var isStale: Bool
    var isProxy: Bool
  }

  let credentials: Credentials
  private(set) var challenge: Challenge
  private var nonceCount: UInt32 = 0
  private var isStaleRetryUsed = false

  init(_ credentials: Credentials, _ challenge: Challenge) {
    (self.credentials, self.challenge) = (credentials, challenge)
  }

  /// A second challenge: worth another try once, if only the nonce was stale (RFC 7616 §3.3).
  mutating func renew(_ next: Challenge) -> Bool {
    guard next.isStale, !isStaleRetryUsed, next.nonce != challenge.nonce else { return false }
    isStaleRetryUsed = true
    challenge = next
    nonceCount = 0
    return true
  }

  /// A challenge of another request of the leg, which has its own single try.
  mutating func answer(_ next: Challenge) {
    if next.nonce != challenge.nonce { nonceCount = 0 }
    challenge = next
  }

  /// The challenges of a 401 or 407 that we can answer, the best first: SHA-256 before MD5. Schemes, algorithms and qop that we lack
  /// (`auth-int` alone) are passed over.
  static func challenges(in response: Message) -> [Challenge] {
    let isProxy = response.statusCode == 407
    guard let values = try? response.authentication(isProxy ? .proxyAuthenticate : .wwwAuthenticate) else { return [] }
    let usable = values.compactMap { read($0, isProxy: isProxy) }
    return usable.filter { $0.algorithm == .sha256 } + usable.filter { $0.algorithm != .sha256 }
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

  /// The header that answers the challenge for one request.
  mutating func authorization(method: Method, uri: String, cnonce: String) -> (name: HeaderName, value: String) {
    nonceCount += 1
    let digits = String(nonceCount, radix: 16)
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
    // A library without MD5 (FIPS) gives no digest: the empty response is refused by the peer and the call fails as unauthorised.
    return ok == 1 ? Array(out.prefix(Int(count))) : []
  }
}

extension UserAgent {
  /// The challenge to answer on behalf of a trunk; nil if there is none of its realm.
  mutating func challenge(in response: Message, of trunk: String) -> DigestClient.Challenge? {
    let all = DigestClient.challenges(in: response)
    guard let realm = rules(trunk).realm, let other = all.first else { return all.first }
    if let own = all.first(where: { $0.realm == realm }) { return own }
    counters.foreignChallenges += 1
    emit(.challengeRefused(trunk: trunk, realm: String(other.realm.prefix(Limits.shownRealmCharacters))))
    return nil
  }
}
