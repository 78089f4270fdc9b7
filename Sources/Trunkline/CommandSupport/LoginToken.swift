package import Configuration
package import JSONWebToken
import TrunklinePlatform

/// The token that a device logs in with.
package enum LoginToken {
  private static let validSeconds: Int64 = 86_400

  /// A token for `user` on `device`, valid for one day.
  /// - Throws: the problem of the key of `auth.jwt`.
  package static func make(
    _ settings: Settings, user: String, device: String, accounts: [String] = [], grant: TokenGrant? = nil
  ) throws -> String {
    let milliseconds = WallClock.nowMilliseconds()
    let now = milliseconds / 1_000
    var grant = grant
    grant?.issuedAt = milliseconds
    let claims = Claims(
      sub: user, dev: device, aud: [settings.auth.audience], exp: now + validSeconds, acct: accounts.isEmpty ? nil : accounts,
      grant: grant)
    return try TokenSigner(keys: settings.auth.keys()).sign(claims)
  }
}
