public import Bytes
public import JSONWebToken
public import RTP

/// Everything a gateway is told, checked: a value of this type can be served. Made by `ConfigurationFile`; names follow the
/// file's keys.
public struct Settings: Sendable, Equatable {
  public var listen = Listen()
  public var dns = DNS()
  public var media = Media()
  public var auth = Auth()
  public var trunks: [Trunk] = []
  public var users: [User] = []
  public var routes = Routes()
  /// Nil: no device is pushed to.
  public var push: Push?
  public var timers = Timers()
  /// Who checks the Identity of callers (STIR/SHAKEN).
  public var verifier: Verifier?
  public var limits = CallLimits()
  /// Absolute path of the SQLite file with the devices; the journal of started calls is beside it, `.started`.
  public var store = "trunkline.db"
  /// Absolute path of the JSON-lines file with one record per call.
  public var records = "calls.jsonl"
  public var log = Log()

  public struct Listen: Sendable, Equatable {
    public var sipUDP: [SocketAddress] = [SocketAddress(.loopback, 5060)]
    public var sipTCP: [SocketAddress] = [SocketAddress(.loopback, 5060)]
    public var sipTLS: [SocketAddress] = []
    /// Always there with `sipTLS`.
    public var sipCertificates: SIPCertificates?
    public var app = SocketAddress(.loopback, 8080)
    public var appTLS: CertificateFiles?
    /// Reverse proxies before the app port: for their connections alone the last X-Forwarded-For is the address that counts.
    public var appProxies: [IPNetwork] = []
    public var admin = SocketAddress(.loopback, 9090)
    /// The bearer token of the admin endpoint's calls API; always there off loopback.
    public var adminToken: Redacted<String>?
    public var adminTLS: CertificateFiles?
  }

  public struct CertificateFiles: Sendable, Equatable {
    public var certificate: String
    public var key: String
  }

  /// What the SIP TLS listeners show, and ask of who connects.
  public struct SIPCertificates: Sendable, Equatable {
    public enum Clients: String, Sendable, CaseIterable { case off, optional, required }
    public var own: CertificateFiles
    /// Who signs the certificates of those who connect (mutual TLS).
    public var authorities: String?
    public var clients = Clients.off
  }

  /// Name servers; empty: those of the system.
  public struct DNS: Sendable, Equatable {
    public var servers: [SocketAddress] = []
  }

  public struct Media: Sendable, Equatable {
    public var addresses: [MediaAddress] = [.automatic]
    public var threads = 2
    /// Of a core that one media thread may fill with calls; beyond it new calls are refused.
    public var loadLimitPercent = 85
    /// What apps are asked to send at most, in bit/s of Opus (`maxaveragebitrate`), while the trunk is telephone band.
    public var opusBitrate = 28_000
    /// App legs of thread n share UDP port `appPort + n`.
    public var appPort: UInt16 = 40000
    /// Two ports per call on the trunk side.
    public var trunkPorts: ClosedRange<UInt16> = 20_000...21_999
  }

  public enum MediaAddress: Sendable, Equatable {
    /// The machine's own addresses, loopback only if there is no other.
    case automatic
    case fixed(bind: IPAddress, advertise: IPAddress)
  }

  public struct Auth: Sendable, Equatable {
    public enum Algorithm: String, Sendable, CaseIterable { case HS256, RS256, ES256 }
    public enum Key: Sendable, Equatable {
      /// `key_file`: for HS256 the secret itself, otherwise a PEM.
      case keyFile(Redacted<[UInt8]>)
      /// `jwks_file`: a JSON Web Key Set (RFC 7517).
      case keySetFile(Redacted<[UInt8]>)
    }
    public var algorithm = Algorithm.HS256
    public var key = Key.keyFile(Redacted([]))
    public var audience = "trunkline"
    /// Values of the Origin header that may connect; empty allows pages of the gateway itself and clients without one.
    public var origins: [String] = []

    /// The keys that tokens are checked with; checked when the file was read.
    public func keys() throws(KeyError) -> KeySet {
      let pinned = JSONWebToken.Algorithm(rawValue: algorithm.rawValue) ?? .HS256
      switch key {
      case .keyFile(let bytes): return try KeySet(pinned, keyFile: bytes.exposed)
      case .keySetFile(let bytes): return try KeySet(pinned, jwksFile: bytes.exposed)
      }
    }
  }

  public struct Trunk: Sendable, Equatable {
    public enum RTPSource: String, Sendable, CaseIterable { case signalledIP = "signalled_ip", symmetric, strict }

    public var name: String
    /// Who may send SIP as this trunk.
    public var peers: [IPNetwork]
    /// Where outbound INVITEs go; nil for an inbound-only trunk.
    public var uri: TrunkURI?
    public var codecs: [AudioEncoding] = [.pcmu, .pcma]
    public var username: String?
    public var password: Redacted<String>?
    public var rtpSource = RTPSource.signalledIP
    /// Further addresses that RTP may come from, beside the SDP's; under `symmetric` also beside `peers`.
    public var mediaPeers: [IPNetwork] = []
    /// `prefer: relay`: apps are offered the trunk's codec first, so that nothing is transcoded.
    public var prefersRelay = false
    /// Calls at a time in both directions; nil is no limit of its own.
    public var maximumCalls: Int?
    /// How its calls behave.
    public var calls = Calls()
    /// New calls a second in both directions.
    public var callsPerSecond: Int?
    /// `peers: any`: sources that no trunk lists are this trunk's, once they have answered a challenge with `peerAuth`.
    public var takesAnyPeer = false
    public var peerUsername: String?
    public var peerPassword: Redacted<String>?
    /// The only realm whose challenges are answered with `auth`, and that of our own ones; nil: any, and `trunkline`.
    public var realm: String?
    public var registration: Registration?
    public var probe: Probe?
    public var numbers = Numbers()
    public var tls = TLS()
  }

  public struct Registration: Sendable, Equatable {
    public var user: String
    public var expires: Int
  }

  /// OPTIONS to a trunk.
  public struct Probe: Sendable, Equatable {
    public var interval = Duration.seconds(30)
    public var downAfter = 3
    public var upAfter = 2
  }

  /// How a trunk writes numbers.
  public struct Numbers: Sendable, Equatable {
    public struct Rule: Sendable, Equatable {
      public var prefix: String
      public var strip: Int
      public var add: String
    }
    public var country: String?
    public var international = "00"
    public var national = "0"
    public var inbound: [Rule] = []
    public var outbound: [Rule] = []
    public var caller: [Rule] = []
  }

  /// TLS toward a trunk.
  public struct TLS: Sendable, Equatable {
    /// Who may have signed the trunk's certificate; nil: the system's authorities.
    public var authorities: String?
    /// Ours, where the trunk asks for one.
    public var own: CertificateFiles?
    public var verifies = true
  }

  /// `sip[s]:host[:port][;transport=udp|tcp|tls]`. Names are resolved while the gateway runs.
  public struct TrunkURI: Sendable, Equatable {
    public enum Transport: String, Sendable { case udp, tcp, tls }
    /// `host` or `host:port` as written.
    public var domain: String
    /// Without brackets.
    public var host: String
    public var port: UInt16?
    /// nil leaves the choice to DNS.
    public var transport: Transport?
    public var isSecure: Bool
    /// The server's address where the host is one.
    public var address: SocketAddress? { IPAddress(host).map { SocketAddress($0, port ?? (isSecure ? 5061 : 5060)) } }
  }

  public struct User: Sendable, Equatable {
    public var id: String
    public var numbers: [String]
    /// The account (ACC-1) that calls to a number come in on, where the number has one, and of all others of the user.
    public var numberAccounts: [String: String] = [:]
    public var account: String?
    /// What trunks are shown beside the number.
    public var name: String?
    /// `display_name: true`: an app may have another name shown.
    public var choosesDisplayName = false
    /// Beginnings of numbers that the user may call; nil: any.
    public var allow: [String]?
    /// Outgoing calls at a time.
    public var maximumCalls: Int?
    public var callsPerHour: Int?
    public var diversions = Diversions()
  }

  public struct Routes: Sendable, Equatable {
    public struct Inbound: Sendable, Equatable {
      public enum Target: Sendable, Equatable {
        /// The user who has the called number.
        case users
        case user(String)
        case hook(Hook)
      }
      /// `route: { webhook: URL }`: somebody else says who it is.
      public struct Hook: Sendable, Equatable {
        public enum Fallback: Sendable, Equatable {
          case users
          case user(String)
          case code(Int)
        }
        public var url: String
        public var key: Redacted<[UInt8]>
        public var fallback = Fallback.users
      }
      public var trunk: String
      public var target: Target
      /// For users without a rule of their own.
      public var diversions = Diversions()
      /// For users whose number has no account.
      public var account: String?
    }
    public struct Outbound: Sendable, Equatable {
      /// Lower priorities first, by chance and weight within one.
      public struct Choice: Sendable, Equatable {
        public var trunk: String
        public var priority: Int
        public var weight: Int
      }
      public var prefix: String
      public var trunks: [Choice]
      /// Emergency numbers may go this way.
      public var allowsEmergency = false
    }
    /// First match wins.
    public var inbound: [Inbound] = []
    /// Longest prefix wins.
    public var outbound: [Outbound] = []
    /// Numbers that an app must dial over the device's own telephone; nil takes the built-in list.
    public var emergencyNumbers: [String]?
    /// The final response when every device declined: 486, or 603 by choice (a 6xx ends forking upstream).
    public var declineCode = 486
    /// PEM of the authorities that webhooks' certificates are checked with; nil: the system's.
    public var webhookAuthorities: String?
  }

  public struct Timers: Sendable, Equatable {
    public var ring = Duration.seconds(45)
    /// nil is `off`.
    public var early180: Duration? = .seconds(2)
    public var mediaGateWarm = Duration.seconds(10)
    public var mediaGateCold = Duration.seconds(20)
    public var mediaGateOutgoing = Duration.seconds(5)
    public var longestCall = Duration.seconds(4 * 3600)
    public var appGrace = Duration.seconds(30)
    /// How long SIGTERM waits for calls before it ends them.
    public var drain = Duration.seconds(600)
  }

  public struct Verifier: Sendable, Equatable {
    /// `https:`, or `http:` of this machine.
    public var url: String
    /// Who signs its certificate; nil: the system's authorities.
    public var authorities: String?
  }

  public struct CallLimits: Sendable, Equatable {
    public var calls = 1_000
    public var callsPerUser = 8
    public var sessionsPerAddress = 200
    /// What 90 % of stops new calls; 0: what the control group or the machine has.
    public var memoryMebibytes = 0
  }

  public struct Log: Sendable, Equatable {
    public enum Level: String, Sendable, CaseIterable { case trace, debug, info, notice, warning, error }
    public enum Format: String, Sendable, CaseIterable { case text, json }
    public var level = Level.info
    public var format = Format.text
  }

  public init() {}
}
