/// Where Redis is.
public enum RedisServers: Hashable, Sendable {
  /// A host and a port: `10.0.0.3:6379`, `[::1]:6379`, `redis.example.com:6379`.
  public struct Address: Hashable, Sendable, CustomStringConvertible {
    public var host: String
    public var port: UInt16
    public init(_ host: String, _ port: UInt16) { (self.host, self.port) = (host, port) }

    /// Nil: the text is not an address.
    public init?(_ text: String) {
      guard let colon = text.lastIndex(of: ":"), let port = UInt16(text[text.index(after: colon)...]), port > 0 else {
        return nil
      }
      var host = text[..<colon]
      if host.hasPrefix("["), host.hasSuffix("]") { host = host.dropFirst().dropLast() } else if host.contains(":") { return nil }
      guard !host.isEmpty, host.utf8.count <= 253 else { return nil }
      self.init(String(host), port)
    }

    public var description: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }
  }

  case redis(Address)
  /// The Sentinels are queried for the primary at every connection.
  case sentinels([Address], name: String)
  /// Any nodes of a Redis Cluster; they are queried for the others.
  case cluster([Address])
}
