import Yams

extension Settings.Trunk {
  /// How the calls of a trunk behave: what is offered to it, demanded of it, and taken from it.
  public struct Calls: Sendable, Equatable {
    public enum Reliability: String, Sendable, CaseIterable { case off, supported, required }
    public enum Hold: String, Sendable, CaseIterable { case local, signal }
    public enum Digits: String, Sendable, CaseIterable { case auto, rfc4733, inband, info }
    public enum SRTP: String, Sendable, CaseIterable { case off, optional, required }
    public enum Redirects: String, Sendable, CaseIterable { case refuse, follow }

    /// `reliable`: provisional responses of RFC 3262.
    public var reliability = Reliability.supported
    /// `session_timer`: seconds that are asked for (RFC 4028); nil is `off`.
    public var sessionSeconds: Int? = 1_800
    /// `session_minimum`: the least that is taken.
    public var sessionMinimum = 90
    /// `hold`: an app's hold stays here, or is a re-INVITE.
    public var hold = Hold.local
    /// `dtmf`: how digits come from the trunk and go to it; `auto` is telephone-event where negotiated, else tones.
    public var digits = Digits.auto
    /// `redirects`: a 3xx ends the call, or is followed within the trunk's own hosts.
    public var redirects = Redirects.refuse
    /// `redirect_hosts`: further hosts of the trunk that a 3xx may name.
    public var redirectHosts: [String] = []
    /// `trust_identity`: P-Asserted-Identity, Diversion and History-Info are believed.
    public var trustsIdentity = false
    /// `transfers`: REFER and Replaces are served.
    public var allowsTransfer = false
    /// `late_offer`: INVITEs go without an offer.
    public var offersLate = false

    /// `srtp`: keys in the description (RFC 4568).
    public var srtp = SRTP.off
    /// `srtp_without_tls`: they go over UDP and TCP too, where everybody on the way can read them.
    public var srtpWithoutTLS = false

    static let keys = [
      "reliable", "session_timer", "session_minimum", "hold", "dtmf", "redirects", "redirect_hosts", "trust_identity", "transfers",
      "late_offer", "srtp", "srtp_without_tls",
    ]
  }
}

extension Walk {
  func calls(_ trunk: Section, _ path: String) -> Settings.Trunk.Calls {
    var out = Settings.Trunk.Calls()
    func flag(_ key: String) -> Bool { trunk.flag(key, default: false) }
    out.reliability = trunk.choice("reliable", default: out.reliability)
    if trunk.value("session_timer", "off or seconds", { $0 == "off" || Int($0) != nil ? $0 : nil }) == "off" {
      out.sessionSeconds = nil
    } else if trunk.has("session_timer") {
      out.sessionSeconds = trunk.integer("session_timer", in: Limits.sessionSeconds, default: 1_800)
    }
    out.sessionMinimum = trunk.integer("session_minimum", in: Limits.sessionSeconds, default: out.sessionMinimum)
    if let seconds = out.sessionSeconds, seconds < out.sessionMinimum {
      problem(path + ".session_timer", "is less than session_minimum, \(out.sessionMinimum)")
    }
    out.hold = trunk.choice("hold", default: out.hold)
    out.digits = trunk.choice("dtmf", default: out.digits)
    out.redirects = trunk.choice("redirects", default: out.redirects)
    out.redirectHosts = trunk.list("redirect_hosts", limit: 16, "a host name or address") { $0.isEmpty ? nil : $0.lowercased() }
    (out.trustsIdentity, out.allowsTransfer, out.offersLate) = (flag("trust_identity"), flag("transfers"), flag("late_offer"))
    (out.srtp, out.srtpWithoutTLS) = (trunk.choice("srtp", default: out.srtp), flag("srtp_without_tls"))
    return out
  }
}
