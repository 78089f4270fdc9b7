import CallModel
import Trunking
import TrunklineBytes
import TrunklinePlatform
import TrunklineRTP
import TrunklineSIPDialogs

/// `trunks:`, read again at SIGHUP: the carrier, its addresses and how it is reached.
extension ConfigurationKeys {
  static let trunks = Key<Settings>(
    "trunks", .list(.mapping, limit: Limits.trunks), "The carriers and PBXs that SIP is exchanged with.", inner: trunk
  ) { field, out in
    out.trunks = field.items(limit: Limits.trunks).compactMap { item in
      let draft = trunk.value(item.profiled)
      return draft?.trunk.name.isEmpty == false ? draft?.trunk : nil
    }
  }

  private static let trunk = KeyTable<TrunkDraft>(
    .init(), .atSIGHUP, about: "A trunk that was removed at SIGHUP is un-registered; its calls continue.",
    identity, reach, trunkMedia, trunkMessages, identityFields, numbersAndTLS, dialogs, permissions,
    rules: [nameIsFree, hasPeersOrURI, credentialsFit, codecsInOrder, timersFit, complete])

  private static let identity: [Key<TrunkDraft>] = [
    .requiredText("name", \.trunk.routing.name, "What routes, metrics and records call it."),
    .init(
      "profile", .oneOf(TrunkProfile.all.map(\.name)), default: .none("none"),
      "A carrier's settings: defaults for keys that the trunk does not set. `trunkline config profiles` prints them."
    ) { field, _ in
      let profiles = TrunkProfile.all.map(\.name).joined(separator: ", ")
      _ = field.value("one of \(profiles)", TrunkProfile.named)
    },
    .init(
      "peers", .or(.list(.text("address, network or host name"), limit: 1_000), .oneOf(["any"])),
      default: .none("the hosts of `uri`"),
      "Addresses and names that may send SIP as this trunk; others get no answer. Names are looked up again by their TTL. `any` needs `peer_auth`."
    ) { field, out in
      peers(field, &out)
    },
    .optionalSection(
      "peer_auth", credentials, \.peerCredentials, none: "no challenge",
      "The credentials that the trunk's own requests are challenged for."),
    .init(
      "uri", .text("SIP URI"), default: .none("no outgoing calls"),
      "`sip:` or `sips:`, a host or address, then `;transport=udp`, `tcp` or `tls`; names are looked up (RFC 3263)."
    ) { field, out in
      out.uri = field.sipURI()
    },
    .init(
      "codecs", .list(.oneOf(AudioEncoding.allCases.map(\.name)), limit: 8),
      default: .value("[ \(Routing.Trunk(name: "").codecs.map(\.name).joined(separator: ", ")) ]"), "In the order of preference."
    ) { field, out in
      guard field.isWritten else { return }
      out.trunk.routing.codecs = field.list(limit: 8, orList(AudioEncoding.allCases.map(\.name))) { .init(named: $0) }
      if Set(out.trunk.routing.codecs).count != out.trunk.routing.codecs.count { field.problem("names a codec twice") }
      if field.node?.sequence?.isEmpty == true { field.problem("is empty") }
    },
    .optionalSection(
      "auth", credentials, \.credentials, none: "–", "The credentials that the trunk's challenges are answered with."),
    .optional(
      "realm", \.trunk.routing.rules.realm, "text of at most \(Limits.realmBytes) bytes",
      default: .none("any; ours is `trunkline`"),
      expected: "the realm of the trunk's challenges, of at most \(Limits.realmBytes) characters",
      "The only realm whose challenges are answered, and that of our own challenges.", parse: realm),
  ]

  private static let reach: [Key<TrunkDraft>] = [
    .init(
      "register", .or(.flag, .mapping), default: .value("false"),
      "Registers at `uri`: `true` with the user of `auth`, or a mapping.", inner: registration
    ) { field, out in
      guard field.isWritten else { return }
      if field.text == nil {
        out.registration = registration.value(field)
      } else if field.flag() == true {
        out.registration = registration.standard
        out.registersAccount = true
      }
    },
    .init(
      "probe", .or(.or(.duration(probeInterval), .oneOf(["off"])), .mapping), default: .value("off"),
      "OPTIONS to `uri` at this interval, or a mapping; no calls go to a trunk that is down. 30s is usual.", inner: probe
    ) { field, out in
      guard field.isWritten, field.text != "off" else { return }
      var value = probe.standard
      if field.text == nil {
        probe.read(field, into: &value)
      } else {
        value.interval = field.duration(in: probeInterval) ?? value.interval
      }
      out.probe = value
    },
  ]

  private static let trunkMedia: [Key<TrunkDraft>] = [
    .choice(
      "rtp_source", \.trunk.routing.sourcePolicy,
      "Which RTP is accepted: from the SDP's address and any port; `symmetric`: also `peers` and `media_peers`, and ours is sent to its source; `strict`: the SDP's address and port only."
    ),
    .list(
      "media_peers", \.trunk.routing.mediaPeers, .text("address or network"), limit: 1_000, default: .value("[]"),
      expected: "an address or a network such as 192.0.2.0/24",
      "Further addresses that RTP may come from, such as the carrier's media gateways."
    ) { IPNetwork($0) },
    .choice(
      "prefer", \.preference,
      "`wide`: G722 and opus go before the others of `codecs`, for calls of 7 kHz; `cheap`: PCMU and PCMA do. `relay`: apps are offered the trunk's codec first, so that nothing is transcoded."
    ),
    .limit("max_calls", \.trunk.routing.maximumCalls, Limits.calls, "Calls at a time in both directions."),
    .limit(
      "calls_per_second", \.trunk.routing.callsPerSecond, 1...10_000,
      "New calls a second in both directions; beyond it 503, or the next trunk of the route. Of several nodes each has its part, one at least."
    ),
    .init(
      "advertise", .text("address or host name, with a port or without, or `env:NAME`"),
      default: .none("as set in `listen.sip` and `media`"),
      "The address or name sent to this trunk instead, in Via and Contact, and if it is an address in SDP."
    ) { field, out in
      out.trunk.routing.rules.advertised = field.advertisedHost()
    },
  ]

  /// `{ username: U, password_file: F }`.
  private static let credentials = KeyTable<Credentials>(
    .init(username: "", password: ""), .atSIGHUP, about: "Digest credentials (RFC 3261 §22).",
    [
      .requiredText("username", \.username, "The user name of the digest."),
      .init("password_file", .secretFile("one line"), default: .required(), "The password.") { field, out in
        if let bytes = field.secret() { out.password = Redacted(String(decoding: bytes, as: UTF8.self)) }
      },
    ])

  /// `register: true`, with the user of `auth`, or `{ user: U, expires: 10m }`.
  private static let registration = KeyTable<TrunkSettings.Registration>(
    .init(user: ""), .atSIGHUP,
    [
      .value(
        "user", \.user, "text", default: .none("`username` of `auth`"), expected: "a text", "The user of the address-of-record."
      ) { $0.isEmpty ? nil : $0 },
      .init(
        "expires", .duration(.seconds(10) ... .seconds(86_400)), standard: { .value(durationText(.seconds($0.expires))) },
        "The registration time to request; it is renewed earlier."
      ) { field, out in
        if let time = field.duration(in: .seconds(10) ... .seconds(86_400)) { out.expires = Int(time.components.seconds) }
      },
      .duration(
        "keep_alive", \.keepAlive, .zero ... .seconds(300),
        "Over UDP, the interval of double-CRLF keep-alives, which keep the way back open through a NAT or firewall; `0s`: none. For OPTIONS instead: `probe`."
      ),
    ])

  private static let probeInterval = Duration.seconds(1) ... .seconds(3_600)

  /// `probe: 30s`, or `{ interval: 30s, down_after: 3, up_after: 2 }`.
  private static let probe = KeyTable<TrunkSettings.Probe>(
    .init(), .atSIGHUP,
    [
      .duration("interval", \.interval, probeInterval, "From one OPTIONS to the next."),
      .integer("down_after", \.downAfter, 1...100, "Failures in a row that mark the server as down."),
      .integer("up_after", \.upAfter, 1...100, "Answers in a row that bring it back."),
    ])

  @Sendable private static func realm(_ text: String) -> String? {
    let isPlain = text.unicodeScalars.allSatisfy { $0.value >= 32 && $0.value != 127 && $0 != "\"" && $0 != "\\" }
    return isPlain && (1...Limits.realmBytes).contains(text.utf8.count) ? text : nil
  }
}

// MARK: peers

extension ConfigurationKeys {
  private static func peers(_ field: Field, _ out: inout TrunkDraft) {
    out.acceptsAnyPeer = field.text == "any"
    guard !out.acceptsAnyPeer else { return }
    let expected = "any, an address, a network such as 192.0.2.0/24, or a host name"
    for item in field.items(limit: 1_000) {
      let name = item.value(expected) { text -> String? in
        // an address with a typing error is no name
        IPNetwork(text) != nil || isHostName(text) && text.contains { $0.isLetter } ? text : nil
      }
      guard let name else { continue }
      if let network = IPNetwork(name) {
        out.trunk.routing.peers.append(network)
      } else {
        out.trunk.routing.peerNames.append(name)
      }
    }
    if isNearlyEverybody(out.trunk.routing.peers) {
      field.problem(
        "lets nearly any address call as this trunk, without a password: name the carrier's networks, or write any, with peer_auth: { username: U, password_file: F }"
      )
    }
  }

  /// Whether the networks amount to `any`: one is wider than the widest that one party has, or together they are more than all
  /// private ones.
  private static func isNearlyEverybody(_ networks: [IPNetwork]) -> Bool {
    var addresses = 0
    for network in networks {
      if network.prefixLength < 8 { return true }
      if network.address.family == .v4 { addresses += 1 << (32 - min(32, network.prefixLength)) }
    }
    return addresses >= 1 << 27
  }
}

// MARK: rules between the keys of a trunk

extension ConfigurationKeys {
  @Sendable private static func nameIsFree(_ trunk: Section, _ out: inout TrunkDraft) {
    let name = out.trunk.name
    if name == Routing.directTrunk { trunk["name"].problem("is what calls between users are called: choose another") }
    if name == Routing.testTrunk { trunk["name"].problem("is what apps' test calls are called: choose another") }
  }

  /// Behind an edge a trunk that only calls us needs neither `uri` nor `peers`.
  @Sendable private static func hasPeersOrURI(_ trunk: Section, _ out: inout TrunkDraft) {
    if !trunk.has("peers"), !trunk.has("uri"), !trunk.parser.hasEdges {
      trunk.problem("needs peers (for calls from the trunk) or uri (for calls to it)")
    }
    guard !trunk.has("uri") else { return }
    if trunk.has("register") { trunk["register"].problem("needs a uri to register at") }
    if out.probe != nil { trunk["probe"].problem("needs a uri to probe") }
  }

  @Sendable private static func credentialsFit(_ trunk: Section, _ out: inout TrunkDraft) {
    if out.acceptsAnyPeer, !trunk.has("peer_auth") {
      trunk["peers"].problem("any needs peer_auth: { username: U, password_file: F }")
    }
    if trunk.has("realm"), !trunk.has("auth"), !trunk.has("peer_auth") {
      trunk["realm"].problem("is of no use without auth or peer_auth")
    }
    guard let registration = out.registration, registration.user.isEmpty, out.credentials == nil else { return }
    trunk["register"].problem(
      out.registersAccount ? "true needs auth: { username: U, password_file: F }" : "user is missing")
  }

  @Sendable private static func codecsInOrder(_ trunk: Section, _ out: inout TrunkDraft) {
    let preference = out.preference
    out.trunk.routing.prefersRelay = preference == .relay
    guard let first = preference.first else { return }
    let preferred = out.trunk.routing.codecs.filter(first)
    if preferred.isEmpty { trunk["prefer"].problem("\(preference.rawValue) needs \(preference.names) in codecs") }
    out.trunk.routing.codecs = preferred + out.trunk.routing.codecs.filter { !first($0) }
  }

  @Sendable private static func timersFit(_ trunk: Section, _ out: inout TrunkDraft) {
    guard let seconds = out.sessionSeconds else { return out.trunk.routing.rules.sessionTimer = nil }
    if seconds < out.leastSessionSeconds {
      trunk["session_timer"].problem("is less than session_minimum, \(out.leastSessionSeconds)")
    }
    out.trunk.routing.rules.sessionTimer = .init(seconds: seconds, minimumSeconds: out.leastSessionSeconds)
  }

  /// What follows from several keys.
  @Sendable private static func complete(_ trunk: Section, _ out: inout TrunkDraft) {
    if out.acceptsAnyPeer { out.trunk.routing.rules.peerCredentials = out.peerCredentials }
    out.trunk.routing.rules.redirects = out.followsRedirects ? .follow(hosts: Set(out.redirectHosts)) : .refuse
    out.trunk.routing.settings = out.settings
    let contact = out.trunk.routing.settings?.registration?.contactUser ?? out.contactUser
    if let contact { out.trunk.routing.rules.contactUser = contact }
  }
}

/// A trunk while its keys are read.
struct TrunkDraft: Sendable {
  var trunk = Settings.Trunk(routing: Routing.Trunk(name: ""))
  var acceptsAnyPeer = false
  var peerCredentials: Credentials?
  var credentials: Credentials?
  var uri: SIPAddress?
  var proxy: SIPAddress?
  /// Its user is empty if it is that of `auth`.
  var registration: TrunkSettings.Registration?
  /// `register: true`.
  var registersAccount = false
  var probe: TrunkSettings.Probe?
  var contactUser: String?
  var preference = TrunkPreference.transcode
  var followsRedirects = false
  var redirectHosts: [String] = []
  /// Nil: no session timers.
  var sessionSeconds: Int? = TrunkRules.SessionTimer().seconds
  var leastSessionSeconds = TrunkRules.SessionTimer().minimumSeconds

  /// For a trunk with a `uri`; the other keys are checked without it, too.
  var settings: TrunkSettings? {
    guard let uri else { return nil }
    var registration = registration
    if let user = registration?.user {
      let own = user.isEmpty ? credentials?.username ?? "" : user
      registration?.user = own
      registration?.contactUser = contactUser ?? own
    }
    var out = TrunkSettings(
      name: trunk.name, domain: uri.domain, server: uri.server, credentials: credentials, registration: registration, probe: probe
    )
    if let proxy { (out.server, out.outboundProxy) = (proxy.server, proxy.text) }
    return out
  }
}
