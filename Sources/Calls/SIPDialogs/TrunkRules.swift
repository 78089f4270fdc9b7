public import Bytes
import SIP

/// How calls of one trunk behave: what is offered to it, demanded of it, and taken from it. Given with `Input.rules`; a trunk
/// without rules has the defaults. Calls that run keep what they agreed on.
public struct TrunkRules: Hashable, Sendable {
  /// Reliable provisional responses (RFC 3262).
  public enum Reliability: String, Hashable, Sendable, CaseIterable {
    /// Neither offered nor accepted: `Require: 100rel` is 420.
    case off
    /// Offered; ours are reliable if the peer demands it, or supports it and they carry SDP.
    case supported
    /// Demanded: a peer without it gets 421.
    case required
  }

  /// Session timers (RFC 4028).
  public struct SessionTimer: Hashable, Sendable {
    /// What we ask for, and the most that we grant.
    public var seconds: Int
    /// The least that we take; smaller is 422. RFC 4028 §4 forbids less than 90, which is for tests; 4 is the floor.
    public var minimumSeconds: Int
    public init(seconds: Int = 1_800, minimumSeconds: Int = 90) {
      self.minimumSeconds = max(minimumSeconds, Limits.labSessionSeconds)
      self.seconds = max(seconds, self.minimumSeconds)
    }
  }

  /// Where an INVITE says which number is called.
  public enum CalledNumber: String, Hashable, Sendable, CaseIterable {
    case requestURI = "request_uri"
    case to
    /// RFC 7315 §4.2.
    case pCalledPartyID = "p_called_party_id"
  }

  /// What becomes of a 3xx.
  public enum Redirects: Hashable, Sendable {
    /// The call fails with it.
    case refuse
    /// Followed, at most `Limits.redirects` times, to the trunk's own host and to these.
    case follow(hosts: Set<String>)
  }

  /// Where requests inside a dialog go, if not where the peer's Contact says.
  public enum ContactRewriting: String, Hashable, Sendable, CaseIterable {
    /// The way the dialog came, if the Contact's address can not be routed to from here: it is private or reserved and the peer's own is not, or
    /// the peer's Via shows a NAT.
    case auto
    /// The way the dialog came.
    case always
    /// Where the Contact says (RFC 3261 §12.2.1.1).
    case never
  }

  public var reliability: Reliability
  /// Nil: no session timers.
  public var sessionTimer: SessionTimer?
  public var redirects: Redirects
  /// P-Asserted-Identity, Diversion and History-Info of this trunk are believed, and it is given ours (RFC 3325 §5);
  /// others get P-Preferred-Identity.
  public var trustsIdentity: Bool
  /// REFER and INVITE with Replaces are taken from this trunk.
  public var allowsTransfer: Bool

  /// Given: no list names this trunk's peers, so each request outside a dialog must answer a challenge with these.
  public var peerCredentials: Credentials?
  /// The only realm whose challenges get our credentials, so that a forger of a 401 cannot make us compute on them, and the one of the
  /// challenges to its peers; nil: any, and `trunkline`.
  public var realm: String?

  /// Where this trunk's peers reach us, if not where the listeners say.
  public var advertised: AdvertisedHost?
  public var contactRewriting = ContactRewriting.auto
  /// The user part of our Contact.
  public var contactUser = "trunkline"
  /// The first that names another than `contactUser` says the called number. A carrier that we register with puts our contact into the
  /// Request-URI, and the number elsewhere.
  public var called: [CalledNumber] = [.requestURI, .to]
  /// The user part of From in our INVITEs, for carriers that want an account there; nil: the caller's number.
  public var fromUser: String?
  /// The host part of From and of P-Asserted-Identity in our INVITEs; nil: that of the trunk's URI.
  public var fromDomain: String?

  /// The field of our INVITEs that says who calls, beside From.
  public var identityHeader = IdentityHeader.auto
  /// Who calls in that field, whatever From shows: the number of the line, where the trunk lets another be shown (CLIP no screening). Nil: the user's
  /// number; with `fromUser` the number that From does not have the room for.
  public var identityUser: String?

  public enum IdentityHeader: String, Hashable, Sendable, CaseIterable {
    /// P-Asserted-Identity with `trustsIdentity`, else P-Preferred-Identity (RFC 3325 §9.1, §9.2).
    case auto
    case asserted, preferred
    /// Remote-Party-ID (draft-ietf-sip-privacy-04), of older trunks.
    case remotePartyID = "remote_party_id"
    case none
  }

  /// `user=phone` behind telephone numbers in Request-URI, From, To and the identity field (RFC 3261 §19.1.1).
  public var marksPhones = false
  /// Header fields that carry a call's parameters both ways; none of ours.
  public var parameters: [String] = []
  /// Fixed fields of our INVITE, REGISTER and OPTIONS, as they are written.
  public var extraFields: [ExtraField] = []

  /// A header field that the operator has named.
  public struct ExtraField: Hashable, Sendable {
    public let name: String
    public let value: String

    /// `Name: value`. Nil for what is no field of RFC 3261 §25.1, is longer than `Limits.extraFieldBytes`, or has a name that is ours to write.
    public init?(_ text: String) {
      guard let colon = text.firstIndex(of: ":") else { return nil }
      name = String(text[..<colon])
      value = String(text[text.index(after: colon)...].drop { $0 == " " })
      let isToken =
        !name.isEmpty
        && name.utf8.allSatisfy { byte in
          (48...57).contains(byte) || (65...90).contains(byte) || (97...122).contains(byte) || "-.!%*_+`'~".utf8.contains(byte)
        }
      let isLine = !value.isEmpty && value.utf8.allSatisfy { $0 >= 32 && $0 != 127 }
      guard isToken, isLine, text.utf8.count <= Limits.extraFieldBytes, HeaderName(name) == .other else { return nil }
    }
  }

  /// The trunk by whose name this one's peers are known, where addresses do not tell them apart: several accounts at one carrier, or
  /// several trunks that take any peer. Then the called contact decides, or the credentials. nil: the peers are its own.
  public var peersKnownAs: String?

  public init(
    reliability: Reliability = .supported, sessionTimer: SessionTimer? = SessionTimer(), redirects: Redirects = .refuse,
    trustsIdentity: Bool = false, allowsTransfer: Bool = false
  ) {
    (self.reliability, self.sessionTimer, self.redirects) = (reliability, sessionTimer, redirects)
    (self.trustsIdentity, self.allowsTransfer) = (trustsIdentity, allowsTransfer)
  }

  /// Allow (RFC 3261 §20.5).
  var methods: String {
    "INVITE, ACK, CANCEL, BYE, OPTIONS, INFO, UPDATE"
      + (reliability == .off ? "" : ", PRACK") + (allowsTransfer ? ", REFER, NOTIFY" : "")
  }

  /// The option tags that we understand, all of which `Require` may hold.
  var options: [String] {
    (reliability == .off ? [] : ["100rel"]) + (sessionTimer == nil ? [] : ["timer"]) + (allowsTransfer ? ["replaces"] : [])
  }
}
