/// The claims of a login token (RFC 7519; docs/reference/protocol.md, Session): user (`sub`), device (`dev`), audience (`aud`),
/// expiry.
public struct Claims: Hashable, Sendable {
  /// The user's id.
  public var sub: String
  /// The device's id.
  public var dev: String
  public var aud: [String]
  /// Seconds since 1970.
  public var exp: Int64
  public var nbf: Int64?
  /// Accounts of the device; absent means `default`.
  public var acct: [String]?
  /// The claim `trunkline`, with the token's `iat`; a failure if it is invalid. Nil: the token grants nothing.
  public var grant: Result<TokenGrant, TokenGrant.Fault>?

  public init(
    sub: String, dev: String, aud: [String], exp: Int64, nbf: Int64? = nil, acct: [String]? = nil, grant: TokenGrant? = nil
  ) {
    (self.sub, self.dev, self.aud, self.exp, self.nbf, self.acct) = (sub, dev, aud, exp, nbf, acct)
    self.grant = grant.map { .success($0) }
  }
}

extension Claims: Codable {
  private enum CodingKeys: String, CodingKey { case sub, dev, aud, exp, nbf, iat, acct, trunkline }

  public init(from decoder: any Decoder) throws {
    let values = try decoder.container(keyedBy: CodingKeys.self)
    func problem(_ key: CodingKeys) -> DecodingError {
      .dataCorruptedError(forKey: key, in: values, debugDescription: "outside its limits")
    }
    func text(_ key: CodingKeys) throws -> String {
      let value = try values.decode(String.self, forKey: key)
      guard !value.isEmpty, value.utf8.count <= Limits.claimBytes else { throw problem(key) }
      return value
    }
    // A NumericDate may have a fraction (RFC 7519 §2).
    func date(_ key: CodingKeys) throws -> Int64? {
      guard let value = try values.decodeIfPresent(Double.self, forKey: key) else { return nil }
      guard value.isFinite, let seconds = Int64(exactly: value.rounded(.down)), (0..<1 << 53).contains(seconds) else {
        throw problem(key)
      }
      return seconds
    }
    func list(_ key: CodingKeys) throws -> [String] {
      let value = try values.decode([String].self, forKey: key)
      guard value.count <= Limits.listEntries, value.allSatisfy({ $0.utf8.count <= Limits.claimBytes }) else {
        throw problem(key)
      }
      return value
    }
    sub = try text(.sub)
    dev = try text(.dev)
    guard let exp = try date(.exp) else { throw problem(.exp) }
    self.exp = exp
    nbf = try date(.nbf)
    if let one = try? text(.aud) { aud = [one] } else { aud = values.contains(.aud) ? try list(.aud) : [] }
    acct = values.contains(.acct) ? try list(.acct) : nil
    var issuedAt: Int64 = 0
    if let iat = try? values.decodeIfPresent(Double.self, forKey: .iat), iat >= 0, iat < Double(1 << 43) {
      issuedAt = Int64(exactly: (iat * 1_000).rounded()) ?? 0
    }
    guard values.contains(.trunkline) else { return }
    do {
      var grant = try values.decode(TokenGrant.self, forKey: .trunkline)
      grant.issuedAt = issuedAt
      self.grant = .success(grant)
    } catch {
      grant = .failure(error as? TokenGrant.Fault ?? TokenGrant.Fault("", "is not an object"))
    }
  }

  public func encode(to encoder: any Encoder) throws {
    var values = encoder.container(keyedBy: CodingKeys.self)
    try values.encode(sub, forKey: .sub)
    try values.encode(dev, forKey: .dev)
    if aud.count == 1 { try values.encode(aud[0], forKey: .aud) } else { try values.encode(aud, forKey: .aud) }
    try values.encode(exp, forKey: .exp)
    try values.encodeIfPresent(nbf, forKey: .nbf)
    try values.encodeIfPresent(acct, forKey: .acct)
    guard case .success(let grant) = grant else { return }
    if grant.issuedAt != 0 { try values.encode(Double(grant.issuedAt) / 1_000, forKey: .iat) }
    try values.encode(grant, forKey: .trunkline)
  }
}
