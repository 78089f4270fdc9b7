import TrunklineBytes

/// `https:`, or `http:` of this machine. No user name or password: logs would contain it, and it would hide the real host.
func serverURL(_ text: String) -> String? {
  guard let colon = text.firstRange(of: "://"), text.utf8.allSatisfy({ $0 > 32 && $0 < 127 && $0 != 92 }) else { return nil }
  let authority = text[colon.upperBound...].prefix { $0 != "/" && $0 != "?" && $0 != "#" }
  guard !authority.isEmpty, !authority.contains("@") else { return nil }
  let isLocal = ["127.0.0.1", "localhost", "[::1]"].contains { host in
    authority.hasPrefix(host) && [nil, ":"].contains(authority.dropFirst(host.count).first)
  }
  let scheme = text[..<colon.lowerBound]
  return scheme == "https" || scheme == "http" && isLocal ? text : nil
}

/// Requests contain numbers and names: unencrypted only where no third party can read them.
func webhookURL(_ text: String) -> String? {
  guard text.utf8.count <= 2_048, text.utf8.allSatisfy({ (33...126).contains($0) }) else { return nil }
  if text.hasPrefix("https://"), text.utf8.count > 8 { return text }
  guard text.hasPrefix("http://") else { return nil }
  let authority = text.dropFirst(7).prefix { $0 != "/" && $0 != "?" && $0 != "#" }
  guard !authority.contains("@") else { return nil }
  let address = SocketAddress(String(authority))?.ip ?? IPAddress(String(authority))
  return address?.isLoopback == true || authority == "localhost" || authority.hasPrefix("localhost:") ? text : nil
}
