// The named limits of this module: every bound on a queue, table or message.
enum Limits {
  /// The longest message read or written. RFC 8489 §6.1 requires requests below the path MTU; a connectivity check has about
  /// 100 bytes.
  static let messageBytes = 1500
  /// Attributes in one message; a message with more is not a connectivity check.
  static let attributes = 32
  /// USERNAME (RFC 8489 §14.3: fewer than 509 bytes; ICE needs at most 513 of two ufrags and a colon).
  static let usernameBytes = 513
  /// REALM and NONCE (RFC 8489 §14.9, §14.10).
  static let realmBytes = 763
  /// Unknown attribute types that a 420 answer lists.
  static let listedUnknownAttributes = 4
}
