import WebSocket

/// The opening handshake of RFC 6455 §4.1, of the client's side.
enum UpgradeAnswer {
  /// - Parameter token: a bearer token for the peer.
  static func request(host: String, path: String, key: String, token: String?) -> [UInt8] {
    var lines = [
      "GET \(path) HTTP/1.1", "Host: \(host)", "Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Key: \(key)",
      "Sec-WebSocket-Version: 13", "User-Agent: trunkline",
    ]
    if let token { lines.append("Authorization: Bearer \(token)") }
    return Array((lines.joined(separator: "\r\n") + "\r\n\r\n").utf8)
  }

  /// Why a server's head is no upgrade; nil if it is.
  static func fault(_ head: String, key: String) -> String? {
    let lines = head.split(separator: "\r\n")
    let status = lines.first?.split(separator: " ") ?? []
    guard status.count >= 2, status[0].hasPrefix("HTTP/1.1") else { return "its answer is not HTTP/1.1" }
    guard status[1] == "101" else { return "it answered \(status[1].prefix(3))" }
    var fields: [String: String] = [:]
    for line in lines.dropFirst() {
      guard let colon = line.firstIndex(of: ":") else { return "a header field without a colon" }
      fields[line[..<colon].lowercased()] = line[line.index(after: colon)...].drop { $0 == " " }.lowercased()
    }
    guard fields["upgrade"] == "websocket", fields["connection"]?.contains("upgrade") == true else {
      return "it does not upgrade"
    }
    guard fields["sec-websocket-accept"] == Handshake.accept(key: key)?.lowercased() else {
      return "its accept is not for our key"
    }
    guard fields["sec-websocket-extensions"] == nil else { return "an extension that we did not offer" }
    return nil
  }
}
