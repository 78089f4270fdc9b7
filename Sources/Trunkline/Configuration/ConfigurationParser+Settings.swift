import AppSessions
import CallFlow
import JSONWebToken
import TrunklineBytes
import TrunklinePlatform
import TrunklineSIPDialogs
import Yams

extension ConfigurationParser {
  /// Reads the whole file; absent parts have their defaults.
  func configuration(_ root: Node?) -> Settings {
    var out = Settings()
    let top = Section(root, "", self)
    out.listen = listen(top)
    out.admin = admin(top)
    out.branding = branding(top)
    out.dns.servers = top.section("dns").list(
      "servers", limit: 16, "a name server such as 192.0.2.53 or 127.0.0.1:5353"
    ) {
      SocketAddress($0) ?? IPAddress($0).map { SocketAddress($0, 53) }
    }
    if top.has("local_networks") {
      out.localNetworks = top.list("local_networks", limit: 100, "auto, or a network such as 10.0.0.0/8") {
        $0 == "auto" ? .interfaces : IPNetwork($0).map { .network($0) }
      }
    }
    out.media = media(top, &out.calls)
    out.auth = auth(top)
    out.cluster = cluster(top)
    out.trunks = top.items("trunks", limit: Limits.trunks).compactMap { trunk($0.node, $0.path) }
    linkAccounts(&out.trunks)
    readUsers(top, &out)
    out.routes = routes(top, &out.calls)
    out.push = push(top)
    timers(top, &out)
    out.verifier = verifier(top)
    out.turn = turn(top)
    out.events = events(top)
    out.recording = recordingSection(top)
    out.calls.recording = out.recording?.rules
    let history = top.section("history")
    out.history.keep = history.duration("keep", in: Limits.historyKeep, default: out.history.keep)
    out.history.perUser = history.integer("per_user", in: Limits.historyPerUser, default: out.history.perUser)
    out.calls.verifiesIdentity = out.verifier != nil
    let limits = top.section("limits")
    out.calls.bounds.callsPerUser = limits.integer("calls_per_user", in: 1...1_000, default: out.calls.bounds.callsPerUser)
    out.calls.bounds.calls = limits.integer("calls", in: Limits.calls, default: out.calls.bounds.calls)
    out.limits.memoryMebibytes = limits.integer("memory_mib", in: 0...1_048_576, default: out.limits.memoryMebibytes)
    out.limits.dumpsCore = limits.flag("core_dumps", default: out.limits.dumpsCore)
    out.limits.sessionsPerAddress = limits.integer(
      "sessions_per_address", in: 1...100_000, default: out.limits.sessionsPerAddress)
    out.store = resolve(top.section("store").string("sqlite") ?? out.store)
    let records = top.section("records")
    out.records = resolve(records.string("file") ?? out.records)
    out.streamsRecords = records.flag("stream", default: out.streamsRecords)
    if out.streamsRecords, out.cluster?.nodes == nil {
      problem(records.path("stream"), "needs cluster.shared_store: the stream is in that Redis")
    }
    out.hep = hep(top)
    let log = top.section("log")
    out.log.level = log.choice("level", default: out.log.level)
    out.log.format = log.choice("format", default: out.log.format)
    out.log.numbers = log.choice("numbers", default: out.log.numbers)
    if let edges = out.cluster?.edges { apply(edges, to: &out) }
    crossCheck(out)
    return out
  }

  /// `hep: 192.0.2.9:9060`, or `{ address: 192.0.2.9:9060, capture_id: 2001, password_file: FILE }`.
  private func hep(_ top: Section) -> Settings.HEP? {
    guard top.has("hep") else { return nil }
    if top.node("hep")?.text != nil { return top.socketAddress("hep").map { .init(address: $0) } }
    let row = top.section("hep")
    if !row.has("address") { problem("hep", "address is missing") }
    guard let address = row.socketAddress("address") else { return nil }
    var out = Settings.HEP(address: address)
    out.captureID = UInt32(row.integer("capture_id", in: 1...Int(UInt32.max), default: Int(out.captureID)))
    out.key = row.secret("password_file").map { Redacted($0) }
    return out
  }

  /// `https:`, or `http:` of this machine. No user name or password: logs would contain it, and it would hide the real host.
  private static func serverURL(_ text: String) -> String? {
    guard let colon = text.firstRange(of: "://"), text.utf8.allSatisfy({ $0 > 32 && $0 < 127 && $0 != 92 }) else { return nil }
    let authority = text[colon.upperBound...].prefix { $0 != "/" && $0 != "?" && $0 != "#" }
    guard !authority.isEmpty, !authority.contains("@") else { return nil }
    let isLocal = ["127.0.0.1", "localhost", "[::1]"].contains { host in
      authority.hasPrefix(host) && [nil, ":"].contains(authority.dropFirst(host.count).first)
    }
    let scheme = text[..<colon.lowerBound]
    return scheme == "https" || scheme == "http" && isLocal ? text : nil
  }

  /// `verifier: https://…`, or `{ url: https://…, ca: FILE }`.
  private func verifier(_ top: Section) -> Settings.Verifier? {
    guard top.has("verifier") else { return nil }
    let expected = "a URL such as https://verifier.example/check (http: for this machine only)"
    if top.node("verifier")?.text != nil { return top.value("verifier", expected, Self.serverURL).map { .init(url: $0) } }
    let row = top.section("verifier")
    guard let url = row.value("url", expected, Self.serverURL) else {
      if !row.has("url") { problem("verifier", "url is missing") }
      return nil
    }
    return .init(url: url, authorities: row.readableFile("ca"))
  }

  /// `turn: { urls: [ "turn:turn.example.com:3478" ], secret_file: FILE, ttl: 24h }`.
  private func turn(_ top: Section) -> TURNServers? {
    guard top.has("turn") else { return nil }
    let row = top.section("turn")
    let urls = row.list(
      "urls", limit: Limits.turnURLs, "a URI such as turn:turn.example.com:3478?transport=udp or turns:turn.example.com:443"
    ) {
      isTURN($0) ? $0 : nil
    }
    if !row.has("urls") { problem("turn", "urls is missing") }
    if !row.has("secret_file") { problem("turn", "secret_file is missing: static-auth-secret of the TURN server") }
    let lifetime = row.duration("ttl", in: .seconds(600) ... .seconds(7 * 86_400), default: .seconds(86_400))
    guard let secret = row.secret("secret_file"), !urls.isEmpty else { return nil }
    return TURNServers(urls: urls, secret: Redacted(secret), lifetime: lifetime)
  }

  /// RFC 7065 §3.1, without the RFC's percent encoding, which no host needs.
  private func isTURN(_ text: String) -> Bool {
    guard let colon = text.firstIndex(of: ":"), ["turn", "turns"].contains(text[..<colon]) else { return false }
    let parts = text[text.index(after: colon)...].split(separator: "?", omittingEmptySubsequences: false)
    guard parts.count <= 2, parts.count == 1 || ["transport=udp", "transport=tcp"].contains(parts[1]), let host = parts.first,
      !host.isEmpty, host.utf8.allSatisfy({ $0 > 32 && $0 < 127 && $0 != UInt8(ascii: "@") && $0 != UInt8(ascii: "/") })
    else { return false }
    return AdvertisedHost(String(host)) != nil
  }

  private func listen(_ top: Section) -> Settings.Listen {
    var out = Settings.Listen()
    let listen = top.section("listen")
    if listen.has("sip") {
      let sip = listen.section("sip")
      out.sipUDP = sipListeners(sip, .udp, &out.advertised)
      out.sipTCP = sipListeners(sip, .tcp, &out.advertised)
      if sip.has("tls") { sipTLS(sip, &out) }
      if !sip.has("udp"), !sip.has("tcp"), !sip.has("tls") { problem("listen.sip", "needs udp, tcp or tls") }
    }
    // The short form is only the address.
    if listen.node("app")?.text != nil {
      out.app = listen.socketAddress("app") ?? out.app
    } else {
      let app = listen.section("app")
      out.app = app.socketAddress("address") ?? out.app
      out.appTLS = certificateFiles(app, "listen.app.tls")
      out.appPath =
        app.value("path", "a path such as /phone, of letters, digits, - _ . and ~, without a / at its end", Settings.path) ?? ""
      out.appProxies = app.list("proxies", limit: 100, "an address or a network such as 10.0.0.0/8") { IPNetwork($0) }
    }
    if listen.node("admin")?.text != nil {
      out.admin = listen.socketAddress("admin") ?? out.admin
    } else {
      let admin = listen.section("admin")
      out.admin = admin.socketAddress("address") ?? out.admin
      out.adminTLS = certificateFiles(admin, "listen.admin.tls")
      out.adminToken = admin.secret("token_file").map { Redacted(String(decoding: $0, as: UTF8.self)) }
    }
    return out
  }

  /// `udp: 192.0.2.1:5060`, or `{ address: 10.0.0.5:5060, advertise: 203.0.113.5 }`, or a list of these.
  private func sipListeners(
    _ sip: Section, _ transport: TransportProtocol, _ advertised: inout [AdvertisedAddresses.Listener]
  ) -> [SocketAddress] {
    if sip.node(transport.rawValue)?.text != nil { return sip.socketAddresses(transport.rawValue) }
    var out: [SocketAddress] = []
    for (node, path) in sip.items(transport.rawValue, limit: 16) {
      if node.text != nil {
        out += [Section.socketAddress(node, path, self)].compactMap(\.self)
      } else {
        let row = Section(node, path, self)
        if !row.has("address") { problem(path, "address is missing") }
        let found = row.socketAddresses("address")
        advertise(row, transport, found, &advertised)
        out += found
      }
    }
    return out
  }

  private func advertise(
    _ row: Section, _ transport: TransportProtocol, _ addresses: [SocketAddress],
    _ advertised: inout [AdvertisedAddresses.Listener]
  ) {
    guard let host = advertisedHost(row) else { return }
    let fitting = addresses.filter { host.address == nil || host.address?.family == $0.ip.family }
    if fitting.isEmpty, !addresses.isEmpty {
      problem(row.path("advertise"), "\(host) is not of the address family that address has")
    }
    advertised += fitting.map { .init(transport, $0, as: host) }
  }

  /// `advertise: 203.0.113.5`, `sip.example.com`, `203.0.113.5:5070` or `env:NAME`.
  func advertisedHost(_ row: Section, acceptsPort: Bool = true) -> AdvertisedHost? {
    guard var text = row.string("advertise") else { return nil }
    let path = row.path("advertise")
    if text.hasPrefix("env:") {
      let name = String(text.dropFirst(4))
      guard let value = environment[name], !value.isEmpty else {
        problem(path, "the environment has no \(name), or it is empty")
        return nil
      }
      text = value
    }
    guard let host = AdvertisedHost(text), acceptsPort || host.port == nil else {
      problem(
        path, "expected an address or a host name\(acceptsPort ? ", with a port or without" : "") (or env:NAME), got \"\(text)\"")
      return nil
    }
    if host.address?.isUnspecified == true { problem(path, "must be an address that peers can reach, not \(host)") }
    return host
  }

  /// `tls: { cert: FILE, key: FILE }` of a port.
  private func certificateFiles(_ port: Section, _ path: String) -> TLSFiles? {
    guard port.has("tls") else { return nil }
    let tls = port.section("tls")
    for key in ["cert", "key"] where !tls.has(key) { problem(path, "\(key) is missing") }
    guard let certificate = tls.readableFile("cert"), let key = tls.readableFile("key") else { return nil }
    return .init(certificate: certificate, key: key)
  }

  private func sipTLS(_ sip: Section, _ out: inout Settings.Listen) {
    let tls = sip.section("tls")
    out.sipTLS = tls.socketAddresses("address")
    advertise(tls, .tls, out.sipTLS, &out.advertised)
    for key in ["address", "cert", "key"] where !tls.has(key) { problem("listen.sip.tls", "\(key) is missing") }
    guard let certificate = tls.readableFile("cert"), let key = tls.readableFile("key") else { return }
    let identity = TLSFiles(certificate: certificate, key: key, authorities: tls.readableFile("ca"))
    let clients = tls.choice("clients", default: tls.has("ca") ? TLSServerSettings.Clients.required : .off)
    if clients != .off, !tls.has("ca") {
      problem("listen.sip.tls", "clients: \(clients.rawValue) needs ca: FILE, the authorities that sign their certificates")
    }
    out.sipServer = TLSServerSettings(identity: identity, others: otherCertificates(tls), clients: clients)
  }

  /// `certificates: [ { cert: FILE, key: FILE } ]`: certificates for further names.
  private func otherCertificates(_ tls: Section) -> [TLSFiles] {
    tls.items("certificates", limit: Limits.certificates).compactMap { node, path in
      let row = Section(node, path, self)
      guard case .mapping = node else { return nil }
      for key in ["cert", "key"] where !row.has(key) { problem(path, "\(key) is missing") }
      guard let certificate = row.readableFile("cert"), let key = row.readableFile("key") else { return nil }
      return TLSFiles(certificate: certificate, key: key)
    }
  }

  private func media(_ top: Section, _ calls: inout CallFlow.Configuration) -> Settings.Media {
    var out = Settings.Media()
    let media = top.section("media")
    if media.has("addresses") {
      let items = media.items("addresses", limit: 16)
      out.addresses = items.compactMap { mediaAddress($0.node, $0.path) }
      if items.isEmpty { problem("media.addresses", "is empty; write auto for the machine's own addresses") }
    }
    out.loadLimitPercent = media.integer("load_limit", in: 1...100, default: out.loadLimitPercent)
    calls.opusBitrate = media.integer("opus_bitrate", in: Limits.opusBitrate, default: calls.opusBitrate)
    calls.opusBitrateWide = media.integer("opus_bitrate_wide", in: Limits.opusBitrate, default: calls.opusBitrateWide)
    out.threads = media.integer("threads", in: Limits.mediaThreads, default: out.threads)
    out.appPort = UInt16(media.integer("app_port", in: 1024...65535, default: Int(out.appPort)))
    if let ports = media.value("trunk_ports", "a port range such as 20000-21999", portRange) { out.trunkPorts = ports }
    return out
  }

  private func mediaAddress(_ node: Node, _ path: String) -> Settings.MediaAddress? {
    if let text = node.text {
      if text == "auto" { return .automatic(advertise: nil) }
      guard let address = IPAddress(text) else {
        problem(path, "expected auto, an address, or { bind: ADDRESS, advertise: ADDRESS }, got \(shown(node))")
        return nil
      }
      return .fixed(bind: address, advertise: nil)
    }
    let pair = Section(node, path, self)
    guard case .mapping = node else { return nil }
    guard pair.has("bind") else {
      problem(path, "bind is missing")
      return nil
    }
    let advertise = advertisedHost(pair, acceptsPort: false)
    if pair.node("bind")?.text == "auto" { return .automatic(advertise: advertise) }
    guard let bind = pair.value("bind", "auto, or an IPv4 or IPv6 address", { IPAddress($0) }) else { return nil }
    if let family = advertise?.address?.family, family != bind.family {
      problem(path, "bind and advertise must be of one family")
    }
    return .fixed(bind: bind, advertise: advertise)
  }

  private func auth(_ top: Section) -> Settings.Auth {
    var out = Settings.Auth()
    let auth = top.section("auth")
    let jwt = auth.section("jwt")
    out.algorithm = jwt.choice("algorithm", default: out.algorithm)
    out.audience = jwt.string("audience") ?? out.audience
    out.origins = auth.list("origins", limit: 1_000, "an origin such as https://phone.example.com") { text in
      let ok = text.hasPrefix("https://") || text.hasPrefix("http://")
      return ok && !text.dropFirst(8).contains("/") ? text : nil
    }
    let given = ["key_file", "jwks_file", "jwks_url"].filter { jwt.has($0) }
    if given.count > 1 { problem("auth.jwt", "\(given.joined(separator: " and ")) exclude each other") }
    if given.isEmpty {
      problem("auth.jwt", out.algorithm == .HS256 ? "key_file is missing" : "key_file, jwks_file or jwks_url is missing")
    }
    if jwt.has("jwks_ca"), !jwt.has("jwks_url") { problem("auth.jwt.jwks_ca", "goes with jwks_url") }
    if jwt.has("jwks_url") {
      keySetURL(jwt, &out)
      return out
    }
    let isSet = jwt.has("jwks_file")
    let key = isSet ? "jwks_file" : "key_file"
    guard let bytes = jwt.fileContent(key) else { return out }
    out.key = isSet ? .keySetFile(Redacted(bytes)) : .keyFile(Redacted(bytes))
    do {
      _ = try out.keys()
    } catch {
      problem("auth.jwt." + key, "\(resolve(jwt.string(key) ?? "")): \(error)")
    }
    return out
  }

  /// The URL is not fetched here: a gateway must start, and its file be checked, while the server is unreachable.
  private func keySetURL(_ jwt: Section, _ out: inout Settings.Auth) {
    let expected = "a URL such as https://id.example.com/.well-known/jwks.json (http: for this machine only)"
    guard let url = jwt.value("jwks_url", expected, Self.serverURL) else { return }
    if out.algorithm == .HS256 {
      problem("auth.jwt.jwks_url", "HS256 needs key_file: give algorithm: RS256 or ES256, to match the keys of the URL")
    }
    out.key = .keySetURL(url, authorities: jwt.readableFile("jwks_ca"))
  }

  private func timers(_ top: Section, _ out: inout Settings) {
    let timers = top.section("timers")
    func read(_ key: String, _ value: inout Duration, _ range: ClosedRange<Duration>) {
      value = timers.duration(key, in: range, default: value)
    }
    read("ring", &out.calls.timers.ring, .seconds(1) ... .seconds(600))
    if timers.node("early180")?.text == "off" {
      out.calls.timers.early180 = nil
    } else if timers.has("early180") {
      out.calls.timers.early180 = timers.duration("early180", in: .zero ... .seconds(60), default: .zero)
    }
    read("media_gate_warm", &out.calls.timers.mediaGateWarm, .milliseconds(500) ... .seconds(60))
    read("media_gate_cold", &out.calls.timers.mediaGateCold, .milliseconds(500) ... .seconds(60))
    read("media_gate_outgoing", &out.calls.timers.mediaGateOutgoing, .milliseconds(500) ... .seconds(60))
    read("longest_call", &out.calls.timers.longestCall, .seconds(1) ... .seconds(7 * 24 * 3600))
    read("app_grace", &out.calls.timers.appLegGrace, .zero ... .seconds(600))
    read("drain", &out.drain, .zero ... .seconds(24 * 3600))
  }
}

/// `20000-21999`, both ends within 1024…65535.
func portRange(_ text: String) -> ClosedRange<UInt16>? {
  let ends = text.split(separator: "-", omittingEmptySubsequences: false)
  guard ends.count == 2, let first = UInt16(ends[0]), let last = UInt16(ends[1]), first >= 1024, first <= last else { return nil }
  return first...last
}

extension Settings {
  /// `listen.app.path`: segments that every proxy leaves as they are spelled.
  fileprivate static func path(_ text: String) -> String? {
    let segments = text.split(separator: "/", omittingEmptySubsequences: false)
    guard segments.count >= 2, segments[0].isEmpty, text.utf8.count <= 256 else { return nil }
    let isLegal = segments.dropFirst().allSatisfy { segment in
      !segment.isEmpty && segment != "." && segment != ".."
        && segment.utf8.allSatisfy { byte in
          (48...57).contains(byte) || (65...90).contains(byte) || (97...122).contains(byte) || "-_.~".utf8.contains(byte)
        }
    }
    return isLegal ? text : nil
  }
}
