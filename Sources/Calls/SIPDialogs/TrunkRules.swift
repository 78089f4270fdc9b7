public import TrunklineBytes
import TrunklineSIP

/// The behaviour of one trunk's calls: what they offer, require and accept. Set by `Input.rules`; a trunk without rules has the
/// defaults. Active calls keep what they agreed on.
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
    /// The interval that we request, and the longest that we grant.
    public var seconds: Int
    /// The shortest that we accept; a smaller one gets 422. RFC 4028 §4 forbids less than 90, which is for tests; 4 is the
    /// minimum.
    public var minimumSeconds: Int
    public init(seconds: Int = 1_800, minimumSeconds: Int = 90) {
      self.minimumSeconds = max(minimumSeconds, Limits.labSessionSeconds)
      self.seconds = max(seconds, self.minimumSeconds)
    }
  }

  /// The part of an INVITE that contains the called number.
  public enum CalledNumber: String, Hashable, Sendable, CaseIterable {
    case requestURI = "request_uri"
    case to
    /// RFC 7315 §4.2.
    case pCalledPartyID = "p_called_party_id"
  }

  /// The handling of a 3xx.
  public enum Redirects: Hashable, Sendable {
    /// The call fails with it.
    case refuse
    /// Followed, at most `Limits.redirects` times, to the trunk's own host and to these.
    case follow(hosts: Set<String>)
  }

  /// The target of requests inside a dialog, if not the peer's Contact.
  public enum ContactRewriting: String, Hashable, Sendable, CaseIterable {
    /// The dialog's flow, if the Contact's address cannot be routed to from here: it is private or reserved and the peer's own is
    /// not, or the peer's Via shows a NAT.
    case auto
    /// The dialog's flow.
    case always
    /// The Contact (RFC 3261 §12.2.1.1).
    case never
  }

  public var reliability: Reliability
  /// Nil: no session timers.
  public var sessionTimer: SessionTimer?
  public var redirects: Redirects
  /// P-Asserted-Identity, Diversion and History-Info from this trunk are trusted, and ours are sent to it (RFC 3325 §5); others
  /// get P-Preferred-Identity.
  public var trustsIdentity: Bool
  /// REFER and INVITE with Replaces are accepted from this trunk.
  public var allowsTransfer: Bool

  /// If set, no list names this trunk's peers, so each request outside a dialog must answer a challenge with these.
  public var peerCredentials: Credentials?
  /// The only realm whose challenges get our credentials, so that a forged 401 cannot make us compute on them, and the realm of
  /// our challenges to its peers; nil: any, and `trunkline`.
  public var realm: String?

  /// The host where this trunk's peers reach us, if not that of the listeners.
  public var advertised: AdvertisedHost?
  public var contactRewriting = ContactRewriting.auto
  /// The user part of our Contact.
  public var contactUser = "trunkline"
  /// The first that names another than `contactUser` is the called number. A carrier that we register with puts our contact into
  /// the Request-URI, and the number elsewhere.
  public var called: [CalledNumber] = [.requestURI, .to]
  /// The user part of From in our INVITEs, for carriers that require an account there; nil: the caller's number.
  public var fromUser: String?
  /// The host part of From and of P-Asserted-Identity in our INVITEs; nil: that of the trunk's URI.
  public var fromDomain: String?

  /// The field of our INVITEs that identifies the caller, in addition to From.
  public var identityHeader = IdentityHeader.auto
  /// The caller in that field, whatever From shows: the number of the line, if the trunk allows another to be shown (CLIP no
  /// screening). Nil: the user's number; with `fromUser` the number that From cannot contain.
  public var identityUser: String?

  public enum IdentityHeader: String, Hashable, Sendable, CaseIterable {
    /// P-Asserted-Identity with `trustsIdentity`, else P-Preferred-Identity (RFC 3325 §9.1, §9.2).
    case auto
    case asserted, preferred
    /// Remote-Party-ID (draft-ietf-sip-privacy-04), of older trunks.
    case remotePartyID = "remote_party_id"
    case none
  }

  /// `user=phone` after telephone numbers in Request-URI, From, To and the identity field (RFC 3261 §19.1.1).
  public var marksPhones = false
  /// Header fields that carry a call's parameters in both directions; never a field that we write.
  public var parameters: [String] = []
  /// Fixed fields of our INVITE, REGISTER and OPTIONS, as they are written.
  public var extraFields: [ExtraField] = []

  /// A header field that the operator configured.
  public struct ExtraField: Hashable, Sendable {
    public let name: String
    public let value: String

    /// `Name: value`. Nil if it is not a field of RFC 3261 §25.1, is longer than `Limits.extraFieldBytes`, or has a name that
    /// only we write.
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

  /// The trunk by whose name this one's peers are known, if addresses do not distinguish them: several accounts at one carrier,
  /// or several trunks that accept any peer. Then the called contact decides, or the credentials. nil: the peers are its own.
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

  /// The option tags that we understand, all of which `Require` may contain.
  var options: [String] {
    (reliability == .off ? [] : ["100rel"]) + (sessionTimer == nil ? [] : ["timer"]) + (allowsTransfer ? ["replaces"] : [])
  }
}
