public import AudioCodecs
public import Bytes
public import MediaSession
public import SIPDialogs

/// Who may call whom over what. A value: SIGHUP replaces it whole, and calls that run keep what they began with.
public struct Routing: Sendable {
  public struct Trunk: Sendable {
    public var name: String
    /// Where outbound INVITEs go; nil: the trunk only calls in.
    public var peer: TrunkPeer?
    /// In the order of preference: `pcmu`, `pcma`.
    public var codecs: [AudioEncoding]
    public var sourcePolicy: SourcePolicy
    public var mediaPeers: [IPNetwork]
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

    public init(
      name: String, peer: TrunkPeer? = nil, codecs: [AudioEncoding] = [.pcmu, .pcma], sourcePolicy: SourcePolicy = .signalledIP,
      mediaPeers: [IPNetwork] = [], prefersRelay: Bool = false, maximumCalls: Int? = nil, rules: TrunkRules = TrunkRules(),
      signalsHold: Bool = false, sendsDigitsByInfo: Bool = false, offersLate: Bool = false
    ) {
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
    public init(id: String, numbers: [String]) { (self.id, self.numbers) = (id, numbers) }
  }
  /// First match wins.
  public struct InboundRule: Sendable {
    public enum Target: Sendable, Equatable {
      /// The user whose number was called.
      case users
      /// This user, whatever number was called.
      case user(String)
    }
    public var trunk: String
    public var target: Target
    public init(trunk: String, target: Target) { (self.trunk, self.target) = (trunk, target) }
  }
  /// Longest prefix wins, the first of equals.
  public struct OutboundRule: Sendable {
    public var prefix: String
    public var trunk: String
    public init(prefix: String, trunk: String) { (self.prefix, self.trunk) = (prefix, trunk) }
  }

  public var trunks: [Trunk]
  public var users: [User]
  public var inbound: [InboundRule]
  public var outbound: [OutboundRule]
  /// Numbers that an app must dial over the device's own telephone; compared as dialled.
  public var emergencyNumbers: Set<String>

  public init(
    trunks: [Trunk] = [], users: [User] = [], inbound: [InboundRule] = [], outbound: [OutboundRule] = [],
    emergencyNumbers: Set<String> = ["112", "911", "999", "110", "118", "119", "000", "111"]
  ) {
    (self.trunks, self.users, self.inbound, self.outbound) = (trunks, users, inbound, outbound)
    self.emergencyNumbers = emergencyNumbers
  }
}
