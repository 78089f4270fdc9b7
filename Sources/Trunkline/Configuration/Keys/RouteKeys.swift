import CallModel
import PushPolicy
import TrunklineBytes

/// `routes:`, read again at SIGHUP.
extension ConfigurationKeys {
  static let routes = KeyTable<Settings>(
    .init(), .atSIGHUP,
    [
      .init(
        "inbound", .list(.mapping, limit: Limits.routes), "Calls from trunks; the first row that matches applies.",
        inner: inbound
      ) { field, out in
        out.routes.inbound = field.items(limit: Limits.routes).compactMap { inbound.value($0)?.rule }
      },
      .init(
        "outbound", .list(.mapping, limit: Limits.routes), "Calls to trunks; the longest matching prefix applies.",
        inner: outbound
      ) { field, out in
        let rows = field.items(limit: Limits.routes).compactMap(outbound.value)
        out.routes.outbound = rows.filter { !$0.choices.isEmpty }
      },
      .words(
        "users", \.routes.connectsUsers, [("direct", true), ("trunk", false)],
        "Whether a user who calls another user's number or id rings that user's devices, or the number is dialled like any other."
      ),
      .init(
        "emergency", .list(.text("number"), limit: 100),
        default: .none("none; \(Routing.usualEmergencyNumbers.sorted().joined(separator: ", ")) of users without a known region"),
        "Emergency numbers beside those of the user's region: apps must dial them over the device's own telephone, unless an outbound row has `emergency`. See [emergency calls](../operate/emergency.md)."
      ) { field, out in
        if field.isWritten { out.routes.emergencyNumbers = Set(field.list(limit: 100, "a number such as 112", number)) }
      },
      .words(
        "decline_code", \.calls.declineCode, [("486", 486), ("603", 603)],
        "The final response once every device declined; a 603 ends forking upstream."
      ).atRestart,
      .authorities("webhook_ca", \.routes.webhookAuthorities, "The CAs of the webhooks' certificates."),
    ], streams)

  private static let streams: [Key<Settings>] = [
    .list(
      "stream_hosts", \.routes.streamHosts.hosts,
      .text("host, `*.` and a domain, each also with a port; `ws://` before it for this machine"), limit: Limits.streamHosts,
      default: .value("[ ]"),
      expected: "a host such as bot.example, *.bots.example or bot.example:8443, or ws://127.0.0.1:8080 of this machine",
      "Where programs may send calls (`POST /v1/calls/ID/stream`), beside the hosts of `inbound`; without a port: 443."
    ) { StreamHosts.Host($0) },
    .list(
      "stream_networks", \.routes.streamHosts.networks, .text("network"), limit: Limits.streamHosts, default: .value("[ ]"),
      expected: "a network such as 10.0.0.0/8",
      "Networks that are not public and that names of these hosts may lead to, such as `10.0.0.0/8`."
    ) { IPNetwork($0) },
    .authorities("stream_ca", \.routes.streamAuthorities, "The CAs of the streams' certificates."),
  ]
}

/// `routes.inbound:`
extension ConfigurationKeys {
  private static let inbound = KeyTable<InboundDraft>(
    .init(), .atSIGHUP, about: "Needs one of `to`, `user` and `route`.",
    [
      .requiredText("trunk", \.trunk, kind: "name of a trunk", "Where the calls come from."),
      .init(
        "to", .or(.oneOf(["users"]), .text("`wss://` address of at most 2048 bytes")),
        "The user who has the called number; or a program that talks with the caller: see [media streams](../integrate/media-streams.md)."
      ) { field, out in
        guard field.text != "users" else { return }
        out.stream = field.value("users, or a URL such as wss://bot.example/call (ws: for this machine only)") { StreamURL($0) }
        out.isWrong = field.isWritten && out.stream == nil
      },
      .text("user", \.user, kind: "id of a user", "This user, whatever the called number."),
      .optionalSection("route", route, \.hook, none: "–", "A webhook returns the called user."),
      .account(\.account, none: "none", "The account of numbers and users that have none of their own."),
      .section(
        "diversions", diversions, \.diversions,
        "For users without a rule of their own; of a stream: `media_failed`, when it cannot be reached."),
      .list(
        "numbers", \.numbers, .text("number"), limit: Limits.numbersPerUser, default: .none("all of the trunk"),
        expected: "a number such as \"+15551230001\"", "With a stream: the called numbers that it is for.",
        parse: { number($0) }),
      .choice(
        "format", \.format,
        "With a stream: `mulaw` in JSON, as Twilio has it, or 16-bit samples in binary messages at 8 or 16 kHz."),
      .init(
        "token_file", .secretFile("one line"), default: .none("no token"), "With a stream: a bearer token that it is shown."
      ) { field, out in
        guard let bytes = field.secret() else { return }
        if bytes.allSatisfy({ $0 > 32 && $0 < 127 }), bytes.count <= Limits.streamTokenBytes {
          out.token = Redacted(String(decoding: bytes, as: UTF8.self))
        } else {
          field.problem("needs a line of at most \(Limits.streamTokenBytes) visible characters")
        }
      },
    ], rules: [oneTarget, keysOfStream])

  @Sendable private static func oneTarget(_ row: Section, _ out: inout InboundDraft) {
    if ["to", "user", "route"].filter(row.has).count != 1 {
      row.problem("needs exactly one of to: users or wss://…, user: ID, route: { webhook: URL }")
    }
  }

  @Sendable private static func keysOfStream(_ row: Section, _ out: inout InboundDraft) {
    if out.stream != nil {
      if row.has("account") { row["account"].problem("a stream has no account") }
    } else if !out.isWrong {
      for key in ["numbers", "format", "token_file"] where row.has(key) { row[key].problem("goes with to: wss://…") }
    }
  }

  /// `route: { webhook: URL, key_file: F, fallback: users }`, also `fallback: { user: ID }` or `{ code: 503 }`.
  private static let route = KeyTable<Routing.Hook>(
    .init(Webhook(url: "", key: Redacted([]))), .atSIGHUP, about: "Queried with a signed POST; it has 1 s to answer.",
    [
      .value(
        "webhook", \.webhook.url, "URL of at most 2048 bytes", default: .required(),
        expected: "a URL: https://…, or http://… of this machine", "`https:`, or `http:` of this machine.", parse: webhookURL),
      .signingKey(\.webhook.key),
      .init(
        "fallback", .or(.oneOf(["users"]), .mapping), default: .value("users"),
        "What applies without an answer: the user who has the called number, or a mapping.", inner: fallback
      ) { field, out in
        if case .mapping = field.node { return fallback.read(field, into: &out.fallback) }
        _ = field.value("users, { user: ID } or { code: 503 }") { $0 == "users" ? true : nil }
      },
    ])

  private static let fallback = KeyTable<Routing.Hook.Fallback>(
    .users, .atSIGHUP, about: "Needs exactly one of the two.",
    [
      .init("user", .text("id of a user"), "This user.") { field, out in
        if let id = field.string() { out = .user(id) }
      },
      .init("code", .integer(Limits.refusals), "The final response, such as 503.") { field, out in
        if let code = field.integer(in: Limits.refusals) { out = .code(code) }
      },
    ],
    rules: [
      { rule, _ in
        if rule.has("user") == rule.has("code") { rule.problem("needs exactly one of user: ID, code: 503") }
      }
    ])
}

private struct InboundDraft: Sendable {
  var trunk = ""
  var stream: StreamURL?
  /// `to` has an error.
  var isWrong = false
  var user: String?
  var hook: Routing.Hook?
  var account: String?
  var diversions = Diversions()
  var numbers: [String] = []
  var format = StreamTarget.Format.mulaw
  var token: Redacted<String>?

  /// Nil without a trunk.
  var rule: Routing.InboundRule? {
    guard !trunk.isEmpty else { return nil }
    var out = Routing.InboundRule(trunk: trunk, target: target)
    out.diversions = diversions
    out.account = account
    if stream != nil { out.numbers = numbers }
    return out
  }

  private var target: Routing.InboundRule.Target {
    if let stream { return .stream(StreamTarget(stream, format: format, token: token)) }
    return user.map { .user($0) } ?? hook.map { .hook($0) } ?? .users
  }
}

/// `routes.outbound:`
extension ConfigurationKeys {
  private static let outbound = KeyTable<Routing.OutboundRule>(
    .init(prefix: "", choices: []), .atSIGHUP, about: "Needs `trunk` or `trunks`.",
    [
      .value(
        "prefix", \.prefix, "beginning of a number", default: .value("\"\""), expected: "the beginning of a number",
        "The numbers that go this way.", parse: { prefix($0) }),
      .init("trunk", .text("name of a trunk"), "The only trunk; it needs a `uri`.") { field, out in
        if let name = field.string() { out.choices = [.init(trunk: name)] }
      },
      .init(
        "trunks", .list(choice.form, limit: 32),
        "Several: the next one where a trunk is full, down or silent. In this order, or mappings.", inner: choice
      ) { field, out in
        for (index, item) in field.items(limit: 32).enumerated() {
          var one = Routing.TrunkChoice(trunk: "", priority: index + 1)
          choice.read(item, into: &one)
          if !one.trunk.isEmpty { out.choices.append(one) }
        }
      },
      .flag(
        "emergency", \.allowsEmergency, "Emergency numbers with this prefix use this route despite `allow` and limits."),
    ],
    rules: [
      { row, _ in
        if row.has("trunk"), row.has("trunks") { row.problem("trunk and trunks exclude each other") }
        if !row.has("trunk"), !row.has("trunks") { row.problem("trunk is missing") }
      }
    ])

  /// `[ a, b ]` in that order, or `{ trunk: a, priority: 1, weight: 70 }`.
  private static let choice = KeyTable<Routing.TrunkChoice>(
    .init(trunk: ""), .atSIGHUP, short: "trunk",
    [
      .requiredText("trunk", \.trunk, kind: "name of a trunk", "It needs a `uri`."),
      .init(
        "priority", .integer(1...1_000), default: .none("its position in the list"), "Lower ones are tried first."
      ) { field, out in
        if let priority = field.integer(in: 1...1_000) { out.priority = priority }
      },
      .integer("weight", \.weight, 0...65_535, "Its share of the calls among those of one priority."),
    ])
}
