import JSONWebToken
import TrunklineBytes

/// The content of a cluster's resume token: enough for a node that does not know the session to begin it again.
struct ResumeClaim: Hashable {
  var session: SessionID
  var device: DeviceKey
  var accounts: [String]
  /// The call of a session that a wake token began.
  var onlyCall: Identifier?
  /// As in `DeviceInfo`.
  var isFurther = false
  /// As in `Session`.
  var expiresAt: Int64
  /// The incarnation of the node that made the token. `token` ignores this value and writes its own node's.
  var incarnation = ""
}

/// Makes and reads the resume tokens of a cluster: JWTs (HS256) with a key that signs nothing else. Any node identifies the
/// device by the token, without a request to another node. Immutable; any thread. Making or reading one costs about 20 µs.
struct ResumeTokens: Sendable {
  private struct Claims: Codable {
    var sid: String
    var sub: String
    var dev: String
    /// Nil: `default`.
    var acct: [String]?
    var call: String?
    /// Nil: the device's own session.
    var further: Bool?
    var exp: Int64
    var node: String
  }
  private let keys: KeySet
  private let signer: TokenSigner
  private let incarnation: String

  /// Nil: the key is empty.
  init?(clusterKey key: [UInt8], incarnation: String) {
    guard let keys = KeySet(deriving: "trunkline resume tokens", from: key), let signer = try? TokenSigner(keys: keys) else {
      return nil
    }
    (self.keys, self.signer, self.incarnation) = (keys, signer, incarnation)
  }

  /// The token of a claim. At most `Limits.resumeTokenBytes` (accounts that do not fit are left out), unless `sub` and `dev`
  /// alone are longer; empty only if OpenSSL fails.
  func token(_ claim: ResumeClaim) -> String {
    var claims = Claims(
      sid: claim.session.text, sub: claim.device.user, dev: claim.device.device, call: claim.onlyCall?.description,
      further: claim.isFurther ? true : nil,
      exp: (claim.expiresAt - Limits.expiryLeewayMilliseconds + 999) / 1_000, node: incarnation)
    guard claim.accounts != ["default"] else { return sign(claims) }
    claims.acct = []
    // Base64url writes three bytes as four
    var room = max(0, Limits.resumeTokenBytes - sign(claims).utf8.count) * 3 / 4 - 2
    for account in claim.accounts {
      room -= Self.jsonBytes(account)
      guard room >= 0 else { break }
      claims.acct?.append(account)
    }
    return sign(claims)
  }

  /// The claim of a token; nil if it was not made by this cluster. The caller checks the expiry.
  func read(_ token: String) -> ResumeClaim? {
    guard let claims = try? keys.claims(of: token, as: Claims.self), (0...1 << 53).contains(claims.exp) else { return nil }
    let call = claims.call.flatMap { Identifier($0) }
    guard (call == nil) == (claims.call == nil) else { return nil }
    return ResumeClaim(
      session: SessionID(claims.sid), device: DeviceKey(user: claims.sub, device: claims.dev),
      accounts: claims.acct ?? ["default"], onlyCall: call, isFurther: claims.further == true,
      expiresAt: claims.exp * 1_000 + Limits.expiryLeewayMilliseconds, incarnation: claims.node)
  }

  private func sign(_ claims: Claims) -> String { (try? signer.sign(claims)) ?? "" }

  /// Bytes of a text as an element of a JSON list, with its quotes, comma and escapes.
  private static func jsonBytes(_ text: String) -> Int {
    text.utf8.reduce(3) { $0 + ($1 < 0x20 ? 6 : $1 == 0x22 || $1 == 0x5c ? 2 : 1) }
  }
}
