public import TrunklineBytes
public import TrunklinePlatform

/// The address of the shared store, and how to connect to it.
public struct SharedStoreSettings: Hashable, Sendable {
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

  public enum Servers: Hashable, Sendable {
    case redis(Address)
    /// The Sentinels are queried for the primary at every connection.
    case sentinels([Address], name: String)
    /// Any nodes of a Redis Cluster; they are queried for the others.
    case cluster([Address])
  }

  public var servers: Servers
  /// The name of an ACL user; nil: the password alone.
  public var username: String?
  public var password: Redacted<String>?
  /// Nil: no TLS. Otherwise the shared store's certificate must be for the host as it is configured, or as Sentinel or Cluster
  /// name it.
  public var tls: TLSFiles?
  /// `cluster.key_file`: nodes sign their values under a key derived from it, and skip values not so signed. Nil: nothing is
  /// signed.
  public var key: Redacted<[UInt8]>?
  /// The prefix of every key and channel: letters, digits, `-`, `_`, `.` and `:`.
  public var prefix = "tl"
  /// A command without an answer for this long has timed out.
  public var commandTime = Duration.milliseconds(250)
  /// Pause between attempts to connect, with full jitter: from the first to the last.
  public var retry = Duration.milliseconds(100)...Duration.seconds(5)
  public init(_ servers: Servers) { self.servers = servers }
}
