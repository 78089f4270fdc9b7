import CallFlow
import Trunking
import TrunklineBytes
import TrunklinePlatform
import TrunklineSIPDialogs
import Yams

/// `trunks:`, read again at SIGHUP.
extension ConfigurationParser {
  func trunk(_ node: Node, _ path: String) -> Settings.Trunk? {
    let trunk = Section(profiled(node), path, self)
    guard case .mapping = node else { return nil }
    let name = trunk.required("name")
    if name == Routing.directTrunk { problem(trunk.path("name"), "is what calls between users are called: choose another") }
    if name == Routing.testTrunk { problem(trunk.path("name"), "is what apps' test calls are called: choose another") }
    let profiles = TrunkProfile.all.map(\.name).joined(separator: ", ")
    _ = trunk.value("profile", "one of \(profiles)", TrunkProfile.named)
    var out = Routing.Trunk(name: name ?? "")
    peers(trunk, &out)
    out.settings = settings(trunk, out.name)
    media(trunk, &out)
    out.rules = rules(trunk, out.rules)
    identity(trunk, out.settings?.registration, &out.rules)
    out.numbers = numberRules(trunk)
    if trunk.has("max_calls") { out.maximumCalls = trunk.integer("max_calls", in: Limits.calls, default: 1) }
    if trunk.has("calls_per_second") { out.callsPerSecond = trunk.integer("calls_per_second", in: 1...10_000, default: 1) }
    out.signalsHold = trunk.value("hold", "local or signal") { ["local": false, "signal": true][$0] } ?? out.signalsHold
    out.offersLate = trunk.flag("late_offer", default: out.offersLate)
    out.sendsLocation = trunk.flag("location", default: out.sendsLocation)
    out.recordsPrivateNumbers = trunk.flag("record_private_numbers", default: out.recordsPrivateNumbers)
    var all = Settings.Trunk(routing: out)
    tls(trunk, &all)
    return name == nil ? nil : all
  }

  /// Behind an edge a trunk that only calls us needs neither `uri` nor `peers`.
  private var hasEdges: Bool { isWritten("cluster.edges.peers") }

  private enum Peer {
    case network(IPNetwork), name(String)
  }

  private func networks(_ section: Section, _ key: String) -> [IPNetwork] {
    section.list(key, limit: 1_000, "an address or a network such as 192.0.2.0/24") { IPNetwork($0) }
  }

  // MARK: the trunk's peers

  private func peers(_ trunk: Section, _ out: inout Routing.Trunk) {
    let isAny = trunk.node("peers")?.text == "any"
    if isAny {
      if !trunk.has("peer_auth") { problem(trunk.path("peers"), "any needs peer_auth: { username: U, password_file: F }") }
    } else {
      let peers = trunk.list("peers", limit: 1_000, "any, an address, a network such as 192.0.2.0/24, or a host name") {
        (text) -> Peer? in
        if let network = IPNetwork(text) { return .network(network) }
        // an address with a typing error is no name
        return isHostName(text) && text.contains { $0.isLetter } ? .name(text) : nil
      }
      for case .network(let network) in peers { out.peers.append(network) }
      for case .name(let name) in peers { out.peerNames.append(name) }
      if Self.isNearlyEverybody(out.peers) {
        problem(
          trunk.path("peers"),
          "lets nearly any address call as this trunk, without a password: name the carrier's networks, or write any, with peer_auth: { username: U, password_file: F }"
        )
      }
      if !trunk.has("peers"), !trunk.has("uri"), !hasEdges {
        problem(trunk.path, "needs peers (for calls from the trunk) or uri (for calls to it)")
      }
    }
    let credentials = credentials(trunk, "peer_auth")
    if isAny { out.rules.peerCredentials = credentials }
    if trunk.has("realm") {
      out.rules.realm = trunk.value(
        "realm", "the realm of the trunk's challenges, of at most \(Limits.realmBytes) characters", realm)
      if !trunk.has("auth"), !trunk.has("peer_auth") { problem(trunk.path("realm"), "is of no use without auth or peer_auth") }
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

  /// `{ username: U, password_file: F }`.
  private func credentials(_ trunk: Section, _ key: String) -> Credentials? {
    guard trunk.has(key) else { return nil }
    let auth = trunk.section(key)
    let username = auth.required("username")
    if !auth.has("password_file") { problem(trunk.path(key), "password_file is missing") }
    guard let password = auth.secret("password_file"), let username else { return nil }
    return Credentials(username: username, password: String(decoding: password, as: UTF8.self))
  }

  private func realm(_ text: String) -> String? {
    let isPlain = text.unicodeScalars.allSatisfy { $0.value >= 32 && $0.value != 127 && $0 != "\"" && $0 != "\\" }
    return isPlain && (1...Limits.realmBytes).contains(text.utf8.count) ? text : nil
  }

  private func tls(_ trunk: Section, _ out: inout Settings.Trunk) {
    let tls = trunk.section("tls")
    out.tls.authorities = tls.readableFile("ca")
    out.verifiesCertificate = tls.flag("verify", default: out.verifiesCertificate)
    out.expectedNames = tls.list(
      "name", limit: Limits.expectedNames, "a host name such as sip.carrier.example, or *. and a domain such as *.carrier.example"
    ) { IPAddress($0) == nil ? ExpectedName($0) : nil }
    if tls.has("name"), !out.verifiesCertificate {
      problem(tls.path("name"), "is not checked: verify: false accepts any certificate", .warning)
    }
    if tls.has("cert") != tls.has("key") { problem(trunk.path("tls"), "cert and key belong together") }
    guard let certificate = tls.readableFile("cert"), let key = tls.readableFile("key") else { return }
    (out.tls.certificate, out.tls.key) = (certificate, key)
  }

  // MARK: the trunk's servers

  /// For a trunk with a `uri`; the other keys are checked without it, too.
  private func settings(_ trunk: Section, _ name: String) -> TrunkSettings? {
    let credentials = credentials(trunk, "auth")
    let registration = registration(trunk, credentials)
    let probe = probe(trunk)
    let uri = trunk.value("uri", "a SIP URI such as sip:192.0.2.1:5060;transport=tcp", { $0 })
    guard let uri = uri.flatMap({ sipURI($0, trunk.path("uri")) }) else { return nil }
    var out = TrunkSettings(
      name: name, domain: uri.domain, server: uri.server, credentials: credentials, registration: registration, probe: probe)
    if let text = trunk.string("outbound_proxy"), let proxy = sipURI(text, trunk.path("outbound_proxy")) {
      (out.server, out.outboundProxy) = (proxy.server, text)
    }
    return out
  }

  /// Settings that differ between carriers: where the number is, and our identity.
  private func identity(_ trunk: Section, _ registration: TrunkSettings.Registration?, _ out: inout TrunkRules) {
    let sources = trunk.list("called", limit: 3, "request_uri, to or p_called_party_id") { TrunkRules.CalledNumber(rawValue: $0) }
    if !sources.isEmpty { out.called = sources }
    let from = trunk.section("from")
    (out.fromUser, out.fromDomain) = (
      from.string("user"), from.value("domain", "a host name or address") { AdvertisedHost($0)?.description }
    )
    out.contactUser = registration?.contactUser ?? trunk.string("contact_user") ?? out.contactUser
    out.advertised = advertisedHost(trunk)
  }

  /// `register: true`, with the user of `auth`, or `{ user: U, expires: 10m }`.
  private func registration(_ trunk: Section, _ credentials: Credentials?) -> TrunkSettings.Registration? {
    guard trunk.has("register") else { return nil }
    if !trunk.has("uri") { problem(trunk.path("register"), "needs a uri to register at") }
    let user = trunk.section("auth").string("username")
    if trunk.node("register")?.text != nil {
      guard trunk.flag("register", default: false) else { return nil }
      if user == nil { problem(trunk.path("register"), "true needs auth: { username: U, password_file: F }") }
      return user.map { .init(user: $0, contactUser: trunk.string("contact_user")) }
    }
    let register = trunk.section("register")
    guard let name = register.string("user") ?? user else {
      problem(trunk.path("register"), "user is missing")
      return nil
    }
    var out = TrunkSettings.Registration(user: name, contactUser: trunk.string("contact_user"))
    let expires = register.duration("expires", in: .seconds(10) ... .seconds(86_400), default: .seconds(out.expires))
    out.expires = Int(expires.components.seconds)
    out.keepAlive = register.duration("keep_alive", in: .zero ... .seconds(300), default: out.keepAlive)
    return out
  }

  /// `probe: 30s`, or `{ interval: 30s, down_after: 3, up_after: 2 }`.
  private func probe(_ trunk: Section) -> TrunkSettings.Probe? {
    guard trunk.has("probe") else { return nil }
    let range = Duration.seconds(1) ... .seconds(3_600)
    var out = TrunkSettings.Probe()
    if let text = trunk.node("probe")?.text {
      if text == "off" { return nil }
      out.interval = trunk.duration("probe", in: range, default: out.interval)
    } else {
      let row = trunk.section("probe")
      out.interval = row.duration("interval", in: range, default: out.interval)
      out.downAfter = row.integer("down_after", in: 1...100, default: out.downAfter)
      out.upAfter = row.integer("up_after", in: 1...100, default: out.upAfter)
    }
    if !trunk.has("uri") { problem(trunk.path("probe"), "needs a uri to probe") }
    return out
  }

  /// The URI's host and port as written, and the next hop that it names.
  func sipURI(_ text: String, _ path: String) -> (domain: String, server: ServerURI)? {
    func refuse(_ why: String) -> (String, ServerURI)? {
      problem(path, why)
      return nil
    }
    let isSIPS = text.hasPrefix("sips:")
    guard isSIPS || text.hasPrefix("sip:") else {
      return refuse("expected a SIP URI such as sip:192.0.2.1:5060;transport=tcp, got \"\(text)\"")
    }
    let parts = text.dropFirst(isSIPS ? 5 : 4).split(separator: ";", omittingEmptySubsequences: false)
    let domain = String(parts.first ?? "")
    var transport: TransportProtocol?
    for parameter in parts.dropFirst() {
      switch parameter.lowercased() {
      case "transport=udp": transport = .udp
      case "transport=tcp": transport = .tcp
      case "transport=tls": transport = .tls
      default: return refuse("unknown parameter \"\(parameter)\"; known: transport=udp, transport=tcp, transport=tls")
      }
    }
    if isSIPS, transport == .udp { return refuse("sips: is TLS, not UDP") }
    guard !domain.isEmpty, !domain.contains("@"), !domain.contains("?") else {
      return refuse("expected host or host:port after sip:, got \"\(domain)\"")
    }
    if isSIPS { transport = .tls }
    func uri(_ host: String, _ port: UInt16?) -> (String, ServerURI) {
      (domain, ServerURI(host: host, port: port, transport: transport, isSecure: isSIPS))
    }
    if let address = SocketAddress(domain) { return uri(address.ip.description, address.port) }
    let bare = domain.hasPrefix("[") && domain.hasSuffix("]") ? String(domain.dropFirst().dropLast()) : domain
    if IPAddress(bare) != nil { return uri(bare, nil) }
    let host = domain.split(separator: ":", omittingEmptySubsequences: false)
    guard host.count <= 2, let name = host.first, isHostName(name) else {
      return refuse("expected host or host:port, got \"\(domain)\"")
    }
    guard host.count == 2 else { return uri(String(name), nil) }
    guard let number = UInt16(host[1]), number > 0 else { return refuse("port \"\(host[1])\" is outside 1...65535") }
    return uri(String(name), number)
  }
}
