/// The origin of a page (RFC 6454): scheme, host and port in one spelling, small letters and without the scheme's own port, so
/// that `HTTPS://Phone.Example:443` and `https://phone.example` are the same. A value; costs one pass over its text.
public struct WebOrigin: Hashable, Sendable, CustomStringConvertible {
  public let scheme: String
  /// Host, with the port where it is not the scheme's own.
  public let authority: String

  /// An `Origin` field: `https://phone.example:8443`. Nil for `null`, and for text with a path, a user or no host.
  public init?(_ text: String) {
    guard let colon = text.firstIndex(of: ":"), text[colon...].hasPrefix("://") else { return nil }
    self.init(scheme: String(text[..<colon]), host: String(text[colon...].dropFirst(3)))
  }

  /// From a `Host` field, and the scheme of the request.
  public init?(scheme: String, host: String) {
    let scheme = scheme.lowercased()
    guard !scheme.isEmpty, !host.utf8.contains(where: { "/?#@ ".utf8.contains($0) || $0 < 0x21 || $0 > 0x7e }) else { return nil }
    var name = host.lowercased()
    // a colon inside the brackets of an IPv6 address begins no port
    if let colon = name.lastIndex(of: ":"), !name[colon...].contains("]") {
      let port = name[name.index(after: colon)...]
      guard port.utf8.allSatisfy({ (48...57).contains($0) }) else { return nil }
      let usual = scheme == "https" ? "443" : scheme == "http" ? "80" : nil
      if port.isEmpty || port == usual ?? "" { name = String(name[..<colon]) }
    }
    guard !name.isEmpty else { return nil }
    (self.scheme, authority) = (scheme, name)
  }

  public var description: String { "\(scheme)://\(authority)" }

  /// The one spelling; text that is no origin is returned unchanged.
  public static func canonical(_ text: String) -> String { WebOrigin(text)?.description ?? text }
}
