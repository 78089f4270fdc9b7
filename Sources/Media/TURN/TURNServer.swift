public import TrunklineBytes

/// A TURN server's address and credential: one URI of RFC 7065 and a long-term credential. Prints without the password.
public struct TURNServer: Sendable, Hashable {
  public enum Transport: String, Sendable, CaseIterable {
    case udp, tcp
    /// Over TCP.
    case tls
  }

  /// A name, or an address without brackets.
  public let host: String
  public let port: UInt16
  public let transport: Transport
  public let username: String
  public let password: Redacted<String>
  /// The address to which the server redirected us (300, RFC 8489 §10): used instead of the host name's.
  public private(set) var alternate: SocketAddress?

  /// Parses `turn:host:port?transport=tcp`, `turns:host`; ports 3478 and 5349 by default. Nil for anything else, for TURN over
  /// DTLS, which is not supported, and for values that are too long.
  public init?(url: String, username: String, password: String) {
    guard username.utf8.count <= Limits.usernameBytes, password.utf8.count <= Limits.passwordBytes, !username.isEmpty else {
      return nil
    }
    guard let colon = url.firstIndex(of: ":") else { return nil }
    let isSecure: Bool
    switch url[..<colon].lowercased() {
    case "turn": isSecure = false
    case "turns": isSecure = true
    default: return nil
    }
    let parts = url[url.index(after: colon)...].split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
    switch (parts.count > 1 ? parts[1].lowercased() : "", isSecure) {
    case ("", false), ("transport=udp", false): transport = .udp
    case ("transport=tcp", false): transport = .tcp
    case ("", true), ("transport=tcp", true): transport = .tls
    default: return nil
    }
    guard let (host, port) = Self.hostAndPort(parts[0], usual: isSecure ? 5_349 : 3_478) else { return nil }
    (self.host, self.port, self.username, self.password) = (host, port, username, Redacted(password))
  }

  private static func hostAndPort(_ text: Substring, usual: UInt16) -> (String, UInt16)? {
    var (host, rest) = (text, Substring())
    if text.hasPrefix("[") {
      guard let end = text.firstIndex(of: "]"), IPAddress(text[text.index(after: text.startIndex)..<end])?.family == .v6 else {
        return nil
      }
      host = text[text.index(after: text.startIndex)..<end]
      rest = text[text.index(after: end)...]
    } else {
      if let colon = text.firstIndex(of: ":") { (host, rest) = (text[..<colon], text[colon...]) }
      let isName = host.utf8.allSatisfy {
        $0 == UInt8(ascii: ".") || $0 == UInt8(ascii: "-") || $0 == UInt8(ascii: "_") || isAlphanumeric($0)
      }
      guard isName, (1...Limits.hostBytes).contains(host.utf8.count) else { return nil }
    }
    if rest.isEmpty { return (String(host), usual) }
    guard rest.first == ":", let port = UInt16(rest.dropFirst()), port > 0 else { return nil }
    return (String(host), port)
  }

  private static func isAlphanumeric(_ byte: UInt8) -> Bool {
    (0x30...0x39).contains(byte) || (0x41...0x5a).contains(byte) || (0x61...0x7a).contains(byte)
  }

  /// The same server at another address. Its certificate must still be the host's.
  public func at(_ address: SocketAddress) -> TURNServer {
    var other = self
    other.alternate = address
    return other
  }
}
