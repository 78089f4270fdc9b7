import TrunklineBytes
import TrunklinePlatform
import TrunklineSIPDialogs

/// `listen:`. Each port may be written as its address alone.
extension ConfigurationKeys {
  static let listen = KeyTable<Settings.Listen>(
    .init(), .atRestart, about: "Certificate and key files are read again when they change on disk, and at SIGHUP.",
    [
      .init(
        "sip", .mapping,
        default: .value("{ udp: \(Settings.Listen().sipUDP[0]), tcp: \(Settings.Listen().sipTCP[0]) }"),
        "SIP from and to trunks; needs at least one of `udp`, `tcp` and `tls`.", inner: sip
      ) { field, out in
        guard field.isWritten else { return }
        out.sipUDP = []
        out.sipTCP = []
        sip.read(field, into: &out)
      },
      .section(
        "app", app, \.self, default: .value("\(Settings.Listen().app)"),
        "The WebSocket that apps connect to, and the web phone. The address alone, or a mapping."),
      .section(
        "admin", adminPort, \.self, default: .value("\(Settings.Listen().admin)"),
        "`/healthz`, `/readyz`, `/metrics` and the calls API. The address alone, or a mapping."),
    ])

  private static let app = KeyTable<Settings.Listen>(
    .init(), .atRestart, short: "address",
    [
      .address("address", \.app, "Loopback behind a reverse proxy; else `tls` is required."),
      .value(
        "path", \.appPath, "path such as `/phone`", default: .none("at the root"),
        expected: "a path such as /phone, of letters, digits, - _ . and ~, without a / at its end",
        "Below which the pages and the WebSocket are, for a reverse proxy that hands its path on.", parse: path),
      .optionalSection("tls", portTLS, \.appTLS, none: "no TLS", "Required unless the address is loopback."),
      .list(
        "proxies", \.appProxies, .text("address or network"), limit: 100,
        expected: "an address or a network such as 10.0.0.0/8",
        "Reverse proxies: from these alone the last X-Forwarded-For is used as the app's address."
      ) { IPNetwork($0) },
    ])

  private static let adminPort = KeyTable<Settings.Listen>(
    .init(), .atRestart, short: "address",
    [
      .address("address", \.admin, "Loopback, or an address of the management network; never that of `listen.app`."),
      .init(
        "token_file", .secretFile("one line"), default: .none("no token"),
        "The bearer token of the calls API; required unless the address is loopback."
      ) { field, out in
        out.adminToken = field.secret().map { Redacted(String(decoding: $0, as: UTF8.self)) }
      },
      .optionalSection("tls", portTLS, \.adminTLS, none: "no TLS", "TLS of the admin endpoint."),
    ])

  private static let portTLS = KeyTable<TLSFiles>(
    .init(), .atRestart,
    [
      .file(
        "cert", \.certificate, .file("PEM certificate chain"), default: .required(), "The certificate that clients get."),
      .file("key", \.key, .secretFile("PEM private key"), default: .required(), "Its private key."),
    ])

  /// `listen.app.path`: segments that every proxy leaves as they are spelled.
  @Sendable private static func path(_ text: String) -> String? {
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

/// `listen.sip:`
extension ConfigurationKeys {
  private static let sip = KeyTable<Settings.Listen>(
    .init(), .atRestart, about: "A transport that is not named is not served.",
    [
      .init(
        "udp", .list(sipListener.form, limit: 16), default: .none("no UDP"),
        "Usually port 5060. The address alone, or behind NAT a mapping with `advertise`.", inner: sipListener
      ) { field, out in
        out.sipUDP = listeners(field, .udp, &out.advertised)
      },
      .init(
        "tcp", .list(sipListener.form, limit: 16), default: .none("no TCP"), "The same for TCP.", inner: sipListener
      ) { field, out in
        out.sipTCP = listeners(field, .tcp, &out.advertised)
      },
      .init("tls", .mapping, default: .none("no TLS"), "SIP over TLS.", inner: sipTLS) { field, out in
        guard field.isWritten, let tls = sipTLS.value(field) else { return }
        out.sipTLS = tls.listener.addresses
        out.advertised += tls.listener.advertised(.tls)
        out.sipServer = tls.server
      },
    ], rules: [someTransport])

  @Sendable private static func someTransport(_ sip: Section, _ out: inout Settings.Listen) {
    if !["udp", "tcp", "tls"].contains(where: sip.has) { sip.problem("needs udp, tcp or tls") }
  }

  /// `192.0.2.1:5060`, or `{ address: 10.0.0.5:5060, advertise: 203.0.113.5 }`, or a list of these.
  private static func listeners(
    _ field: Field, _ transport: TransportProtocol, _ advertised: inout [AdvertisedAddresses.Listener]
  ) -> [SocketAddress] {
    let items = field.text == nil ? field.items(limit: 16) : [field]
    let all = items.compactMap(sipListener.value)
    advertised += all.flatMap { $0.advertised(transport) }
    return all.flatMap(\.addresses)
  }

  private static let sipListener = KeyTable<SIPListener>(
    .init(), .atRestart, short: "address", listenerKeys(\.self, "Where it listens."),
    rules: [{ section, out in oneFamily(section, out) }])

  private static let sipTLS = KeyTable<SIPOverTLS>(
    .init(), .atRestart, listenerKeys(\.listener, "Usually port 5061 of the public address."),
    [
      .file(
        "cert", \.files.certificate, .file("PEM certificate chain"), default: .required(),
        "The certificate that is shown to trunks."),
      .file("key", \.files.key, .secretFile("PEM private key"), default: .required(), "Its private key."),
      .sections(
        "certificates", furtherCertificate, \.others, limit: Limits.certificates,
        "Certificates for further names: a client that requests one of their names (SNI) gets that one, others get `cert`."),
      .file(
        "ca", \.files.authorities, .file("PEM certificates"),
        "The CAs of the clients' certificates (mutual TLS), of any key usage."),
      .init(
        "clients", .oneOf(TLSServerSettings.Clients.self), default: .none("`required` with `ca`, else `off`"),
        "Whether a client must present a certificate; `optional` checks one that is presented."
      ) { field, out in
        out.clients = field.choice(TLSServerSettings.Clients.self)
      },
    ],
    rules: [{ section, out in oneFamily(section, out.listener) }, clientsNeedAuthorities])

  private static let furtherCertificate = KeyTable<TLSFiles>(
    .init(), .atRestart, about: "The names are those in the certificate; a wildcard there matches one label.",
    [
      .file(
        "cert", \.certificate, .file("PEM certificate chain"), default: .required(),
        "The certificate for clients that request one of its names."),
      .file("key", \.key, .secretFile("PEM private key"), default: .required(), "Its private key."),
    ])

  private static func listenerKeys<Target: Sendable>(_ path: Key<Target>.Path<SIPListener>, _ address: String) -> [Key<Target>] {
    [
      .init("address", .list(.text("address with port"), limit: 16), default: .required(), address) { field, out in
        out[keyPath: path].addresses = field.socketAddresses()
      },
      .init(
        "advertise", .text("address or host name, with a port or without, or `env:NAME`"),
        default: .none("the listener's address"),
        "Via and Contact for peers outside `local_networks`: where the NAT or the container's host receives SIP for us."
      ) { field, out in
        out[keyPath: path].host = field.advertisedHost()
      },
    ]
  }

  private static func oneFamily(_ section: Section, _ listener: SIPListener) {
    guard let host = listener.host, !listener.addresses.isEmpty, listener.advertised(.udp).isEmpty else { return }
    section["advertise"].problem("\(host) is not of the address family that address has")
  }

  @Sendable private static func clientsNeedAuthorities(_ tls: Section, _ out: inout SIPOverTLS) {
    guard let clients = out.clients, clients != .off, !tls.has("ca") else { return }
    tls.problem("clients: \(clients.rawValue) needs ca: FILE, the authorities that sign their certificates")
  }
}

private struct SIPListener: Sendable {
  var addresses: [SocketAddress] = []
  var host: AdvertisedHost?

  /// The addresses that are advertised as `host`.
  func advertised(_ transport: TransportProtocol) -> [AdvertisedAddresses.Listener] {
    guard let host else { return [] }
    return addresses.filter { host.address == nil || host.address?.family == $0.ip.family }.map { .init(transport, $0, as: host) }
  }
}

private struct SIPOverTLS: Sendable {
  var listener = SIPListener()
  var files = TLSFiles()
  var others: [TLSFiles] = []
  var clients: TLSServerSettings.Clients?

  /// Nil after an error.
  var server: TLSServerSettings? {
    guard files.certificate != nil, files.key != nil else { return nil }
    return TLSServerSettings(
      identity: files, others: others, clients: clients ?? (files.authorities == nil ? .off : .required))
  }
}
