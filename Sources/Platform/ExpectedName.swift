import TrunklineBytes

/// A host name that a certificate is for, or `*.` and a domain, which matches every name one label below it (RFC 9525 §6.3).
///
///     ExpectedName("sip.carrier.example")?.accepts("SIP.carrier.example")   // true
///     ExpectedName("*.carrier.example")?.accepts("a.carrier.example")       // true; so is "*.carrier.example" itself
///     ExpectedName("a.*.example")                                           // nil
public struct ExpectedName: Sendable, Hashable, CustomStringConvertible {
  /// In lower case, without `*.`.
  public let domain: String
  public let isWildcard: Bool

  /// Nil for other texts: `*` in the middle or beside other letters, and an address after `*.`, are not accepted.
  public init?(_ text: some StringProtocol) {
    isWildcard = text.hasPrefix("*.")
    var rest = isWildcard ? String(text.dropFirst(2)) : String(text)
    if rest.hasSuffix(".") { rest.removeLast() }  // the root
    guard isHostName(rest), !rest.split(separator: ".", omittingEmptySubsequences: false).contains(""),
      !isWildcard || IPAddress(rest) == nil
    else { return nil }
    domain = rest.lowercased()
  }

  public var description: String { isWildcard ? "*." + domain : domain }

  /// Whether a certificate's name is this one, or one that this wildcard matches. A certificate's wildcard is accepted only where
  /// the same wildcard was expected.
  public func accepts(_ name: String) -> Bool {
    guard let name = ExpectedName(name) else { return false }
    if name == self { return true }
    return isWildcard && !name.isWildcard && name.parent == domain
  }

  /// The name without its first label; nil if it has only one.
  var parent: String? { domain.firstIndex(of: ".").map { String(domain[domain.index(after: $0)...]) } }
}
