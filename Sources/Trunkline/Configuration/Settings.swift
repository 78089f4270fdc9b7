public import AppSessions
public import CallModel
public import JSONWebToken
import Trunking
public import TrunklineBytes
public import TrunklineMediaSession
public import TrunklinePlatform
public import TrunklineSIPDialogs

/// The checked configuration of a gateway: every value of this type can be served. Made by `ConfigurationFile`. Settings of a
/// machine have the machine's own type, with its defaults; the others are named as the file's keys.
public struct Settings: Sendable {
  public var listen = Listen()
  /// Networks whose peers reach us at our listening addresses.
  public var localNetworks = [LocalNetwork.interfaces]
  public var admin = Admin()
  public var branding = Branding()
  public var dns = DNS()
  public var media = Media()
  public var auth = Auth()
  public var trunks: [Trunk] = []
  public var users: [Routing.User] = []
  /// `users: any`: the rules for every other `sub` of a valid token; its `id` is empty. Nil: only `users` may log in.
  public var anyUser: Routing.User?
  /// Grants that login tokens may give to unlisted users: `claims` of `any`. Nil: none.
  public var grantRules: GrantRules?
  /// The webhook that answers for unlisted users: `webhook` of `any`.
  public var userSource: UserSource?
  public var routes = Routes()
  /// `timers:` and `limits:`, and settings of calls in other sections.
  public var calls = CallConfiguration()
  /// Nil: no pushes are sent.
  public var push: Push?
  /// Nil: a single node.
  public var cluster: Cluster?
  /// How long SIGTERM waits for calls before it ends them.
  public var drain = Duration.seconds(600)
  /// The server that verifies the Identity of callers (STIR/SHAKEN).
  public var verifier: Verifier?
  /// The TURN servers in `welcome.ice`; nil: none.
  public var turn: TURNServers?
  /// Nil: nothing is recorded.
  public var recording: Recording?
  /// Nil: no events are kept.
  public var events: Events?
  public var history = History()
  public var limits = ProcessLimits()
  /// Absolute path of the SQLite file with the devices; the journal of started calls is beside it, `.started`.
  public var store = "trunkline.db"
  /// The folder of the event journal: beside the store.
  public var eventFolder: String { store + ".events" }
  /// The file of `trunkline users import`: beside the store.
  public var numbers: String { store + ".numbers" }
  /// The SQLite file of directories and histories: beside the store.
  public var directory: String { store + ".directory" }
  /// Absolute path of the JSON-lines file with one record per call.
  public var records = "calls.jsonl"
  /// Each record also goes to the stream of the cluster.
  public var streamsRecords = false
  public var log = Log()
  /// The server to which all SIP is sent for capture; nil: none.
  public var hep: HEP?
  /// Probable mistakes, in the order of the file; `serve --check` prints them.
  public var warnings: [Problem] = []

  /// `history:`: how long calls stay in the histories of their users.
  public struct History: Sendable, Equatable {
    public var keep = Duration.seconds(90 * 86_400)
    /// Calls of one user; 0: none are stored.
    public var perUser = 1_000
  }

  public struct Listen: Sendable, Equatable {
    public var sipUDP: [SocketAddress] = [SocketAddress(.loopback, 5060)]
    public var sipTCP: [SocketAddress] = [SocketAddress(.loopback, 5060)]
    public var sipTLS: [SocketAddress] = []
    /// Addresses that are advertised to peers instead of a SIP listener's.
    public var advertised: [AdvertisedAddresses.Listener] = []
    /// Set whenever `sipTLS` is not empty.
    public var sipServer: TLSServerSettings?
    public var app = SocketAddress(.loopback, 8080)
    public var appTLS: TLSFiles?
    /// The path prefix of the app port's pages and WebSocket, where a proxy forwards its path; empty: the root.
    public var appPath = ""
    /// Reverse proxies before the app port: only for their connections the last X-Forwarded-For is the client's address.
    public var appProxies: [IPNetwork] = []
    public var admin = SocketAddress(.loopback, 7060)
    /// The bearer token of the admin endpoint's calls API; always set off loopback.
    public var adminToken: Redacted<String>?
    public var adminTLS: TLSFiles?
  }

  /// The admin API.
  public struct Admin: Sendable {
    public static let requestsPerSecond = 20
    /// Tokens with scopes, beside `listen.adminToken`, which has all of them.
    public var tokens: [APIToken] = []
    /// Recordings that programs may play in calls, by file name.
    public var recordings: [String: Announcement] = [:]
  }

  public enum LocalNetwork: Sendable, Equatable {
    /// The networks of the machine's interfaces.
    case interfaces
    case network(IPNetwork)
  }

  /// Name servers; empty: the system's.
  public struct DNS: Sendable, Equatable {
    public var servers: [SocketAddress] = []
  }

  public struct Media: Sendable, Equatable {
    public var addresses = [MediaAddress.automatic(advertise: nil)]
    public var threads = 2
    /// The share of a core that one media thread may use for calls; beyond it new calls are refused.
    public var loadLimitPercent = 85
    /// App legs of thread n share UDP port `appPort + n`.
    public var appPort: UInt16 = 40000
    /// Two ports per call on the trunk side.
    public var trunkPorts: ClosedRange<UInt16> = 20_000...21_999
  }

  public enum MediaAddress: Sendable, Equatable {
    /// The machine's own addresses, loopback only if there is no other. `advertise` replaces the one on the route toward it.
    case automatic(advertise: AdvertisedHost?)
    /// Without `advertise`, `bind` is advertised to peers.
    case fixed(bind: IPAddress, advertise: AdvertisedHost?)
  }

  public struct Auth: Sendable, Equatable {
    public enum Key: Sendable, Equatable {
      /// `key_file`: for HS256 the secret itself, otherwise a PEM.
      case keyFile(Redacted<[UInt8]>)
      /// `jwks_file`: a JSON Web Key Set (RFC 7517).
      case keySetFile(Redacted<[UInt8]>)
      /// `jwks_url`, and the authorities of its certificate; nil: the system's.
      case keySetURL(String, authorities: String?)
    }
    public var algorithm = JSONWebToken.Algorithm.HS256
    public var key = Key.keyFile(Redacted([]))
    public var audience = "trunkline"
    /// Values of the Origin header that may connect; empty: pages of the gateway itself, and clients without the header.
    public var origins: [String] = []

    /// The keys for checking tokens; they were validated when the file was read. Of a URL: none yet.
    public func keys() throws(KeyError) -> KeySet {
      switch key {
      case .keyFile(let bytes): return try KeySet(algorithm, keyFile: bytes.exposed)
      case .keySetFile(let bytes): return try KeySet(algorithm, jwksFile: bytes.exposed)
      case .keySetURL: return KeySet(awaited: algorithm)
      }
    }
  }

  public struct Trunk: Sendable {
    /// The trunk's routing, and the permissions of its calls.
    public var routing: Routing.Trunk
    /// The authorities of the trunk's certificate, and our certificate if the trunk requests one.
    public var tls = TLSFiles()
    public var verifiesCertificate = true
    /// The names that the trunk's certificate must have; empty: the host of `uri`.
    public var expectedNames: [ExpectedName] = []

    public init(routing: Routing.Trunk) { self.routing = routing }
    public var name: String { routing.name }
    /// Networks that may send SIP as this trunk.
    public var peers: [IPNetwork] { routing.peers }
    /// `peers: any`: unlisted sources belong to this trunk, once they have answered a challenge with `peer_auth`.
    public var acceptsAnyPeer: Bool { routing.rules.peerCredentials != nil }
    /// The target of outbound INVITEs; nil for an inbound-only trunk.
    public var uri: ServerURI? { routing.settings?.server }
    /// The server's address if the URI's host is an address.
    public var serverAddress: SocketAddress? {
      guard let uri, let address = uri.address else { return nil }
      return SocketAddress(address, uri.port ?? (uri.isSecure ? 5061 : 5060))
    }
  }

  public struct Routes: Sendable {
    /// First match wins.
    public var inbound: [Routing.InboundRule] = []
    /// Longest prefix wins.
    public var outbound: [Routing.OutboundRule] = []
    /// Calls between users are connected without a trunk.
    public var connectsUsers = true
    /// Numbers that an app must dial over the device's own telephone.
    public var emergencyNumbers = Routing().emergencyNumbers
    /// PEM of the authorities that webhooks' certificates are checked with; nil: the system's.
    public var webhookAuthorities: String?
    /// Hosts to which programs may stream calls, beside the streams of `inbound`.
    public var streamHosts = StreamHosts()
    /// PEM of the authorities of streams' peers; nil: the system's.
    public var streamAuthorities: String?
  }

  public struct Verifier: Sendable, Equatable {
    /// `https:`, or `http:` of this machine.
    public var url: String
    /// The authorities of its certificate; nil: the system's.
    public var authorities: String?
  }

  /// The keys of `limits:` that do not belong to the call machine.
  public struct ProcessLimits: Sendable, Equatable {
    public var sessionsPerAddress = 200
    /// New calls are refused at 90 % of this; 0: the memory of the control group or of the machine.
    public var memoryMebibytes = 0
    /// A crash may leave a core.
    public var dumpsCore = false
  }

  public struct Log: Sendable, Equatable {
    public enum Level: String, Sendable, CaseIterable { case trace, debug, info, notice, warning, error }
    public enum Format: String, Sendable, CaseIterable { case text, json }
    public enum Numbers: String, Sendable, CaseIterable { case masked, full }
    public var level = Level.info
    public var format = Format.text
    public var numbers = Numbers.masked
  }

  /// A capture server that accepts HEP3, such as Homer.
  public struct HEP: Sendable, Equatable {
    public var address: SocketAddress
    /// Our number at the capture server.
    public var captureID: UInt32 = 2_001
    /// The password that the server requires.
    public var key: Redacted<[UInt8]>?
    public init(address: SocketAddress) { self.address = address }
  }

  public init() {}
}
