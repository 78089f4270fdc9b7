/// The named limits of this module.
public enum Limits {
  /// Bytes of a whole token.
  public static let tokenBytes = 8_192
  /// Bytes of one claim or of `kid`.
  public static let claimBytes = 256
  /// Entries of `aud` and `acct`.
  public static let listEntries = 64
  /// Numbers, or beginnings of numbers, in one list of the claim `trunkline`.
  public static let grantNumbers = 100
  /// Bytes of one text in the claim `trunkline`.
  public static let grantTextBytes = 128
  /// Bytes of a key file or JWKS file.
  public static let keyFileBytes = 262_144
  /// Keys of a JWKS file.
  public static let keys = 64
  /// The smallest RSA key (RFC 7518 §3.3).
  public static let rsaBits = 2_048
  /// How far the clocks of issuer and gateway may differ, in seconds.
  public static let leewaySeconds: Int64 = 30
  /// `exp` is below this, the year 5138: a larger value counts milliseconds.
  public static let expiryBelow: Int64 = 100_000_000_000
  /// HMAC keys below this are weak (RFC 7518 §3.2).
  public static let strongSecretBytes = 32
}
