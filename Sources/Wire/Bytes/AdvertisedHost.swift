/// A host, and a port if one is given, that peers are to use: `203.0.113.5`, `[2001:db8::5]:5070`, `sip.example.com`.
public struct AdvertisedHost: Hashable, Sendable, CustomStringConvertible {
  /// In brackets if it is an IPv6 address.
  public let host: String
  public let port: UInt16?
  /// Nil for a name.
  public let address: IPAddress?

  /// Nil if the text is neither an address nor a host name, each with or without a port.
  public init?(_ text: String) {
    if let address = IPAddress(text) ?? Self.bracketed(text) {
      (host, port, self.address) = (Self.uriHost(address), nil, address)
    } else if let socket = SocketAddress(text) {
      (host, port, address) = (Self.uriHost(socket.ip), socket.port == 0 ? nil : socket.port, socket.ip)
    } else {
      let parts = text.split(separator: ":", omittingEmptySubsequences: false)
      guard parts.count <= 2, isHostName(parts[0]) else { return nil }
      let number = parts.count == 2 ? UInt16(parts[1]) : nil
      guard parts.count == 1 || (number ?? 0) > 0 else { return nil }
      (host, port, address) = (String(parts[0]), number, nil)
    }
  }

  private static func uriHost(_ address: IPAddress) -> String { address.family == .v4 ? "\(address)" : "[\(address)]" }
  private static func bracketed(_ text: String) -> IPAddress? {
    text.hasPrefix("[") && text.hasSuffix("]") ? IPAddress(String(text.dropFirst().dropLast())) : nil
  }

  public var description: String { port.map { "\(host):\($0)" } ?? host }
}

/// Letters, digits, hyphens, underscores and dots, as DNS and SIP URIs accept them.
public func isHostName(_ text: some StringProtocol) -> Bool {
  (1...253).contains(text.utf8.count) && text.first != "." && text.first != "-"
    && text.utf8.allSatisfy {
      (48...57).contains($0) || (65...90).contains($0) || (97...122).contains($0) || [45, 46, 95].contains($0)
    }
}
