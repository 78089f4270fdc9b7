public import Bytes
public import SharedStore
public import Trunking

extension Settings {
  /// What this gateway has beside it.
  public struct Cluster: Sendable, Equatable {
    public var edges: Edges?
    /// Nil: this gateway is alone behind its edges.
    public var nodes: Nodes?
    public init() {}
  }

  /// Other nodes, and the shared store that all of them share.
  public struct Nodes: Sendable, Equatable {
    /// Unique in the cluster, and the same after a restart.
    public var name = ""
    /// Where a device reaches this very node: `wss://…/v1/connect`.
    public var url = ""
    /// Where a program reaches this node's admin API: `http://10.0.0.5:7060`; nil: it is not told.
    public var admin: String?
    public var sharedStore = SharedStoreSettings(.redis(.init("127.0.0.1", 6379)))
    /// The same at all nodes: tokens are signed by keys derived from it.
    public var key = Redacted<[UInt8]>([])
    /// Connected calls of a node that is silent are closed after this.
    public var lostAfter = Duration.seconds(30)
    /// A lease ends so long after its last renewal.
    public var lease = Duration.seconds(6)
    public init() {}
  }

  /// Proxies of ours before this gateway.
  public struct Edges: Sendable, Equatable {
    /// Those that bring SIP, and name the trunk of each call.
    public var peers: [IPNetwork] = []
    /// Where our own requests go first; nil: to the trunks themselves.
    public var sip: SIPEdge?
    /// Those before the app port; part of `listen.appProxies`.
    public var http: [IPNetwork] = []
    public init() {}
  }

  public struct SIPEdge: Sendable, Equatable {
    /// As Route names it.
    public var uri: String
    public var server: ServerURI
  }
}
