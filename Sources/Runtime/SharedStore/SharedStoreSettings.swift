public import Bytes
public import Platform

/// Where the shared store is, and how it is spoken to.
public struct SharedStoreSettings: Hashable, Sendable {
  /// A host and a port: `10.0.0.3:6379`, `[::1]:6379`, `redis.example.com:6379`.
  public struct Address: Hashable, Sendable, CustomStringConvertible {
    public var host: String
    public var port: UInt16
    public init(_ host: String, _ port: UInt16) { (self.host, self.port) = (host, port) }

    /// Nil: no such text.
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
    /// Who the primary is, is asked at every connection.
    case sentinels([Address], name: String)
    /// Any nodes of a Redis Cluster; the others are asked for.
    case cluster([Address])
  }

  public var servers: Servers
  /// Of an ACL user; nil: the password alone.
  public var username: String?
  public var password: Redacted<String>?
  /// Nil: no TLS. Else the shared store's certificate must be for the host as it is written in `place`, or as Sentinel or Cluster name it.
  public var tls: TLSFiles?
  /// `cluster.key_file`: what nodes write is signed under a key derived from it, and what is not so signed is skipped. Nil: nothing is.
  public var key: Redacted<[UInt8]>?
  /// Of every key and channel: letters, digits, `-`, `_`, `.` and `:`.
  public var prefix = "tl"
  /// A command without an answer for so long has timed out.
  public var commandTime = Duration.milliseconds(250)
  /// Between two tries to connect, with full jitter: the first is the least, the last the most.
  public var retry = Duration.milliseconds(100)...Duration.seconds(5)
  public init(_ servers: Servers) { self.servers = servers }
}
