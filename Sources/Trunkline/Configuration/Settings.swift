public import AppSessions
public import Bytes
public import CallFlow
public import JSONWebToken
public import MediaSession
public import Platform
public import SIPDialogs
public import Trunking

/// Everything a gateway is told, checked: a value of this type can be served. Made by `ConfigurationFile`. What a machine
/// knows is the machine's own type, with its defaults; the rest is named as the file's keys.
public struct Settings: Sendable {
  public var listen = Listen()
  /// Whose peers reach us at the addresses that we listen on.
  public var localNetworks = [LocalNetwork.interfaces]
  public var admin = Admin()
  public var branding = Branding()
  public var dns = DNS()
  public var media = Media()
  public var auth = Auth()
  public var trunks: [Trunk] = []
  public var users: [Routing.User] = []
  /// `users: any`: what holds for every other `sub` of a valid token; its `id` is empty. Nil: only `users` may log in.
  public var anyUser: Routing.User?
  /// What login tokens may grant to users that are not listed: `claims` of `any`. Nil: nothing.
  public var grantRules: GrantRules?
  /// Who is asked about users that are not listed: `webhook` of `any`.
  public var userSource: UserSource?
  public var routes = Routes()
  /// `timers:` and `limits:`, and what other sections say about calls.
  public var calls = CallFlow.Configuration()
  /// Nil: no device is pushed to.
  public var push: Push?
  /// Nil: one machine alone.
  public var cluster: Cluster?
  /// How long SIGTERM waits for calls before it ends them.
  public var drain = Duration.seconds(600)
  /// Who checks the Identity of callers (STIR/SHAKEN).
  public var verifier: Verifier?
  /// What clients are told in `welcome.ice`; nil: nothing.
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
  /// Where `trunkline users import` puts numbers: beside the store.
  public var numbers: String { store + ".numbers" }
  /// The SQLite file of directories and histories: beside the store.
  public var directory: String { store + ".directory" }
  /// Absolute path of the JSON-lines file with one record per call.
  public var records = "calls.jsonl"
  /// Each record also goes to the stream of the cluster.
  public var streamsRecords = false
  public var log = Log()
  /// Where all SIP is sent for capture; nil: nowhere.
  public var hep: HEP?
  /// What is probably not meant, in the order of the file; `serve --check` prints it.
  public var warnings: [Problem] = []

  /// `history:`: how long calls stay in the lists of who made or got them.
  public struct History: Sendable, Equatable {
    public var keep = Duration.seconds(90 * 86_400)
    /// Calls of one user; 0: none are kept.
    public var perUser = 1_000
  }

  public struct Listen: Sendable, Equatable {
    public var sipUDP: [SocketAddress] = [SocketAddress(.loopback, 5060)]
    public var sipTCP: [SocketAddress] = [SocketAddress(.loopback, 5060)]
    public var sipTLS: [SocketAddress] = []
    /// What peers are told instead of a SIP listener's address.
    public var advertised: [AdvertisedAddresses.Listener] = []
    /// Always there with `sipTLS`.
    public var sipServer: TLSServerSettings?
    public var app = SocketAddress(.loopback, 8080)
    public var appTLS: TLSFiles?
    /// Below which the app port's pages and its WebSocket are, where a proxy hands its path on; empty: at the root.
    public var appPath = ""
    /// Reverse proxies before the app port: for their connections alone the last X-Forwarded-For is the address that counts.
    public var appProxies: [IPNetwork] = []
    public var admin = SocketAddress(.loopback, 7060)
    /// The bearer token of the admin endpoint's calls API; always there off loopback.
    public var adminToken: Redacted<String>?
    public var adminTLS: TLSFiles?
  }

  /// The admin API.
  public struct Admin: Sendable {
    public static let requestsPerSecond = 20
    /// Beside `listen.adminToken`, which may do everything.
    public var tokens: [APIToken] = []
    /// What programs may play in calls, by file name.
    public var recordings: [String: Announcement] = [:]
  }

  public enum LocalNetwork: Sendable, Equatable {
    /// Those that the machine's interfaces are in.
    case interfaces
    case network(IPNetwork)
  }

  /// Name servers; empty: those of the system.
  public struct DNS: Sendable, Equatable {
    public var servers: [SocketAddress] = []
  }

  public struct Media: Sendable, Equatable {
    public var addresses = [MediaAddress.automatic(advertise: nil)]
    public var threads = 2
    /// Of a core that one media thread may fill with calls; beyond it new calls are refused.
    public var loadLimitPercent = 85
    /// App legs of thread n share UDP port `appPort + n`.
    public var appPort: UInt16 = 40000
    /// Two ports per call on the trunk side.
    public var trunkPorts: ClosedRange<UInt16> = 20_000...21_999
  }

  public enum MediaAddress: Sendable, Equatable {
    /// The machine's own addresses, loopback only if there is no other. `advertise` stands for the one on the route toward it.
    case automatic(advertise: AdvertisedHost?)
    /// Without `advertise` peers are told `bind`.
    case fixed(bind: IPAddress, advertise: AdvertisedHost?)
  }

  public struct Auth: Sendable, Equatable {
    public enum Key: Sendable, Equatable {
      /// `key_file`: for HS256 the secret itself, otherwise a PEM.
      case keyFile(Redacted<[UInt8]>)
      /// `jwks_file`: a JSON Web Key Set (RFC 7517).
      case keySetFile(Redacted<[UInt8]>)
      /// `jwks_url`, and who signs its certificate; nil: the system's authorities.
      case keySetURL(String, authorities: String?)
    }
    public var algorithm = JSONWebToken.Algorithm.HS256
    public var key = Key.keyFile(Redacted([]))
    public var audience = "trunkline"
    /// Values of the Origin header that may connect; empty allows pages of the gateway itself and clients without one.
    public var origins: [String] = []

    /// The keys that tokens are checked with; checked when the file was read. Of a URL: none yet.
    public func keys() throws(KeyError) -> KeySet {
      switch key {
      case .keyFile(let bytes): return try KeySet(algorithm, keyFile: bytes.exposed)
      case .keySetFile(let bytes): return try KeySet(algorithm, jwksFile: bytes.exposed)
      case .keySetURL: return KeySet(awaited: algorithm)
      }
    }
  }

  public struct Trunk: Sendable {
    /// How it is reached, and what its calls may do.
    public var routing: Routing.Trunk
    /// Who may have signed the trunk's certificate, and what we show where it asks for one.
    public var tls = TLSFiles()
    public var verifiesCertificate = true
    /// What the trunk's certificate must be for; empty: the host of `uri`.
    public var expectedNames: [ExpectedName] = []

    public init(routing: Routing.Trunk) { self.routing = routing }
    public var name: String { routing.name }
    /// Who may send SIP as this trunk.
    public var peers: [IPNetwork] { routing.peers }
    /// `peers: any`: sources that no trunk lists are this trunk's, once they have answered a challenge with `peer_auth`.
    public var acceptsAnyPeer: Bool { routing.rules.peerCredentials != nil }
    /// Where outbound INVITEs go; nil for an inbound-only trunk.
    public var uri: ServerURI? { routing.settings?.server }
    /// The server's address where the URI's host is one.
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
    /// Users who call each other are connected without a trunk.
    public var connectsUsers = true
    /// Numbers that an app must dial over the device's own telephone.
    public var emergencyNumbers = Routing().emergencyNumbers
    /// PEM of the authorities that webhooks' certificates are checked with; nil: the system's.
    public var webhookAuthorities: String?
    /// Where programs may send calls, beside the streams of `inbound`.
    public var streamHosts = StreamHosts()
    /// PEM that signs the certificates of streams' peers; nil: the system's authorities.
    public var streamAuthorities: String?
  }

  public struct Verifier: Sendable, Equatable {
    /// `https:`, or `http:` of this machine.
    public var url: String
    /// Who signs its certificate; nil: the system's authorities.
    public var authorities: String?
  }

  /// Those of `limits:` that are not the call machine's.
  public struct ProcessLimits: Sendable, Equatable {
    public var sessionsPerAddress = 200
    /// What 90 % of stops new calls; 0: what the control group or the machine has.
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

  /// A capture server that takes HEP3, such as Homer.
  public struct HEP: Sendable, Equatable {
    public var address: SocketAddress
    /// The capture agent's number there.
    public var captureID: UInt32 = 2_001
    /// What the server asks for.
    public var key: Redacted<[UInt8]>?
    public init(address: SocketAddress) { self.address = address }
  }

  public init() {}
}
