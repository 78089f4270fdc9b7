import CTrunklineOpenSSL
import TrunklineBytes
import TrunklineSIP

/// The server side of digest access authentication (RFC 3261 §22, RFC 7616, RFC 8760), for peers that no list of addresses names.
///
/// A nonce is a time and a keyed hash of time and source, so a challenge keeps no state; only nonces that were used with the
/// right password are stored, with the highest count received. The count is stored after the digest matched: a client without the
/// password cannot use up a count.
///
/// Nodes of a cluster have one key and one clock, the shared store's, so each accepts the others' nonces; each node stores the
/// nonces used at it (docs/design/cluster.md, Nonces).
struct DigestServer {
  enum Verdict: Equatable {
    case admitted
    /// 401; `stale`: the password is right, but the nonce is too old or was used already.
    case challenge(stale: Bool)
  }

  /// For trunks without a configured realm.
  static let realm = "trunkline"
  private let key: [UInt8]
  /// The allowed age of a nonce in seconds; below zero, its node's clock is ahead of ours.
  private let ages: ClosedRange<Int64>
  private let isShared: Bool
  /// From `Instant` to 1970; for shared nonces only.
  private var clockOffsetMilliseconds: Int64 = 0
  private var used: [String: UInt32] = [:]
  private var order: [String] = []
  /// Answers to unauthenticated sources, per source and in all.
  private var answers = SourceRates(
    perSource: Limits.challengesPerSource, inAll: Limits.challengesPerSecond, sources: Limits.challengedSources)

  /// - Parameter secret: The same at all nodes; nil: a key of this process alone.
  init(random: RandomSource, sharing secret: [UInt8]? = nil) {
    isShared = secret != nil
    key = secret.map { Self.mac(Self.keyLabel, $0) } ?? random.bytes(32)
    ages = isShared ? -Limits.clockDifferenceSeconds...Limits.sharedNonceSeconds : 0...Limits.nonceSeconds
  }
  private static let keyLabel = "trunkline digest nonces"

  /// The shared store's clock.
  mutating func setClock(offsetMilliseconds: Int64) { clockOffsetMilliseconds = offsetMilliseconds }

  /// - Parameter isRewritten: An edge may have put a node's address into the Request-URI, as a redirect states; its user stays
  ///   (RFC 3261 §22.4).
  mutating func verify(
    _ message: Message, method: String, _ credentials: Credentials, realm: String, from source: IPAddress,
    isRewritten: Bool = false,
    at now: Instant
  ) -> Verdict {
    guard case .request(_, _, let uri) = message.startLine, let values = try? message.authentication(.authorization),
      let value = values.first(where: { $0.isDigest && $0["realm"] == realm }), let nonce = value["nonce"],
      value["username"] == credentials.username, let target = value["uri"],
      target == message.text(uri) || isRewritten && Self.isSameUser(target, message.text(uri)),
      value["qop"]?.lowercased() == "auth", let cnonce = value["cnonce"], let countText = value["nc"],
      countText.utf8.count == 8, let count = UInt32(countText, radix: 16), let given = value["response"]?.lowercased()
    else { return .challenge(stale: false) }
    let algorithm: DigestClient.Algorithm
    switch value["algorithm"]?.uppercased() {
    case nil, "MD5": algorithm = .md5
    case "SHA-256": algorithm = .sha256
    default: return .challenge(stale: false)
    }
    let challenge = DigestClient.Challenge(
      realm: realm, nonce: nonce, opaque: nil, algorithm: algorithm, algorithmName: nil, hasQop: true, isStale: false,
      isProxy: false)
    let wanted = DigestClient.response(
      challenge, username: credentials.username, password: credentials.password.exposed, method: method, uri: target,
      cnonce: cnonce, nonceCount: countText)
    guard !wanted.isEmpty, isEqual(Array(wanted.utf8), Array(given.utf8)) else { return .challenge(stale: false) }
    guard isOurs(nonce, from: source, now), count > used[nonce] ?? 0 else { return .challenge(stale: true) }
    remember(nonce, count)
    return .admitted
  }

  /// The values of WWW-Authenticate, the better algorithm first (RFC 8760 §2.4).
  func challenges(stale: Bool, realm: String, to source: IPAddress, at now: Instant) -> [String] {
    let nonce = nonce(seconds: seconds(now), source)
    let rest = "realm=\(quotedString(realm)), nonce=\"\(nonce)\", qop=\"auth\"" + (stale ? ", stale=true" : "")
    return ["Digest \(rest), algorithm=SHA-256", "Digest \(rest), algorithm=MD5"]
  }

  /// Whether an unauthenticated source gets an answer now; otherwise it gets none.
  mutating func mayAnswer(_ source: IPAddress, at now: Instant) -> Bool { answers.consume(source, at: now) }

  private func seconds(_ now: Instant) -> Int64 {
    isShared ? (now.nanoseconds / 1_000_000 &+ clockOffsetMilliseconds) / 1_000 : now.nanoseconds / 1_000_000_000
  }

  private func nonce(seconds: Int64, _ source: IPAddress) -> String {
    let time = hexString(UInt64(bitPattern: seconds))
    return time + hexString(Self.mac(time + source.description, key).prefix(16))
  }

  private func isOurs(_ nonce: String, from source: IPAddress, _ now: Instant) -> Bool {
    guard nonce.utf8.count > 16, let seconds = Int64(nonce.prefix(16), radix: 16) else { return false }
    let (age, isTooFar) = self.seconds(now).subtractingReportingOverflow(seconds)
    return !isTooFar && ages.contains(age) && isEqual(Array(self.nonce(seconds: seconds, source).utf8), Array(nonce.utf8))
  }

  private static func mac(_ text: String, _ key: [UInt8]) -> [UInt8] {
    var out = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
    var count: UInt32 = 0
    let bytes = Array(text.utf8)
    _ = HMAC(EVP_sha256(), key, Int32(key.count), bytes, bytes.count, &out, &count)
    return Array(out.prefix(Int(count)))
  }

  private mutating func remember(_ nonce: String, _ count: UInt32) {
    if used.updateValue(count, forKey: nonce) == nil { order.append(nonce) }
    while order.count > Limits.usedNonces { used[order.removeFirst()] = nil }
  }

  private static func isSameUser(_ a: String, _ b: String) -> Bool {
    func user(_ text: String) -> String? {
      let bytes = Array(text.utf8)
      return (try? URI(bytes)).map { String(decoding: bytes[$0.user.lower..<$0.user.upper], as: UTF8.self) }
    }
    return user(a).map { !$0.isEmpty && $0 == user(b) } ?? false
  }

  /// In constant time.
  private func isEqual(_ a: [UInt8], _ b: [UInt8]) -> Bool { a.count == b.count && CRYPTO_memcmp(a, b, a.count) == 0 }
}

extension UserAgent {
  /// Checks a request from a peer that no list names: returns the trunk whose credentials it has, or nil if it is not admitted.
  /// In a dialog the source that opened it is sufficient.
  mutating func admit(guest request: Request) -> String? {
    let source = request.flow.remote.ip.unmapped
    if let tag = request.envelope.to.tag,
      let leg = legs.leg(of: DialogKey(callID: request.message.callID, localTag: request.message.text(tag))),
      leg.flow.remote.ip.unmapped == source
    {
      noteAuthenticated(request.flow)
      return leg.trunk
    }
    let name = request.method == .other ? request.message.methodName : request.method.name
    var isStale = false
    let trunks = trunks.accounts.all(of: request.trunk)
    for trunk in trunks {
      guard let credentials = rules(trunk).peerCredentials else { continue }
      switch digestServer.verify(
        request.message, method: name, credentials, realm: realm(of: trunk), from: source,
        isRewritten: request.isFromEdge, at: step.now)
      {
      case .admitted:
        noteAuthenticated(request.flow)
        return trunk
      case .challenge(let stale): isStale = isStale || stale
      }
    }
    challenge(request, trunks, stale: isStale)
    return nil
  }

  private func realm(of trunk: String) -> String { rules(trunk).realm ?? DigestServer.realm }

  /// 401 with a challenge for each realm, if unauthenticated sources get answers now.
  private mutating func challenge(_ request: Request, _ trunks: [String], stale: Bool) {
    let source = request.flow.remote.ip.unmapped
    // Behind an edge all peers have its address.
    guard request.isFromEdge || digestServer.mayAnswer(source, at: step.now) else {
      step.counters.drop(.challengeLimit)
      if request.method == .invite { noteRefusal(.unauthorized, request.message, on: request.trunk) }
      return
    }
    noteRefusal(.unauthorized, request.message, on: request.trunk)
    var realms: [String] = []
    for trunk in trunks where !realms.contains(realm(of: trunk)) { realms.append(realm(of: trunk)) }
    let challenges = realms.prefix(Limits.realms).flatMap {
      digestServer.challenges(stale: stale, realm: $0, to: source, at: step.now)
    }
    respondStateless(request.reply, ResponseContent(code: 401, fields: challenges.map { (HeaderName.wwwAuthenticate, $0) }))
  }

  private mutating func noteAuthenticated(_ flow: Flow) {
    if flow.transport.isReliable { step.output.authenticated.append(flow) }
  }
}
