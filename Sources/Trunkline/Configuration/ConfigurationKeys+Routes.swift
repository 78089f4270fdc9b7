import CallFlow
import PushPolicy

/// Routes and push services, whose changes apply at SIGHUP too.
extension ConfigurationKeys {
  static let routes: [ConfigurationSection] = [
    .init(
      "routes", isAppliedBySIGHUP: true, "",
      [
        .init("inbound", .list(.mapping, limit: Limits.routes), "Calls from trunks; the first row that matches applies."),
        .init("outbound", .list(.mapping, limit: Limits.routes), "Calls to trunks; the longest matching prefix applies."),
        .init(
          "users", .oneOf(["direct", "trunk"]), .value("direct"),
          "Whether a user who calls another user's number or id rings that user's devices, or the number is dialled like any other."
        ),
        .init(
          "emergency", .list(.text("number"), limit: 100),
          .none("none; \(Routing.usualEmergencyNumbers.sorted().joined(separator: ", ")) of users without a known region"),
          "Emergency numbers beside those of the user's region: apps must dial them over the device's own telephone, unless an outbound row has `emergency`. See [emergency calls](../operate/emergency.md)."
        ),
        .init(
          "decline_code", .oneOf(["486", "603"]), .value("\(Settings().calls.declineCode)"), waitsForRestart: true,
          "The final response once every device declined; a 603 ends forking upstream."),
        .init(
          "webhook_ca", .file("PEM certificates"), .none("the system's authorities"),
          "The CAs of the webhooks' certificates."),
        .init(
          "stream_hosts",
          .list(
            .text("host, `*.` and a domain, each also with a port; `ws://` before it for this machine"), limit: Limits.streamHosts
          ),
          .value("[ ]"),
          "Where programs may send calls (`POST /v1/calls/ID/stream`), beside the hosts of `inbound`; without a port: 443."),
        .init(
          "stream_networks", .list(.text("network"), limit: Limits.streamHosts), .value("[ ]"),
          "Networks that are not public and that names of these hosts may lead to, such as `10.0.0.0/8`."),
        .init(
          "stream_ca", .file("PEM certificates"), .none("the system's authorities"),
          "The CAs of the streams' certificates."),
      ]),
    .init(
      "routes.inbound[]", isAppliedBySIGHUP: true, "Needs one of `to`, `user` and `route`.",
      [
        .init("trunk", .text("name of a trunk"), .required, "Where the calls come from."),
        .init(
          "to", .or(.oneOf(["users"]), .text("`wss://` address of at most 2048 bytes")),
          "The user who has the called number; or a program that talks with the caller: see [media streams](../integrate/media-streams.md)."
        ),
        .init("user", .text("id of a user"), "This user, whatever the called number."),
        .init("route", .mapping, "A webhook returns the called user."),
        .init(
          "account", .text("text of at most \(Limits.accountBytes) bytes without spaces"), .none("none"),
          "The account of numbers and users that have none of their own."),
        .init(
          "diversions", .mapping, "For users without a rule of their own; of a stream: `media_failed`, when it cannot be reached."
        ),
        .init(
          "numbers", .list(.text("number"), limit: Limits.numbersPerUser), .none("all of the trunk"),
          "With a stream: the called numbers that it is for."),
        .init(
          "format", .oneOf(StreamTarget.Format.self), .value(StreamTarget.Format.mulaw.rawValue),
          "With a stream: `mulaw` in JSON, as Twilio has it, or 16-bit samples in binary messages at 8 or 16 kHz."),
        .init("token_file", .secretFile("one line"), .none("no token"), "With a stream: a bearer token that it is shown."),
      ]),
    .init(
      "routes.inbound[].route", isAppliedBySIGHUP: true, "Queried with a signed POST; it has 1 s to answer.",
      [
        .init(
          "webhook", .text("URL of at most 2048 bytes"), .required, "`https:`, or `http:` of this machine."),
        .init("key_file", .secretFile("one line"), .required, "The secret that requests are signed with (HMAC-SHA256)."),
        .init(
          "fallback", .or(.oneOf(["users"]), .mapping), .value("users"),
          "What applies without an answer: the user who has the called number, or a mapping."),
      ]),
    .init(
      "routes.inbound[].route.fallback", isAppliedBySIGHUP: true, "Needs exactly one of the two.",
      [
        .init("user", .text("id of a user"), "This user."),
        .init("code", .integer(Limits.refusals), "The final response, such as 503."),
      ]),
    .init(
      "routes.outbound[]", isAppliedBySIGHUP: true, "Needs `trunk` or `trunks`.",
      [
        .init("prefix", .text("beginning of a number"), .value("\"\""), "The numbers that go this way."),
        .init("trunk", .text("name of a trunk"), "The only trunk; it needs a `uri`."),
        .init(
          "trunks", .list(.or(.text("name of a trunk"), .mapping), limit: 32),
          "Several: the next one where a trunk is full, down or silent. In this order, or mappings."),
        .init(
          "emergency", .flag, .value("false"),
          "Emergency numbers with this prefix use this route despite `allow` and limits."),
      ]),
    .init(
      "routes.outbound[].trunks[]", isAppliedBySIGHUP: true, "",
      [
        .init("trunk", .text("name of a trunk"), .required, "It needs a `uri`."),
        .init("priority", .integer(1...1_000), .none("its position in the list"), "Lower ones are tried first."),
        .init("weight", .integer(0...65_535), .value("1"), "Its share of the calls among those of one priority."),
      ]),
  ]

  static let push: [ConfigurationSection] = [
    .init(
      "push", isAppliedBySIGHUP: true, "Needs `gateway` and at least one service.",
      [
        .init("gateway", .text("`wss://` address of at most 512 bytes"), .required, "Where a woken app connects."),
        .init("apns", .mapping, .none("no pushes to iOS"), "Apple Push Notification service."),
        .init("fcm", .mapping, .none("no pushes to Android"), "Firebase Cloud Messaging."),
        .init("webpush", .mapping, .none("no pushes to browsers"), "Web Push (RFC 8030)."),
        .init("ca", .file("PEM certificates"), .none("the system's authorities"), "For a stand-in of the services."),
      ]),
    .init(
      "push.apns", isAppliedBySIGHUP: true, "Needs `certificate`, or `key_file`, `key_id` and `team_id`.",
      [
        .init("key_file", .secretFile(".p8 key of Apple"), "The key that pushes are signed with."),
        .init("key_id", .text("1 to 32 letters and digits"), "The id of the key."),
        .init("team_id", .text("1 to 32 letters and digits"), "The id of the team."),
        .init("certificate", .mapping, "A VoIP Services certificate in place of the key."),
        .init("topic", .text("bundle identifier with `.voip`"), .none("an app must name one"), "For apps that name none."),
        .init(
          "environment", .oneOf(PushTarget.Environment.self), .value(PushTarget.Environment.production.rawValue),
          "For apps that name none: `sandbox` is for builds of Xcode."),
        .init(
          "url", .or(.text("`https://` address"), .mapping), .none("Apple's"), "A stand-in of both environments, or a mapping."),
      ]),
    .init(
      "push.apns.certificate", isAppliedBySIGHUP: true, "",
      [
        .init("cert", .file("PEM certificate"), .required, "The VoIP Services certificate."),
        .init("key", .secretFile("PEM private key"), .required, "Its private key."),
      ]),
    .init(
      "push.apns.url", isAppliedBySIGHUP: true, "",
      [
        .init("production", .text("`https://` address"), .none("Apple's"), "A stand-in of production."),
        .init("sandbox", .text("`https://` address"), .none("Apple's"), "A stand-in of the sandbox."),
      ]),
    .init(
      "push.fcm", isAppliedBySIGHUP: true, "",
      [
        .init("service_account", .secretFile("JSON of Google"), .required, "Project and key that pushes are sent with."),
        .init("url", .text("`https://` address"), .none("Google's"), "A stand-in of the service."),
        .init("token_url", .text("`https://` address"), .none("that of the service account"), "A stand-in of the token server."),
      ]),
    .init(
      "push.webpush", isAppliedBySIGHUP: true, "",
      [
        .init("key_file", .secretFile("PEM key on P-256"), .required, "The VAPID key that pushes are signed with."),
        .init("subject", .text("`mailto:` or `https:`"), .required, "The contact address for a push service when pushes fail."),
        .init(
          "hosts", .list(.text("host, or `*.` and a domain, each also with a port"), limit: 100),
          .none("the browsers' push services"),
          "Hosts of endpoints that are pushed to; without a port: 443."),
      ]),
  ]
}
