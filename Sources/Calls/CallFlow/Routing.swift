public import Bytes
public import MediaSession
public import PhoneNumbers
public import RTP
public import SIPDialogs
public import Trunking

/// Which user may call which number over which trunk. A value: SIGHUP replaces it whole, and calls that run keep what they began with.
public struct Routing: Sendable {
  public struct Trunk: Sendable {
    public var name: String
    /// Where outbound INVITEs go. Drawn for each call when `settings` are there; fixed (in tests) otherwise.
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
    /// Who may send SIP as this trunk: of these RTP is learnt where `sourcePolicy` is `symmetric`.
    public var peers: [IPNetwork] = []
    /// Host names whose addresses are peers, too.
    public var peerNames: [String] = []
    /// Where the INVITE of this call came from; empty for a call that we make.
    public var calledFrom: [IPAddress] = []
    /// `prefer: relay`: app legs offer the trunk's codec first, so that nothing is transcoded.
    public var prefersRelay: Bool
    /// Calls at a time, both directions; nil: no limit of its own.
    public var maximumCalls: Int?
    /// What the SIP side offers, demands and allows.
    public var rules: TrunkRules
    /// `hold: signal`: an app's hold is a re-INVITE `sendonly`; else it is local.
    public var signalsHold: Bool
    /// `dtmf: info`: digits go and come by INFO, whatever the descriptions say.
    public var sendsDigitsByInfo: Bool
    /// INVITEs go without an offer; it comes in the 200.
    public var offersLate: Bool
    /// How digits come with its media and go with it.
    public var digits: DigitTransport
    /// The number of a caller who withholds it stays in journal and record; else it is written nowhere.
    public var recordsPrivateNumbers = false
    /// Emergency calls carry the location that an app gives.
    public var sendsLocation = false
    /// What the trunk hears while the app holds.
    public var holdAudio = HoldAudio.noise
    public var srtp = SRTPRule.off
    /// Keys of SRTP go over UDP and TCP too, where every host on the path can read them.
    public var sendsKeysInClear = false
    /// Where our own ports are: no description makes us send there, unless the trunk is on loopback.
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
    /// E.164 with `+`; the first is what the user calls from unless it says otherwise.
    public var numbers: [String]
    /// Whose calls come in on which account (ACC-1): by number, and of the numbers that are not in it.
    public var numberAccounts: [String: String] = [:]
    public var account: String?
    /// What trunks are shown beside the number; nil: nothing.
    public var name: String?
    /// An app may have another name shown (`call.start` with `from.n`).
    public var choosesName = false
    /// What becomes of calls that the user does not take.
    public var diversions = Diversions()
    /// Where the user is, so that numbers may be dialled as there; nil: as of the trunks.
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
      /// A program.
      case stream(StreamTarget)
    }
    public var trunk: String
    public var target: Target
    /// Of a stream: the called numbers that the row is for; empty: all.
    public var numbers: [String] = []
    /// For users who have no rule of their own.
    public var diversions = Diversions()
    /// For users whose number has no account of its own.
    public var account: String?
    public init(trunk: String, target: Target) { (self.trunk, self.target) = (trunk, target) }
  }
  /// One of the trunks of a route: lower priorities first, by chance and weight within one (as RFC 2782 does it).
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
    /// Emergency numbers may go this way.
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
  /// Where users without a country dial, as `settle` has found it.
  var callingPlans: [NumberPlan] = []
  /// The webhook for users that are not listed; nil: none.
  public var userSource: UserSource?
  /// Emergency numbers beside those of the user's region, compared as dialled; nil: no others, and `usualEmergencyNumbers` of a user whose
  /// region is not known.
  public var emergencyNumbers: Set<String>?
  /// Users who call each other are connected here, not by a trunk.
  public var connectsUsers = true
  /// Where programs may send calls, beside the hosts of `inbound`'s own streams.
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
