import TrunklineBytes
public import TrunklineSIP

/// An INVITE that opens a call.
public struct InboundInvite: Sendable {
  /// A party named by a SIP or tel URI.
  public struct Party: Hashable, Sendable {
    /// The user part, unescaped, without parameters; separators are removed from telephone numbers (`+1-555` becomes `+1555`).
    public var number: String
    public var displayName: String?
    /// Empty for tel URIs.
    public var host: String
    public init(number: String, displayName: String? = nil, host: String = "") {
      (self.number, self.displayName, self.host) = (number, displayName, host)
    }
  }

  public var trunk: String
  public var source: Flow
  public var callID: String
  /// The From header. Show `assertedIdentity ?? from` unless `isPrivate`.
  public var from: Party
  /// The called number, from the Request-URI.
  public var to: Party
  /// First P-Asserted-Identity (RFC 3325); nil if absent, or if the trunk is not trusted with it.
  public var assertedIdentity: Party?
  /// Privacy `id`, `user` or `header` (RFC 3323), or an anonymous From.
  public var isPrivate: Bool
  /// The offer; nil for a late offer: then `answer` carries our offer and `acknowledged` the peer's answer.
  public var sdp: String?
  /// Number of Diversion (RFC 5806) values, or of History-Info entries after the first if there are more.
  public var diversions: Int
  /// The parties that the call was for before, the latest first: Diversion (RFC 5806), else History-Info (RFC 7044). Empty unless
  /// the trunk is trusted with it.
  public var divertedFrom: [Party] = []
  /// Another node has redirected it here: it is not redirected again.
  public var isSteered = false
  /// It came from an edge, which follows a redirect.
  public var isFromEdge = false
  /// 18x are sent reliably: for a late offer the first must contain our offer.
  public var isReliable = false
  /// The leg that this call replaces (RFC 3891).
  public var replaces: LegID?
  /// Identity header fields (RFC 8224), unchecked; `date` belongs to them.
  public var identities: [SignedIdentity] = []
  public var date: String?
  /// Values of the header fields that the trunk's rules list, by the name as listed; the first of each.
  public var parameters: [String: String] = [:]
  /// As received (70 if absent); a leg made for this call sends one less.
  public var maxForwards: Int

  public init(
    trunk: String, source: Flow, callID: String, from: Party, to: Party, assertedIdentity: Party? = nil, isPrivate: Bool = false,
    sdp: String?, diversions: Int = 0, maxForwards: Int = 70
  ) {
    (self.trunk, self.source, self.callID, self.from, self.to) = (trunk, source, callID, from, to)
    (self.assertedIdentity, self.isPrivate, self.sdp, self.diversions) = (assertedIdentity, isPrivate, sdp, diversions)
    self.maxForwards = maxForwards
  }
}

extension InboundInvite {
  /// Reads an INVITE that has passed all checks.
  init(_ message: Message, _ envelope: Envelope, trunk: String, flow: Flow, sdp: String?, _ rules: TrunkRules) {
    let from = Party(message, envelope.from)
    let asserted = rules.trustsIdentity ? ((try? message.assertedIdentities) ?? []).map { Party(message, $0) } : []
    let diversions = ((try? message.diversions) ?? []).map { $0.isHidden(in: message) ? Party.hidden : Party(message, $0) }
    let history = message.historicDiversions
    self.init(
      trunk: trunk, source: flow, callID: message.callID, from: from, to: Self.called(message, envelope, rules),
      assertedIdentity: asserted.first { !$0.number.isEmpty },
      isPrivate: Self.isPrivate(message, from: from), sdp: sdp,
      diversions: max(((try? message.values(of: .diversion)) ?? []).count, history.count),
      maxForwards: envelope.maxForwards ?? 70)
    (identities, date) = (message.identities, message.date)
    for name in rules.parameters { parameters[name] = message.unknownField(name).map { message.text($0.value) } }
    isSteered = envelope.requestURI.map { SteeredContact.isMarked(message.text($0.parameters)) } ?? false
    guard rules.trustsIdentity else { return }
    divertedFrom = diversions.isEmpty ? history.isEmpty ? message.redirected : history.compactMap(\.self) : diversions
  }
}

extension Message {
  /// The parties that diverted the call by History-Info (RFC 7044), the latest first; nil where the entry of the diverting party
  /// is missing.
  ///
  /// Each proxy that retargets adds an entry. Only one whose URI has a `cause` of RFC 4458 is a diversion, made by the entry that
  /// `mp` names, as a rule the one before (RFC 7544 §3.1).
  fileprivate var historicDiversions: [InboundInvite.Party?] {
    let entries = (try? history) ?? []
    var out: [InboundInvite.Party?] = []
    for (position, entry) in entries.enumerated() where isDiversion(entry) {
      let index = parameter("mp", of: entry).map(text)
      let named = index.flatMap { index in entries[..<position].last { parameter("index", of: $0).map(text) == index } }
      let by = named ?? (position > 0 ? entries[position - 1] : nil)
      out.append(by.map { $0.isHidden(in: self) ? .hidden : InboundInvite.Party(self, $0) })
    }
    return out.reversed()
  }

  /// From a History-Info without any `cause`, the entries that state a redirect of the call (RFC 4244 §4.1, as Teams writes it),
  /// the latest first. For display only: proxies write the same, so that these are not counted.
  fileprivate var redirected: [InboundInvite.Party] {
    ((try? history) ?? []).reversed().filter { entry in
      text(entry.uri.headers).split(separator: "&").contains { header in
        let pair = header.split(separator: "=", maxSplits: 1)
        guard pair.count == 2, pair[0].lowercased() == "reason" else { return false }
        let reason = String(decoding: percentDecoded(pair[1].utf8), as: UTF8.self).lowercased().filter { $0 != " " }
        return reason.hasPrefix("sip;") && reason.split(separator: ";").contains("cause=302")
      }
    }.map { $0.isHidden(in: self) ? .hidden : InboundInvite.Party(self, $0) }
  }

  private func isDiversion(_ entry: NameAddress) -> Bool {
    for parameter in text(entry.uri.parameters).split(separator: ";") {
      let pair = parameter.split(separator: "=", maxSplits: 1)
      if pair.count == 2, pair[0].lowercased() == "cause" { return diversionCauses.contains(String(pair[1])) }
    }
    return false
  }
}

/// RFC 4458 §2.1: unknown, user busy, no reply, unconditional, deflection (alerting and immediate), not reachable. 380 is a
/// service number's translation (RFC 8119), and 200 and others are not a user's action.
private let diversionCauses: Set<String> = ["404", "486", "408", "302", "487", "480", "503"]

extension InboundInvite {
  fileprivate static func isPrivate(_ message: Message, from: Party) -> Bool {
    let privacy = message.privacy
    return from.number.lowercased() == "anonymous" || from.host.lowercased().hasSuffix("anonymous.invalid")
      || privacy.contains("id") || privacy.contains("user") || privacy.contains("header")
  }

  /// The called party: from the first source in the rules that names another than our own contact, else the Request-URI.
  static func called(_ message: Message, _ envelope: Envelope, _ rules: TrunkRules) -> Party {
    func party(_ source: TrunkRules.CalledNumber) -> Party? {
      let uri: URI? =
        switch source {
        case .requestURI: envelope.requestURI
        case .to: envelope.to.uri
        case .pCalledPartyID: (try? message.calledParty)?.uri
        }
      return uri.map { Party(message, uri: $0, displayName: nil) }
    }
    let named = rules.called.lazy.compactMap(party).first { !$0.number.isEmpty && $0.number != rules.contactUser }
    return named ?? Party(message, uri: envelope.requestURI ?? envelope.to.uri, displayName: nil)
  }
}

extension RefusedInvite {
  init(_ message: Message, _ reason: RefusalReason) {
    let from = reason.isOverload ? nil : (try? message.from).map { InboundInvite.Party(message, $0) }
    let number = from.flatMap { InboundInvite.isPrivate(message, from: $0) || $0.number.isEmpty ? nil : $0.number }
    self.init(
      callID: message.callID, number: number,
      isFirstChallenge: reason == .unauthorized && message.field(.authorization) == nil)
  }
}

extension NameAddress {
  /// A diverting party that must stay anonymous: `;privacy=full` of Diversion (RFC 5806 §6), `?Privacy=` of History-Info (RFC
  /// 7044 §10.1.2).
  fileprivate func isHidden(in message: Message) -> Bool {
    if let value = message.parameter("privacy", of: self).map({ message.text($0).lowercased() }), value != "off",
      value != "\"off\""
    {
      return true
    }
    let headers = message.text(uri.headers).lowercased()
    return headers.split(separator: "&").contains { $0.hasPrefix("privacy=") && $0 != "privacy=none" }
  }
}

extension InboundInvite.Party {
  static let hidden = Self(number: "anonymous", host: "anonymous.invalid")

  init(_ message: Message, _ address: NameAddress) {
    self.init(message, uri: address.uri, displayName: message.displayName(of: address))
  }

  init(_ message: Message, uri: URI, displayName: String?) {
    let user = String(decoding: percentDecoded(message.bytes.slice(uri.user)), as: UTF8.self)
    self.init(number: plainNumber(user), displayName: displayName, host: message.text(uri.host).lowercased())
  }
}

/// Digits, `*` and `#` after an optional `+`: the users that RFC 3261 §19.1.1 allows before `user=phone`.
func isTelephoneNumber(_ user: String) -> Bool {
  let digits = user.hasPrefix("+") ? user.dropFirst() : user[...]
  return !digits.isEmpty
    && digits.utf8.allSatisfy { (48...57).contains($0) || $0 == UInt8(ascii: "*") || $0 == UInt8(ascii: "#") }
}

/// A telephone number without parameters and visual separators (RFC 3966 §5.1.1); other user names stay as they are.
func plainNumber(_ user: String) -> String {
  var (hasDigit, hasSeparator, isNumber) = (false, false, true)
  var end = user.utf8.endIndex
  for index in user.utf8.indices {
    let byte = user.utf8[index]
    switch byte {
    case UInt8(ascii: ";"): end = index
    case 48...57: hasDigit = true
    case UInt8(ascii: "+"), UInt8(ascii: "*"), UInt8(ascii: "#"): break
    case UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "("), UInt8(ascii: ")"), UInt8(ascii: " "): hasSeparator = true
    default: isNumber = false
    }
    if end == index { break }
  }
  let name = user[..<end]
  guard hasDigit, isNumber, hasSeparator else { return String(name) }
  return name.filter { !"-.() ".contains($0) }
}
