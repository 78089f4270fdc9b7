import Bytes
import Yams

/// How a trunk is reached, known and spoken to.
extension Walk {
  func reach(_ trunk: Section, _ out: inout Settings.Trunk) {
    if trunk.has("peer_auth") {
      let auth = trunk.section("peer_auth")
      out.peerUsername = auth.required("username")
      if !auth.has("password_file") { problem(trunk.path("peer_auth"), "password_file is missing") }
      out.peerPassword = auth.secret("password_file").map { Redacted(String(decoding: $0, as: UTF8.self)) }
    }
    if trunk.has("realm") {
      out.realm = trunk.value("realm", "the realm of the trunk's challenges, of at most \(Limits.realmBytes) characters", realm)
      if !trunk.has("auth"), !trunk.has("peer_auth") { problem(trunk.path("realm"), "is of no use without auth or peer_auth") }
    }
    register(trunk, &out)
    probe(trunk, &out)
    numbers(trunk, &out)
    if trunk.has("calls_per_second") { out.callsPerSecond = trunk.integer("calls_per_second", in: 1...10_000, default: 1) }
    let tls = trunk.section("tls")
    out.tls.authorities = tls.readableFile("ca")
    out.tls.verifies = tls.flag("verify", default: true)
    if tls.has("cert") != tls.has("key") { problem(trunk.path("tls"), "cert and key belong together") }
    if let certificate = tls.readableFile("cert"), let key = tls.readableFile("key") {
      out.tls.own = .init(certificate: certificate, key: key)
    }
  }

  private func realm(_ text: String) -> String? {
    let isPlain = text.unicodeScalars.allSatisfy { $0.value >= 32 && $0.value != 127 && $0 != "\"" && $0 != "\\" }
    return isPlain && (1...Limits.realmBytes).contains(text.utf8.count) ? text : nil
  }

  /// `register: true`, with the user of `auth`, or `{ user: U, expires: 10m }`.
  private func register(_ trunk: Section, _ out: inout Settings.Trunk) {
    guard trunk.has("register") else { return }
    let user = trunk.section("auth").string("username")
    if trunk.node("register")?.text != nil {
      guard trunk.flag("register", default: false) else { return }
      guard let user else { return problem(trunk.path("register"), "true needs auth: { username: U, password_file: F }") }
      out.registration = .init(user: user, expires: 600)
    } else {
      let register = trunk.section("register")
      guard let name = register.string("user") ?? user else { return problem(trunk.path("register"), "user is missing") }
      let expires = register.duration("expires", in: .seconds(10) ... .seconds(86_400), default: .seconds(600))
      out.registration = .init(user: name, expires: Int(expires.components.seconds))
    }
    if !trunk.has("uri") { problem(trunk.path("register"), "needs a uri to register at") }
  }

  /// `probe: 30s`, or `{ interval: 30s, down_after: 3, up_after: 2 }`.
  private func probe(_ trunk: Section, _ out: inout Settings.Trunk) {
    guard trunk.has("probe") else { return }
    let range = Duration.seconds(1) ... .seconds(3_600)
    var probe = Settings.Probe()
    if let text = trunk.node("probe")?.text {
      if text == "off" { return }
      probe.interval = trunk.duration("probe", in: range, default: probe.interval)
    } else {
      let row = trunk.section("probe")
      probe.interval = row.duration("interval", in: range, default: probe.interval)
      probe.downAfter = row.integer("down_after", in: 1...100, default: probe.downAfter)
      probe.upAfter = row.integer("up_after", in: 1...100, default: probe.upAfter)
    }
    out.probe = probe
    if !trunk.has("uri") { problem(trunk.path("probe"), "needs a uri to probe") }
  }

  private func numbers(_ trunk: Section, _ out: inout Settings.Trunk) {
    let row = trunk.section("numbers")
    out.numbers.country = row.value("country", "a country code such as \"49\"") { digits($0, 1...3) }
    out.numbers.international = row.value("international", "digits such as \"00\"") { digits($0, 0...5) } ?? "00"
    out.numbers.national = row.value("national", "digits such as \"0\"") { digits($0, 0...5) } ?? "0"
    out.numbers.inbound = rules(row, "inbound")
    out.numbers.outbound = rules(row, "outbound")
    out.numbers.caller = rules(row, "caller")
  }

  private func digits(_ text: String, _ count: ClosedRange<Int>) -> String? {
    count.contains(text.utf8.count) && text.utf8.allSatisfy { (48...57).contains($0) } ? text : nil
  }

  private func rules(_ section: Section, _ key: String) -> [Settings.Numbers.Rule] {
    section.items(key, limit: 100).compactMap { item in
      let row = Section(item.node, item.path, self)
      guard case .mapping = item.node else { return nil }
      let text = { (text: String) -> String? in
        text.utf8.count <= 20 && text.utf8.allSatisfy { (48...57).contains($0) || $0 == 43 || $0 == 42 || $0 == 35 } ? text : nil
      }
      return .init(
        prefix: row.value("prefix", "the beginning of a number", text) ?? "", strip: row.integer("strip", in: 0...20, default: 0),
        add: row.value("add", "digits", text) ?? "")
    }
  }

  func trunkURI(_ text: String, _ path: String) -> Settings.TrunkURI? {
    func refuse(_ why: String) -> Settings.TrunkURI? {
      problem(path, why)
      return nil
    }
    let isSIPS = text.hasPrefix("sips:")
    guard isSIPS || text.hasPrefix("sip:") else {
      return refuse("expected a SIP URI such as sip:192.0.2.1:5060;transport=tcp, got \"\(text)\"")
    }
    let parts = text.dropFirst(isSIPS ? 5 : 4).split(separator: ";", omittingEmptySubsequences: false)
    let domain = String(parts.first ?? "")
    var transport: Settings.TrunkURI.Transport?
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
    func uri(_ host: String, _ port: UInt16?) -> Settings.TrunkURI {
      .init(domain: domain, host: host, port: port, transport: transport, isSecure: isSIPS || transport == .tls)
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

  private func isHostName(_ name: Substring) -> Bool {
    (1...253).contains(name.utf8.count)
      && name.utf8.allSatisfy {
        (48...57).contains($0) || (65...90).contains($0) || (97...122).contains($0) || [45, 46, 95].contains($0)
      }
  }
}
