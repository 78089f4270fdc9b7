public import PhoneNumbers
public import Trunking
public import TrunklineBytes
public import TrunklineMediaSession
public import TrunklineRTP
public import TrunklineSIPDialogs

/// Trunks, users and the routes between them. A value: SIGHUP replaces it whole, and running calls keep what they began with.
public struct Routing: Sendable {
  public struct Trunk: Sendable {
    public var name: String
    /// The destination of outbound INVITEs. Chosen for each call if there are `settings`; fixed (in tests) otherwise.
    public var peer: TrunkPeer?
    /// How the trunk is reached; nil: the trunk only calls in.
    public var settings: TrunkSettings?
    public var numbers = NumberRules()
    /// New calls a second, both directions; nil: no limit of its own.
    public var callsPerSecond: Int?
    /// In the order of preference: any of the catalog.
    public var codecs: [AudioEncoding]
    public var sourcePolicy: SourcePolicy
    public var mediaPeers: [IPNetwork]
    /// Networks that may send SIP as this trunk: RTP from them is learnt if `sourcePolicy` is `symmetric`.
    public var peers: [IPNetwork] = []
    /// Host names whose addresses are peers, too.
    public var peerNames: [String] = []
    /// The source of this call's INVITE; empty for a call that we make.
    public var calledFrom: [IPAddress] = []
    /// `prefer: relay`: app legs offer the trunk's codec first, so that nothing is transcoded.
    public var prefersRelay: Bool
    /// Calls at a time, both directions; nil: no limit of its own.
    public var maximumCalls: Int?
    /// What the SIP side offers, demands and allows.
    public var rules: TrunkRules
    /// `hold: signal`: an app's hold is a re-INVITE `sendonly`; else it is local.
    public var signalsHold: Bool
    /// `dtmf: info`: digits are sent and received by INFO, whatever the descriptions state.
    public var sendsDigitsByInfo: Bool
    /// INVITEs have no offer; it comes in the 200.
    public var offersLate: Bool
    /// How digits are transported with its media, in both directions.
    public var digits: DigitTransport
    /// The number of a caller who withholds it stays in journal and record; else it is written nowhere.
    public var recordsPrivateNumbers = false
    /// Emergency calls carry the location that an app gives.
    public var sendsLocation = false
    /// What the trunk hears while the app holds.
    public var holdAudio = HoldAudio.noise
    public var srtp = SRTPRule.off
    /// SRTP keys are sent over UDP and TCP too, where anyone on the path can read them.
    public var sendsKeysInClear = false
    /// Addresses of our own ports: no description makes us send there, unless the trunk is on loopback.
    public var ownAddresses: Set<IPAddress> = []

    public init(
      name: String, peer: TrunkPeer? = nil, codecs: [AudioEncoding] = [.pcmu, .pcma], sourcePolicy: SourcePolicy = .signalledIP,
      mediaPeers: [IPNetwork] = [], prefersRelay: Bool = false, maximumCalls: Int? = nil, rules: TrunkRules = TrunkRules(),
      signalsHold: Bool = false, sendsDigitsByInfo: Bool = false, offersLate: Bool = false,
      digits: DigitTransport = .auto
    ) {
      self.digits = digits
      (self.name, self.peer, self.codecs, self.sourcePolicy) = (name, peer, codecs, sourcePolicy)
      (self.mediaPeers, self.prefersRelay, self.maximumCalls) = (mediaPeers, prefersRelay, maximumCalls)
      (self.rules, self.signalsHold, self.sendsDigitsByInfo) = (rules, signalsHold, sendsDigitsByInfo)
      self.offersLate = offersLate
    }
  }
  public struct User: Sendable {
    public var id: String
    /// E.164 with `+`; the user calls from the first by default.
    public var numbers: [String]
    /// Accounts of incoming calls: by number, and for the numbers that are not in it.
    public var numberAccounts: [String: String] = [:]
    public var account: String?
    /// The display name for trunks; nil: none.
    public var name: String?
    /// An app may choose another display name (`call.start` with `from.n`).
    public var choosesName = false
    /// Diversions of calls that the user does not answer.
    public var diversions = Diversions()
    /// The user's country, in whose format numbers may be dialled; nil: that of the trunks.
    public var country: NumberPlan?
    /// The user's calls are recorded, unless recordings are off.
    public var isRecorded = false
    /// What the user may dial.
    public var allowance: UserAllowance
    public init(id: String, numbers: [String], allowance: UserAllowance = UserAllowance()) {
      (self.id, self.numbers, self.allowance) = (id, numbers, allowance)
    }
  }
  /// First match wins.
  public struct InboundRule: Sendable {
    public enum Target: Sendable, Equatable {
      /// The user whose number was called.
      case users
      /// This user, whatever number was called.
      case user(String)
      /// The users that a webhook names.
      case hook(Hook)
      /// A program, over a stream.
      case stream(StreamTarget)
    }
    public var trunk: String
    public var target: Target
    /// For a stream: the called numbers that the row is for; empty: all.
    public var numbers: [String] = []
    /// For users who have no rules of their own.
    public var diversions = Diversions()
    /// For users whose number has no account.
    public var account: String?
    public init(trunk: String, target: Target) { (self.trunk, self.target) = (trunk, target) }
  }
  /// One of the trunks of a route: lower priorities first, at random by weight within one (as in RFC 2782).
  public struct TrunkChoice: Sendable, Equatable {
    public var trunk: String
    public var priority: Int
    public var weight: UInt64
    public init(trunk: String, priority: Int = 1, weight: UInt64 = 1) {
      (self.trunk, self.priority, self.weight) = (trunk, priority, weight)
    }
  }
  /// Longest prefix wins, the first of equals.
  public struct OutboundRule: Sendable {
    public var prefix: String
    public var choices: [TrunkChoice]
    /// Emergency calls may use this route.
    public var allowsEmergency: Bool
    public init(prefix: String, trunk: String) { self.init(prefix: prefix, choices: [TrunkChoice(trunk: trunk)]) }
    public init(prefix: String, choices: [TrunkChoice], allowsEmergency: Bool = false) {
      (self.prefix, self.choices, self.allowsEmergency) = (prefix, choices, allowsEmergency)
    }
  }

  public var trunks: [Trunk]
  /// The users, by id and by number.
  public var directory: UserDirectory
  public var inbound: [InboundRule]
  public var outbound: [OutboundRule]
  /// The number plans of users without a country, from `settle`.
  package var callingPlans: [NumberPlan] = []
  /// The server that is queried for users that are not listed; nil: none.
  public var userSource: UserSource?
  /// Emergency numbers beside those of the user's region, compared as dialled; nil: no others, and `usualEmergencyNumbers` of a user whose
  /// region is not known.
  public var emergencyNumbers: Set<String>?
  /// Users who call each other are connected here, not by a trunk.
  public var connectsUsers = true
  /// Hosts to which programs may send calls, beside those of `inbound`'s own streams.
  public var streamHosts = StreamHosts()

  public init(
    trunks: [Trunk] = [], users: [User] = [], inbound: [InboundRule] = [], outbound: [OutboundRule] = [],
    emergencyNumbers: Set<String>? = nil
  ) {
    (self.trunks, directory, self.inbound, self.outbound) = (trunks, UserDirectory(users), inbound, outbound)
    self.emergencyNumbers = emergencyNumbers
  }

  /// The listed users. A change costs a new directory.
  public var users: [User] {
    get { directory.listed }
    set {
      directory = UserDirectory(
        newValue, anyone: directory.anyone, imported: directory.imported, grantRules: directory.grantRules)
    }
  }
}
