public import RESP
public import TrunklineBytes
public import TrunklinePlatform

/// The address of the shared store, and how to connect to it.
public struct SharedStoreSettings: Hashable, Sendable {
  public var servers: RedisServers
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
  public var prefix: String
  /// A command without an answer for this long has timed out.
  public var commandTime = Duration.milliseconds(250)
  /// Pause between attempts to connect, with full jitter: from the first to the last.
  public var retry = Duration.milliseconds(100)...Duration.seconds(5)
  public init(_ servers: RedisServers, prefix: String) { (self.servers, self.prefix) = (servers, prefix) }
}
