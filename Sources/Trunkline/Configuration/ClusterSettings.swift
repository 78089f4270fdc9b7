public import RESP
public import TrunklineBytes
public import TrunklinePlatform
public import TrunklineSIPDialogs

extension Settings {
  /// The other nodes and the edges of this gateway.
  public struct Cluster: Sendable, Equatable {
    public var edges: Edges?
    /// Nil: this gateway is alone behind its edges.
    public var nodes: Nodes?
    public init() {}
  }

  /// Other nodes, and the shared store of all nodes.
  public struct Nodes: Sendable, Equatable {
    /// Unique in the cluster, and the same after a restart.
    public var name = ""
    /// The URL at which a device reaches this very node: `wss://…/v1/connect`.
    public var url = ""
    /// The URL at which a program reaches this node's admin API: `http://10.0.0.5:7060`; nil: it is not published.
    public var admin: String?
    public var sharedStore = SharedStore(.redis(.init("127.0.0.1", 6379)))
    /// The same at all nodes: tokens are signed by keys derived from it.
    public var key = Redacted<[UInt8]>([])
    /// Connected calls of a node are closed after it was silent for this long.
    public var lostAfter = Duration.seconds(30)
    /// A lease expires so long after its last renewal.
    public var lease = Duration.seconds(6)
    public init() {}
  }

  /// Redis, which holds what nodes share.
  public struct SharedStore: Sendable, Equatable {
    public var servers: RedisServers
    /// The name of an ACL user; nil: the password alone.
    public var username: String?
    public var password: Redacted<String>?
    /// Nil: no TLS.
    public var tls: TLSFiles?
    /// The prefix of every key and channel: letters, digits, `-`, `_`, `.` and `:`.
    public var prefix = "tl"
    public init(_ servers: RedisServers) { self.servers = servers }
  }

  /// Our proxies before this gateway.
  public struct Edges: Sendable, Equatable {
    /// Proxies that forward SIP, and name the trunk of each call.
    public var peers: [IPNetwork] = []
    /// The next hop of our own requests; nil: the trunks themselves.
    public var sip: SIPEdge?
    /// Proxies before the app port; part of `listen.appProxies`.
    public var http: [IPNetwork] = []
    public init() {}
  }

  public struct SIPEdge: Sendable, Equatable {
    /// The URI for Route.
    public var uri: String
    public var server: ServerURI
  }
}
