import CallFlow
import JSONWebToken
import PushPolicy
import TrunklineBytes
import TrunklinePlatform
import TrunklineRTP

/// Every key of the configuration file, in the order of the reference.
enum ConfigurationKeys {
  static let sections: [ConfigurationSection] = file + listen + process + recording + trunks + users + routes + push + cluster

  /// The names allowed in the section at `path`, whose indices are ignored. Traps for a path without a row.
  static func names(at path: String) -> [String] {
    guard let names = names[tablePath(path)] else { preconditionFailure("ConfigurationKeys has no section \(path)") }
    return names
  }

  /// Whether a key of the section at `path` names a file with a secret.
  static func isSecret(_ key: String, at path: String) -> Bool { secrets.contains(tablePath(path) + "." + key) }

  private static let secrets: Set<String> = Set(
    sections.flatMap { section in
      section.paths.flatMap { path in
        section.keys.compactMap { if case .secretFile = $0.value { path + "." + $0.name } else { nil } }
      }
    })

  /// `trunks[3].tls` is `trunks[].tls`.
  static func tablePath(_ path: String) -> String {
    var isIndex = false
    return String(
      path.filter { character in
        if character == "]" { isIndex = false }
        defer { if character == "[" { isIndex = true } }
        return !isIndex
      })
  }

  private static let names: [String: [String]] = {
    var out: [String: [String]] = [:]
    for section in sections { for path in section.paths { out[path] = section.keys.map(\.name) } }
    return out
  }()
}

/// Settings of the process: listeners, media, timers, limits, files.
extension ConfigurationKeys {
  private static let settings = Settings()

  static let file: [ConfigurationSection] = [
    .init(
      "", isAppliedBySIGHUP: true, "The sections.",
      [
        .init("listen", .mapping, "The addresses of the SIP, app and admin listeners."),
        .init("admin", .mapping, "What programs may do at the admin endpoint."),
        .init(
          "branding", .mapping, .none("the pages are Trunkline's"), "Name, colour and logo of the web phone and the status page."),
        .init(
          "local_networks", .list(.text("network, or `auto`"), limit: 100), .value("[ auto ]"), waitsForRestart: true,
          "Peers in these networks get our own addresses, not those of `advertise`. `auto`: the networks of our interfaces."
        ),
        .init("dns", .mapping, "The name servers that the names of trunks are looked up with."),
        .init("media", .mapping, "Addresses, ports and threads of RTP."),
        .init("auth", .mapping, .required, "How apps log in."),
        .init("trunks", .list(.mapping, limit: Limits.trunks), "The carriers and PBXs that SIP is exchanged with."),
        .init(
          "users", .list(.or(.text("`any`"), .mapping), limit: Limits.users), .none("no user may log in"),
          "Users who may log in, and their numbers. `any`, alone or as the last item: every `sub` of a valid token."),
        .init("routes", .mapping, "Which calls go where."),
        .init("push", .mapping, .none("no pushes"), "How apps that are not connected are woken."),
        .init("cluster", .mapping, .none("one machine alone"), "Other nodes and proxies of this installation."),
        .init(
          "verifier", .or(.text("URL"), .mapping), .none("identities are not verified"),
          "The service that verifies the Identity header field of callers (STIR/SHAKEN). The URL alone, or a mapping."),
        .init(
          "turn", .mapping, .none("clients get none"), "TURN servers for apps behind firewalls that block UDP."),
        .init(
          "events", .mapping, .none("no events are kept"),
          "What happens to calls, devices and trunks, for your backend. `{}`: kept for `GET /v1/events` alone."),
        .init("recording", .mapping, .none("nothing is recorded"), "Calls as sound files."),
        .init("history", .mapping, "How long calls stay in the users' histories."),
        .init("timers", .mapping, "Time limits of calls and sessions."),
        .init("limits", .mapping, "How much load a gateway accepts before it refuses calls."),
        .init("store", .mapping, "Where devices and the journal of started calls are kept."),
        .init("records", .mapping, "Where the record of each call is written."),
        .init("log", .mapping, "The log on standard error."),
        .init(
          "hep", .or(.text("address with port"), .mapping), .none("nothing is captured"), waitsForRestart: true,
          "A capture server, such as Homer, that gets all SIP as HEP3 over UDP, secrets masked. The address alone, or a mapping."),
      ])
  ]

  private static let advertise = ConfigurationKey(
    "advertise", .text("address or host name, with a port or without, or `env:NAME`"), .none("the listener's address"),
    "Via and Contact for peers outside `local_networks`: where the NAT or the container's host receives SIP for us."
  )

  static let listen: [ConfigurationSection] = [
    .init(
      "listen", isAppliedBySIGHUP: false,
      "Certificate and key files are read again when they change on disk, and at SIGHUP.",
      [
        .init(
          "sip", .mapping, .value("{ udp: \(settings.listen.sipUDP[0]), tcp: \(settings.listen.sipTCP[0]) }"),
          "SIP from and to trunks; needs at least one of `udp`, `tcp` and `tls`."),
        .init(
          "app", .or(.text("address with port"), .mapping), .value("\(settings.listen.app)"),
          "The WebSocket that apps connect to, and the web phone. The address alone, or a mapping."),
        .init(
          "admin", .or(.text("address with port"), .mapping), .value("\(settings.listen.admin)"),
          "`/healthz`, `/readyz`, `/metrics` and the calls API. The address alone, or a mapping."),
      ]),
    .init(
      "listen.sip", isAppliedBySIGHUP: false, "A transport that is not named is not served.",
      [
        .init(
          "udp", .list(.or(.text("address with port"), .mapping), limit: 16), .none("no UDP"),
          "Usually port 5060. The address alone, or behind NAT a mapping with `advertise`."),
        .init("tcp", .list(.or(.text("address with port"), .mapping), limit: 16), .none("no TCP"), "The same for TCP."),
        .init("tls", .mapping, .none("no TLS"), "SIP over TLS."),
      ]),
    .init(
      "listen.sip.udp[]", "listen.sip.tcp[]", isAppliedBySIGHUP: false, "",
      [
        .init("address", .list(.text("address with port"), limit: 16), .required, "Where it listens."),
        advertise,
      ]),
    .init(
      "listen.sip.tls", isAppliedBySIGHUP: false, "",
      [
        .init("address", .list(.text("address with port"), limit: 16), .required, "Usually port 5061 of the public address."),
        advertise,
        .init("cert", .file("PEM certificate chain"), .required, "The certificate that is shown to trunks."),
        .init("key", .secretFile("PEM private key"), .required, "Its private key."),
        .init(
          "certificates", .list(.mapping, limit: Limits.certificates),
          "Certificates for further names: a client that requests one of their names (SNI) gets that one, others get `cert`."
        ),
        .init(
          "ca", .file("PEM certificates"),
          "The CAs of the clients' certificates (mutual TLS), of any key usage."),
        .init(
          "clients", .oneOf(TLSServerSettings.Clients.self), .none("`required` with `ca`, else `off`"),
          "Whether a client must present a certificate; `optional` checks one that is presented."),
      ]),
    .init(
      "listen.sip.tls.certificates[]", isAppliedBySIGHUP: false,
      "The names are those in the certificate; a wildcard there matches one label.",
      [
        .init(
          "cert", .file("PEM certificate chain"), .required, "The certificate for clients that request one of its names."),
        .init("key", .secretFile("PEM private key"), .required, "Its private key."),
      ]),
    .init(
      "listen.app", isAppliedBySIGHUP: false, "",
      [
        .init(
          "address", .text("address with port"), .value("\(settings.listen.app)"),
          "Loopback behind a reverse proxy; else `tls` is required."),
        .init(
          "path", .text("path such as `/phone`"), .none("at the root"),
          "Below which the pages and the WebSocket are, for a reverse proxy that hands its path on."),
        .init("tls", .mapping, .none("no TLS"), "Required unless the address is loopback."),
        .init(
          "proxies", .list(.text("address or network"), limit: 100),
          "Reverse proxies: from these alone the last X-Forwarded-For is used as the app's address."),
      ]),
    .init(
      "listen.admin", isAppliedBySIGHUP: false, "",
      [
        .init(
          "address", .text("address with port"), .value("\(settings.listen.admin)"),
          "Loopback, or an address of the management network; never that of `listen.app`."),
        .init(
          "token_file", .secretFile("one line"), .none("no token"),
          "The bearer token of the calls API; required unless the address is loopback."),
        .init("tls", .mapping, .none("no TLS"), "TLS of the admin endpoint."),
      ]),
    .init(
      "listen.app.tls", "listen.admin.tls", isAppliedBySIGHUP: false, "",
      [
        .init("cert", .file("PEM certificate chain"), .required, "The certificate that clients get."),
        .init("key", .secretFile("PEM private key"), .required, "Its private key."),
      ]),
  ]

  static let process: [ConfigurationSection] = [
    .init(
      "admin", isAppliedBySIGHUP: true, "",
      [
        .init(
          "tokens", .list(.mapping, limit: Limits.apiTokens),
          "Tokens with a part of the rights of the `listen.admin` token; if there is one, every request needs a token."),
        .init(
          "play_folder", .text("path of a folder"), .none("nothing can be played"),
          "Its `.wav` files, of \(Limits.audioBytes >> 20) MiB at most, are what programs may play in calls, by name; read at start and at SIGHUP."
        ),
      ]),
    .init(
      "admin.tokens[]", isAppliedBySIGHUP: true,
      "To change a token, add the new one below the old one, notify its users, remove the old one.",
      [
        .init("name", .text("name"), .required, "The owner's name; idempotency keys are each token's own."),
        .init("token_file", .secretFile("one line, or two"), .required, "The bearer token; of two lines both are good."),
        .init(
          "scopes", .list(.oneOf(APIScope.self), limit: APIScope.allCases.count), .required,
          "`read`: every GET but traces. `calls`: make calls and act on them. `users`: devices and test pushes. `admin`: the rest."
        ),
        .init(
          "per_second", .integer(Limits.apiRate), .value("\(Settings.Admin.requestsPerSecond)"),
          "Requests in a second, of which so many may come at once; more are refused with 429."),
      ]),
    .init(
      "branding", isAppliedBySIGHUP: false, "How it looks: docs/operate/branding.md.",
      [
        .init(
          "name", .text("1 to \(Limits.brandName) characters"), .value(settings.branding.name),
          "The name of the pages and of the installed web phone."),
        .init(
          "color", .text("colour such as `\"#0a5c36\"`, in quotes"), .none("that of the pages"),
          "Of the header, in light and dark; what is written on it is black or white, whichever reads better."),
        .init(
          "logo", .file("SVG or PNG, \(Limits.logoBytes >> 10) KiB at most"), .none("a handset"),
          "Square: it is seen 26 px wide, and as the icon of the tab and of the installed web phone."),
      ]),
    .init(
      "hep", isAppliedBySIGHUP: false, "",
      [
        .init("address", .text("address with port"), .required, "Usually port 9060 of the capture server."),
        .init(
          "capture_id", .integer(1...Int(UInt32.max)), .value("2001"), "The number of this gateway there (capture agent)."),
        .init("password_file", .secretFile("one line"), "The key that the server requires (HEP3 chunk 14)."),
      ]),
    .init(
      "dns", isAppliedBySIGHUP: true, "",
      [
        .init(
          "servers", .list(.text("address, port 53 unless given"), limit: 16), .none("those of the system"),
          "Name servers for NAPTR, SRV, A and AAAA of trunks.")
      ]),
    .init(
      "media", isAppliedBySIGHUP: false, "",
      [
        .init(
          "addresses", .list(.or(.text("`auto` or address"), .mapping), limit: 16), .value("[ auto ]"),
          "Where RTP is received. `auto`: the machine's own addresses, those of now for each call; behind NAT a mapping with `advertise`."
        ),
        .init(
          "threads", .integer(Limits.mediaThreads), .value("\(settings.media.threads)"),
          "Media threads; as many as cores that calls may fill."),
        .init(
          "load_limit", .integer(1...100), .value("\(settings.media.loadLimitPercent)"),
          "Percent of a core that one media thread may fill; beyond it new calls get 503."),
        .init(
          "opus_bitrate", .integer(Limits.opusBitrate), .value("\(settings.calls.opusBitrate)"),
          "bit/s of Opus that apps send at most on the average (`maxaveragebitrate`) while the trunk's codec is narrow; below 20000 Opus has no FEC."
        ),
        .init(
          "opus_bitrate_wide", .integer(Limits.opusBitrate), .value("\(settings.calls.opusBitrateWide)"),
          "The same while the trunk's codec is G722, or not negotiated yet and may be wide."),
        .init(
          "app_port", .integer(1024...65535), .value("\(settings.media.appPort)"),
          "The first UDP port toward apps; each media thread uses one. Open them in the firewall."),
        .init(
          "trunk_ports", .text("port range from 1024 to 65535"),
          .value("\(settings.media.trunkPorts.lowerBound)-\(settings.media.trunkPorts.upperBound)"),
          "UDP ports toward trunks, two for each call: RTP and RTCP."),
      ]),
    .init(
      "media.addresses[]", isAppliedBySIGHUP: false, "For a machine behind NAT.",
      [
        .init("bind", .text("IP address or `auto`"), .required, "The address of this machine that sockets are bound to."),
        .init(
          "advertise", .text("address or host name, or `env:NAME`"), .none("that of `bind`"),
          "The public address that SDP and ICE candidates name; of the same family. A name is looked up at the start and each minute, every two seconds while DNS does not have it."
        ),
      ]),
    .init(
      "auth", isAppliedBySIGHUP: true, "Open sessions are not checked again.",
      [
        .init("jwt", .mapping, .required, "How login tokens are checked."),
        .init(
          "origins", .list(.text("origin"), limit: 1_000), .value("[]"),
          "Origins of web pages that may connect, such as `https://phone.example.com`. Without one: the gateway's own web phone."),
      ]),
    .init(
      "auth.jwt", isAppliedBySIGHUP: true, "Needs `key_file`, `jwks_file` or `jwks_url`.",
      [
        .init(
          "algorithm", .oneOf(Algorithm.self), .value(settings.auth.algorithm.rawValue),
          "The only signature algorithm that is accepted."),
        .init(
          "key_file", .secretFile("the secret itself, or for RS256 and ES256 a PEM key"),
          "The key that your server signs login tokens with; for HS256 32 bytes or more, and base64 is not decoded."),
        .init("jwks_file", .file("JSON Web Key Set"), "Public keys, chosen by `kid`; not with HS256."),
        .init(
          "jwks_url", .text("URL"),
          .none("keys are in a file"),
          "Where the issuer publishes its keys: `https:`, or `http:` of this machine; not with HS256. See [users](../integrate/users.md#keys-by-url)."
        ),
        .init(
          "jwks_ca", .file("PEM certificates"), .none("the system's authorities"),
          "The CAs of the certificate of `jwks_url`."),
        .init("audience", .text("text"), .value(settings.auth.audience), "What `aud` of a login token must be."),
      ]),
    .init(
      "verifier", isAppliedBySIGHUP: false, "",
      [
        .init("url", .text("URL"), .required, "`https:`, or `http:` of this machine; queried for each call with an Identity."),
        .init("ca", .file("PEM certificates"), .none("the system's authorities"), "The CAs of its certificate."),
      ]),
    .init(
      "turn", isAppliedBySIGHUP: true,
      """
      Each `welcome` has credentials for a time (`ice`), by the convention that coturn checks with `use-auth-secret` and \
      `static-auth-secret`; see [networks](../operate/nat.md#turn).
      """,
      [
        .init(
          "urls", .list(.text("`turn:` or `turns:` URI"), limit: Limits.turnURLs), .required,
          "The servers' addresses, such as `turn:turn.example.com:3478?transport=udp` and `turns:turn.example.com:443?transport=tcp`."
        ),
        .init("secret_file", .secretFile("one line"), .required, "The secret that the servers have, too: `static-auth-secret`."),
        .init(
          "ttl", .duration(.seconds(600) ... .seconds(7 * 86_400)), .value("24h"),
          "How long a client's credentials are good; it gets new ones with each `welcome` and `auth.refresh`."),
      ]),
    .init(
      "events", isAppliedBySIGHUP: true,
      """
      [Events](../integrate/events.md) are kept for 24 hours and in 64 MiB, in a folder beside `store.sqlite`. SIGHUP applies changes of the section; \
      the section itself comes and goes with a restart.
      """,
      [
        .init(
          "digits", .flag, .value("false"),
          "Also `call.digits`: what people press, which may be PINs and card numbers."),
        .init(
          "webhooks", .list(.mapping, limit: PushPolicy.Limits.eventWebhooks), .none("events are only fetched"),
          "The servers that get each event with a POST."),
        .init(
          "ca", .file("PEM certificates"), .none("the system's authorities"),
          "The CAs of the webhooks' certificates."),
      ]),
    .init(
      "events.webhooks[]", isAppliedBySIGHUP: true, "",
      [
        .init("url", .text("URL"), .required, "`https:`, or `http:` of this machine. Redirects are not followed."),
        .init(
          "key_file", .secretFile("one secret, or two on two lines"), .required,
          "`whsec_` and base64, or any text of 16 characters and more. With two, each request has two signatures: change a secret so."
        ),
        .init(
          "kinds", .list(.oneOf(GatewayEvent.Kind.allCases.map(\.rawValue)), limit: GatewayEvent.Kind.allCases.count),
          .none("all kinds"), "The kinds of events that this one gets."),
      ]),
    .init(
      "history", isAppliedBySIGHUP: true,
      "Users' [histories](../integrate/directory.md#history) are in `store.sqlite` with `.directory` appended, in a cluster in the shared store. The records file is separate.",
      [
        .init(
          "keep", .duration(Limits.historyKeep), .value(durationText(settings.history.keep)),
          "A call stays so long after its end; `90d` may be written, too."),
        .init(
          "per_user", .integer(Limits.historyPerUser), .value("\(settings.history.perUser)"),
          "Calls of one user; the oldest go. 0: no histories are kept."),
      ]),
    .init(
      "timers", isAppliedBySIGHUP: false, "",
      [
        .init(
          "ring", .duration(.seconds(1) ... .seconds(600)), .value(durationText(settings.calls.timers.ring)),
          "How long devices ring; less than the carrier's own no-answer timer."),
        .init(
          "early180", .or(.duration(.zero ... .seconds(60)), .oneOf(["off"])),
          .value(settings.calls.timers.early180.map(durationText) ?? "off"),
          "The trunk gets 180 at the latest this long after the first accepted push; `off`: only when a device rings."),
        .init(
          "media_gate_warm", .duration(.milliseconds(500) ... .seconds(60)),
          .value(durationText(settings.calls.timers.mediaGateWarm)),
          "From an answer to media that flows, where the app was connected; then the call fails."),
        .init(
          "media_gate_cold", .duration(.milliseconds(500) ... .seconds(60)),
          .value(durationText(settings.calls.timers.mediaGateCold)),
          "The same where a push woke the app."),
        .init(
          "media_gate_outgoing", .duration(.milliseconds(500) ... .seconds(60)),
          .value(durationText(settings.calls.timers.mediaGateOutgoing)),
          "From an app's `call.start` to media that flows; then the call fails."),
        .init(
          "longest_call", .duration(.seconds(1) ... .seconds(7 * 24 * 3600)),
          .value(durationText(settings.calls.timers.longestCall)),
          "A call that lasts longer is ended."),
        .init(
          "app_grace", .duration(.zero ... .seconds(600)), .value(durationText(settings.calls.timers.appLegGrace)),
          "How long an app may be silent in a call, as when it changes networks; then the call ends."),
        .init(
          "drain", .duration(.zero ... .seconds(24 * 3600)), .value(durationText(settings.drain)),
          "How long SIGTERM waits for calls; less than the supervisor's own timeout (systemd: TimeoutStopSec)."),
      ]),
    .init(
      "limits", isAppliedBySIGHUP: false, "",
      [
        .init(
          "calls", .integer(Limits.calls), .value("\(settings.calls.bounds.calls)"), "Calls at a time; more get 503."),
        .init(
          "calls_per_user", .integer(1...1_000), .value("\(settings.calls.bounds.callsPerUser)"), "Calls at a time of one user."),
        .init(
          "sessions_per_address", .integer(1...100_000), .value("\(settings.limits.sessionsPerAddress)"),
          "App connections from one IP address; more where many users share a NAT."),
        .init(
          "memory_mib", .integer(0...1_048_576), .value("\(settings.limits.memoryMebibytes)"),
          "MiB of memory; at 90 % of it new calls get 503. 0: what the control group allows, or the machine has."),
        .init(
          "core_dumps", .flag, .value("\(settings.limits.dumpsCore)"),
          "A crash may leave a core, where the system keeps cores, and a debugger of the same user may attach: both hold every key."
        ),
      ]),
    .init(
      "store", isAppliedBySIGHUP: false, "",
      [
        .init(
          "sqlite", .text("path"), .value(settings.store),
          "The SQLite file of devices; calls that have begun are in a file `.started` beside it. Keep both.")
      ]),
    .init(
      "records", isAppliedBySIGHUP: false, "",
      [
        .init("file", .text("path"), .value(settings.records), "The file that gets one line of JSON for each call."),
        .init(
          "stream", .flag, .value("\(settings.streamsRecords)"),
          "Each record also goes to the cluster's stream, which `trunkline records follow` prints; needs `cluster.shared_store`. The position is in a file `.shipped` beside it."
        ),
      ]),
    .init(
      "log", isAppliedBySIGHUP: false, "",
      [
        .init(
          "level", .oneOf(Settings.Log.Level.self), .value(settings.log.level.rawValue), "The least severe that is written."),
        .init(
          "format", .oneOf(Settings.Log.Format.self), .value(settings.log.format.rawValue),
          "`text` for people, `json` for a log collector."),
        .init(
          "numbers", .oneOf(Settings.Log.Numbers.self), .value(settings.log.numbers.rawValue),
          "Telephone numbers in the log: all but the last two digits masked, or in full."),
      ]),
  ]
}
