public import Bytes
public import JSONWebToken

/// Everything a gateway is told, checked: a value of this type can be served. Made by `ConfigurationFile`; names follow the file's keys.
public struct Settings: Sendable, Equatable {
  public var listen = Listen()
  public var media = Media()
  public var auth = Auth()
  public var trunks: [Trunk] = []
  public var users: [User] = []
  public var routes = Routes()
  public var timers = Timers()
  public var limits = CallLimits()
  /// Absolute path of the SQLite file with the journal of started calls.
  public var store = "trunkline.db"
  /// Absolute path of the JSON-lines file with one record per call.
  public var records = "calls.jsonl"
  public var log = Log()

  public struct Listen: Sendable, Equatable {
    public var sipUDP: SocketAddress? = SocketAddress(.loopback, 5060)
    public var sipTCP: SocketAddress? = SocketAddress(.loopback, 5060)
    public var app = SocketAddress(.loopback, 8080)
    public var appTLS: CertificateFiles?
    public var admin = SocketAddress(.loopback, 9090)
    /// The bearer token of the admin endpoint's calls API; always there off loopback.
    public var adminToken: Redacted<String>?
  }

  public struct CertificateFiles: Sendable, Equatable {
    public var certificate: String
    public var key: String
  }

  public struct Media: Sendable, Equatable {
    public var addresses: [MediaAddress] = [.automatic]
    public var threads = 2
    /// App legs of thread n share UDP port `appPort + n`.
    public var appPort: UInt16 = 40000
    /// One port per call on the trunk side.
    public var trunkPorts: ClosedRange<UInt16> = 41000...41999
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
    public enum Codec: String, Sendable, CaseIterable { case PCMU, PCMA }
    public enum RTPSource: String, Sendable, CaseIterable { case signalledIP = "signalled_ip", symmetric, strict }

    public var name: String
    /// Who may send SIP as this trunk.
    public var peers: [IPNetwork]
    /// Where outbound INVITEs go; nil for an inbound-only trunk.
    public var uri: TrunkURI?
    public var codecs: [Codec] = [.PCMU, .PCMA]
    public var username: String?
    public var password: Redacted<String>?
    public var rtpSource = RTPSource.signalledIP
    /// Further addresses that RTP may come from.
    public var mediaPeers: [IPNetwork] = []
    /// `prefer: relay`: apps are offered the trunk's codec first, so that nothing is transcoded.
    public var prefersRelay = false
    /// Calls at a time in both directions; nil is no limit of its own.
    public var maximumCalls: Int?
    /// How its calls behave.
    public var calls = Calls()
  }

  /// `sip:host[:port][;transport=udp|tcp]` with the address it resolved to.
  public struct TrunkURI: Sendable, Equatable {
    public enum Transport: String, Sendable { case udp, tcp }
    /// `host` or `host:port` as written.
    public var domain: String
    public var address: SocketAddress
    public var transport: Transport
  }

  public struct User: Sendable, Equatable {
    public var id: String
    public var numbers: [String]
    public var name: String?
  }

  public struct Routes: Sendable, Equatable {
    public struct Inbound: Sendable, Equatable {
      public enum Target: Sendable, Equatable {
        /// The user who has the called number.
        case users
        case user(String)
      }
      public var trunk: String
      public var target: Target
    }
    public struct Outbound: Sendable, Equatable {
      public var prefix: String
      public var trunk: String
    }
    /// First match wins.
    public var inbound: [Inbound] = []
    /// Longest prefix wins.
    public var outbound: [Outbound] = []
    /// Numbers that an app must dial over the device's own telephone; nil takes the built-in list.
    public var emergencyNumbers: [String]?
    /// The final response when every device declined: 486, or 603 by choice (a 6xx ends forking upstream).
    public var declineCode = 486
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

  public struct CallLimits: Sendable, Equatable {
    public var calls = 1_000
    public var callsPerUser = 8
    public var sessionsPerAddress = 200
  }

  public struct Log: Sendable, Equatable {
    public enum Level: String, Sendable, CaseIterable { case trace, debug, info, notice, warning, error }
    public enum Format: String, Sendable, CaseIterable { case text, json }
    public var level = Level.info
    public var format = Format.text
  }

  public init() {}
}
