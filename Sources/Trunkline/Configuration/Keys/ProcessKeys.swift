import AppSessions
import CallModel
import TrunklineBytes

/// Time limits, load, files and the log of the process.
extension ConfigurationKeys {
  static let timers = KeyTable<Settings>(
    .init(), .atRestart,
    [
      .duration(
        "ring", \.calls.timers.ring, .seconds(1) ... .seconds(600),
        "How long devices ring; less than the carrier's own no-answer timer."),
      .durationOrOff(
        "early180", \.calls.timers.early180, .zero ... .seconds(60),
        "The trunk gets 180 at the latest this long after the first accepted push; `off`: only when a device rings."),
      .duration(
        "media_gate_warm", \.calls.timers.mediaGateWarm, gate,
        "From an answer to media that flows, where the app was connected; then the call fails."),
      .duration("media_gate_cold", \.calls.timers.mediaGateCold, gate, "The same where a push woke the app."),
      .duration(
        "media_gate_outgoing", \.calls.timers.mediaGateOutgoing, gate,
        "From an app's `call.start` to media that flows; then the call fails."),
      .duration(
        "longest_call", \.calls.timers.longestCall, .seconds(1) ... .seconds(7 * 24 * 3600),
        "A call that lasts longer is ended."),
      .duration(
        "app_grace", \.calls.timers.appLegGrace, .zero ... .seconds(600),
        "How long an app may be silent in a call, as when it changes networks; then the call ends."),
      .duration(
        "drain", \.drain, .zero ... .seconds(24 * 3600),
        "How long SIGTERM waits for calls; less than the supervisor's own timeout (systemd: TimeoutStopSec)."),
    ])

  private static let gate = Duration.milliseconds(500) ... .seconds(60)

  static let limits = KeyTable<Settings>(
    .init(), .atRestart,
    [
      .integer("calls", \.calls.bounds.calls, Limits.calls, "Calls at a time; more get 503."),
      .integer("calls_per_user", \.calls.bounds.callsPerUser, 1...1_000, "Calls at a time of one user."),
      .integer(
        "sessions_per_address", \.limits.sessionsPerAddress, 1...100_000,
        "App connections from one IP address; more where many users share a NAT."),
      .integer(
        "memory_mib", \.limits.memoryMebibytes, 0...1_048_576,
        "MiB of memory; at 90 % of it new calls get 503. 0: what the control group allows, or the machine has."),
      .flag(
        "core_dumps", \.limits.dumpsCore,
        "A crash may leave a core, where the system keeps cores, and a debugger of the same user may attach: both hold every key."
      ),
    ])

  static let store = KeyTable<Settings>(
    .init(), .atRestart,
    [
      .path(
        "sqlite", \.store,
        "The SQLite file of devices; calls that have begun are in a file `.started` beside it. Keep both.")
    ])

  static let records = KeyTable<Settings>(
    .init(), .atRestart,
    [
      .path("file", \.records, "The file that gets one line of JSON for each call."),
      .flag(
        "stream", \.streamsRecords,
        "Each record also goes to the cluster's stream, which `trunkline records follow` prints; needs `cluster.shared_store`. The position is in a file `.shipped` beside it."
      ),
    ])

  static let history = KeyTable<Settings.History>(
    .init(), .atSIGHUP,
    about:
      "Users' [histories](../integrate/directory.md#history) are in `store.sqlite` with `.directory` appended, in a cluster in the shared store. The records file is separate.",
    [
      .duration("keep", \.keep, Limits.historyKeep, "A call stays so long after its end; `90d` may be written, too."),
      .integer("per_user", \.perUser, Limits.historyPerUser, "Calls of one user; the oldest go. 0: no histories are kept."),
    ])

  static let log = KeyTable<Settings.Log>(
    .init(), .atRestart,
    [
      .choice("level", \.level, "The least severe that is written."),
      .choice("format", \.format, "`text` for people, `json` for a log collector."),
      .choice("numbers", \.numbers, "Telephone numbers in the log: all but the last two digits masked, or in full."),
    ])
}

/// Servers beside the gateway.
extension ConfigurationKeys {
  static let dns = KeyTable<Settings.DNS>(
    .init(), .atSIGHUP,
    [
      .list(
        "servers", \.servers, .text("address, port 53 unless given"), limit: 16, default: .none("those of the system"),
        expected: "a name server such as 192.0.2.53 or 127.0.0.1:5353", "Name servers for NAPTR, SRV, A and AAAA of trunks."
      ) { SocketAddress($0) ?? IPAddress($0).map { SocketAddress($0, 53) } }
    ])

  /// `hep: 192.0.2.9:9060`, or `{ address: 192.0.2.9:9060, capture_id: 2001, password_file: FILE }`.
  static let hep = KeyTable<Settings.HEP>(
    .init(address: SocketAddress(.loopback, 9_060)), .atRestart, short: "address",
    [
      .address("address", \.address, default: .required(), "Usually port 9060 of the capture server."),
      .integer(
        "capture_id", \.captureID, 1...Int(UInt32.max), "The number of this gateway there (capture agent)."),
      .init("password_file", .secretFile("one line"), "The key that the server requires (HEP3 chunk 14).") { field, out in
        out.key = field.secret().map { Redacted($0) }
      },
    ])

  /// `verifier: https://…`, or `{ url: https://…, ca: FILE }`.
  static let verifier = KeyTable<Settings.Verifier>(
    .init(url: ""), .atRestart, short: "url",
    [
      .value(
        "url", \.url, "URL", default: .required(),
        expected: "a URL such as https://verifier.example/check (http: for this machine only)",
        "`https:`, or `http:` of this machine; queried for each call with an Identity.", parse: serverURL),
      .authorities("ca", \.authorities, "The CAs of its certificate."),
    ])

  /// `turn: { urls: [ "turn:turn.example.com:3478" ], secret_file: FILE, ttl: 24h }`.
  static let turn = KeyTable<TURNServers>(
    .init(urls: [], secret: Redacted([])), .atSIGHUP,
    about: """
      Each `welcome` has credentials for a time (`ice`), by the convention that coturn checks with `use-auth-secret` and \
      `static-auth-secret`; see [networks](../operate/nat.md#turn).
      """,
    [
      .list(
        "urls", \.urls, .text("`turn:` or `turns:` URI"), limit: Limits.turnURLs, default: .required(),
        expected: "a URI such as turn:turn.example.com:3478?transport=udp or turns:turn.example.com:443",
        "The servers' addresses, such as `turn:turn.example.com:3478?transport=udp` and `turns:turn.example.com:443?transport=tcp`."
      ) { isTURN($0) ? $0 : nil },
      .init(
        "secret_file", .secretFile("one line"), default: .required(hint: "static-auth-secret of the TURN server"),
        "The secret that the servers have, too: `static-auth-secret`."
      ) { field, out in
        if let secret = field.secret() { out.secret = Redacted(secret) }
      },
      .duration(
        "ttl", \.lifetime, .seconds(600) ... .seconds(7 * 86_400),
        "How long a client's credentials are good; it gets new ones with each `welcome` and `auth.refresh`."),
    ])

  /// RFC 7065 §3.1, without the RFC's percent encoding, which no host needs.
  private static func isTURN(_ text: String) -> Bool {
    guard let colon = text.firstIndex(of: ":"), ["turn", "turns"].contains(text[..<colon]) else { return false }
    let parts = text[text.index(after: colon)...].split(separator: "?", omittingEmptySubsequences: false)
    guard parts.count <= 2, parts.count == 1 || ["transport=udp", "transport=tcp"].contains(parts[1]), let host = parts.first,
      !host.isEmpty, host.utf8.allSatisfy({ $0 > 32 && $0 < 127 && $0 != UInt8(ascii: "@") && $0 != UInt8(ascii: "/") })
    else { return false }
    return AdvertisedHost(String(host)) != nil
  }
}
