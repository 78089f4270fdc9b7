import AppSessions
import CallFlow
import Trunking
import TrunklineMediaSession
import TrunklineRTP
import TrunklineSIPDialogs

/// Trunks and users, whose changes apply at SIGHUP.
extension ConfigurationKeys {
  private static let trunk = Routing.Trunk(name: "")
  private static let sessionTimer = TrunkRules.SessionTimer()
  private static let probe = TrunkSettings.Probe()

  static let trunks: [ConfigurationSection] = [
    .init(
      "trunks[]", isAppliedBySIGHUP: true,
      "A trunk that was removed at SIGHUP is un-registered; its calls continue.",
      [
        .init("name", .text("text"), .required, "What routes, metrics and records call it."),
        .init(
          "profile", .oneOf(TrunkProfile.all.map(\.name)), .none("none"),
          "A carrier's settings: defaults for keys that the trunk does not set. `trunkline config profiles` prints them."),
        .init(
          "peers", .or(.list(.text("address, network or host name"), limit: 1_000), .oneOf(["any"])), .none("the hosts of `uri`"),
          "Addresses and names that may send SIP as this trunk; others get no answer. Names are looked up again by their TTL. `any` needs `peer_auth`."
        ),
        .init(
          "peer_auth", .mapping, .none("no challenge"), "The credentials that the trunk's own requests are challenged for."),
        .init(
          "uri", .text("SIP URI"), .none("no outgoing calls"),
          "`sip:` or `sips:`, a host or address, then `;transport=udp`, `tcp` or `tls`; names are looked up (RFC 3263)."),
        .init(
          "codecs", .list(.oneOf(AudioEncoding.allCases.map(\.name)), limit: 8),
          .value("[ \(trunk.codecs.map(\.name).joined(separator: ", ")) ]"), "In the order of preference."),
        .init("auth", .mapping, "The credentials that the trunk's challenges are answered with."),
        .init(
          "realm", .text("text of at most \(Limits.realmBytes) bytes"), .none("any; ours is `trunkline`"),
          "The only realm whose challenges are answered, and that of our own challenges."),
        .init(
          "register", .or(.flag, .mapping), .value("false"),
          "Registers at `uri`: `true` with the user of `auth`, or a mapping."),
        .init(
          "probe", .or(.or(.duration(.seconds(1) ... .seconds(3_600)), .oneOf(["off"])), .mapping), .value("off"),
          "OPTIONS to `uri` at this interval, or a mapping; no calls go to a trunk that is down. 30s is usual."),
        .init(
          "rtp_source", .oneOf(SourcePolicy.self), .value(trunk.sourcePolicy.rawValue),
          "Which RTP is accepted: from the SDP's address and any port; `symmetric`: also `peers` and `media_peers`, and ours is sent to its source; `strict`: the SDP's address and port only."
        ),
        .init(
          "media_peers", .list(.text("address or network"), limit: 1_000), .value("[]"),
          "Further addresses that RTP may come from, such as the carrier's media gateways."),
        .init(
          "prefer", .oneOf(TrunkPreference.self), .value(TrunkPreference.transcode.rawValue),
          "`wide`: G722 and opus go before the others of `codecs`, for calls of 7 kHz; `cheap`: PCMU and PCMA do. `relay`: apps are offered the trunk's codec first, so that nothing is transcoded."
        ),
        .init("max_calls", .integer(Limits.calls), .none("no limit"), "Calls at a time in both directions."),
        .init(
          "calls_per_second", .integer(1...10_000), .none("no limit"),
          "New calls a second in both directions; beyond it 503, or the next trunk of the route. Of several nodes each has its part, one at least."
        ),
        .init(
          "advertise", .text("address or host name, with a port or without, or `env:NAME`"),
          .none("as set in `listen.sip` and `media`"),
          "The address or name sent to this trunk instead, in Via and Contact, and if it is an address in SDP."),
        .init(
          "called", .list(.oneOf(TrunkRules.CalledNumber.self), limit: 3), .value("[ request_uri, to ]"),
          "Where its INVITEs have the called number: the first that does not name our own contact."),
        .init(
          "user_phone", .flag, .value("\(trunk.rules.marksPhones)"),
          "`user=phone` is appended to telephone numbers in Request-URI, From, To and the field of `identity` of our INVITEs."),
        .init(
          "headers", .list(.text("`Name: value`"), limit: Limits.extraFields), .value("[]"),
          "Fixed header fields of our INVITE, REGISTER and OPTIONS, at most 512 octets each; none that the gateway writes itself."
        ),
        .init(
          "parameters", .list(.text("header field"), limit: Limits.extraFields), .value("[]"),
          "Header fields that carry a call's parameters: from its INVITE to the app (`call.offer`, push), and from an app's `call.start` to our INVITE. 1,024 octets in all."
        ),
        .init(
          "rewrite_contact", .oneOf(TrunkRules.ContactRewriting.self), .value(trunk.rules.contactRewriting.rawValue),
          "Where requests inside a call go: `never`, to the trunk's Contact; `always`, to the source of the call's requests; `auto`, to the source if the Contact's address cannot be reached from here, as behind a NAT."
        ),
        .init("contact_user", .text("text"), .none("the user of `register`, else `trunkline`"), "The user part of our Contact."),
        .init("from", .mapping, .none("the caller's number and the host of `uri`"), "From of our INVITEs."),
        .init("identity", .mapping, .none("the user's number"), "The header field, besides From, that identifies the caller."),
        .init(
          "outbound_proxy", .text("SIP URI"), .none("requests go to `uri`"),
          "The next hop of requests, sent as a Route; `uri` remains their target."),
        .init("numbers", .mapping, .none("numbers stay as they are"), "How the trunk writes numbers."),
        .init("tls", .mapping, "TLS toward the trunk."),
        .init(
          "reliable", .oneOf(TrunkRules.Reliability.self), .value(trunk.rules.reliability.rawValue),
          "Reliable provisional responses (100rel, RFC 3262)."),
        .init(
          "session_timer", .or(.integer(Limits.sessionSeconds), .oneOf(["off"])),
          .value("\(sessionTimer.seconds)"),
          "Seconds of the session interval to request (RFC 4028); not less than `session_minimum`."),
        .init(
          "session_minimum", .integer(Limits.sessionSeconds), .value("\(sessionTimer.minimumSeconds)"),
          "Seconds: the shortest session interval that is accepted (Min-SE); RFC 4028 forbids less than 90."),
        .init(
          "hold", .oneOf(["local", "signal"]), .value(trunk.signalsHold ? "signal" : "local"),
          "`signal`: an app's hold becomes a re-INVITE; `local`: the trunk hears `hold_audio`."),
        .init(
          "hold_audio",
          .or(.oneOf(["noise", "silence"]), .file("WAV of 40 ms at least, at most \(Limits.audioBytes >> 20) MiB")),
          .value("noise"), "What the trunk hears while an app holds."),
        .init(
          "dtmf", .oneOf(DigitTransport.allCases.map(\.rawValue) + ["info"]), .value(trunk.digits.rawValue),
          "How digits go both ways; `auto`: telephone-event (RFC 4733) where negotiated, else tones. Tones from the trunk stay in the audio."
        ),
        .init(
          "redirects", .oneOf(["refuse", "follow"]), .value("refuse"),
          "`follow`: a 3xx is followed within the trunk's own hosts."),
        .init(
          "redirect_hosts", .list(.text("host name or address"), limit: 16), .value("[]"),
          "Further hosts of the trunk that a 3xx may name."),
        .init(
          "trust_identity", .flag, .value("\(trunk.rules.trustsIdentity)"),
          "P-Asserted-Identity, Diversion and History-Info are trusted, and P-Asserted-Identity is sent instead of P-Preferred-Identity."
        ),
        .init("transfers", .flag, .value("\(trunk.rules.allowsTransfer)"), "REFER and Replaces are served."),
        .init("late_offer", .flag, .value("\(trunk.offersLate)"), "INVITEs go without SDP."),
        .init(
          "srtp", .oneOf(Routing.Trunk.SRTPRule.self), .value(trunk.srtp.rawValue),
          "SRTP with keys in the SDP (RFC 4568); `optional`: RTP/AVP with keys beside it. Needs SIP over TLS."),
        .init(
          "srtp_without_tls", .flag, .value("\(trunk.sendsKeysInClear)"),
          "The keys are sent over UDP and TCP too, where anyone on the path can read them."),
        .init(
          "location", .flag, .value("\(trunk.sendsLocation)"),
          "Emergency calls carry the location that the app gives (PIDF-LO, RFC 6442). See [emergency calls](../operate/emergency.md)."
        ),
        .init(
          "record_private_numbers", .flag, .value("\(trunk.recordsPrivateNumbers)"),
          "Withheld numbers stay in journal and records."),
      ]),
    .init(
      "trunks[].auth", "trunks[].peer_auth", isAppliedBySIGHUP: true, "Digest credentials (RFC 3261 §22).",
      [
        .init("username", .text("text"), .required, "The user name of the digest."),
        .init("password_file", .secretFile("one line"), .required, "The password."),
      ]),
    .init(
      "trunks[].register", isAppliedBySIGHUP: true, "",
      [
        .init("user", .text("text"), .none("`username` of `auth`"), "The user of the address-of-record."),
        .init(
          "expires", .duration(.seconds(10) ... .seconds(86_400)),
          .value(durationText(.seconds(TrunkSettings.Registration(user: "").expires))),
          "The registration time to request; it is renewed earlier."),
        .init(
          "keep_alive", .duration(.zero ... .seconds(300)), .value(durationText(TrunkSettings.Registration(user: "").keepAlive)),
          "Over UDP, the interval of double-CRLF keep-alives, which keep the way back open through a NAT or firewall; `0s`: none. For OPTIONS instead: `probe`."
        ),
      ]),
    .init(
      "trunks[].probe", isAppliedBySIGHUP: true, "",
      [
        .init(
          "interval", .duration(.seconds(1) ... .seconds(3_600)), .value(durationText(probe.interval)),
          "From one OPTIONS to the next."),
        .init(
          "down_after", .integer(1...100), .value("\(probe.downAfter)"), "Failures in a row that mark the server as down."),
        .init("up_after", .integer(1...100), .value("\(probe.upAfter)"), "Answers in a row that bring it back."),
      ]),
    .init(
      "trunks[].from", isAppliedBySIGHUP: true, "",
      [
        .init(
          "user", .text("text"), .none("the caller's number"),
          "An account, if the trunk requires one; the number is then in P-Preferred-Identity or P-Asserted-Identity."),
        .init("domain", .text("host"), .none("that of `uri`"), "Also that of P-Preferred-Identity and P-Asserted-Identity."),
      ]),
    .init(
      "trunks[].identity", isAppliedBySIGHUP: true, "",
      [
        .init(
          "header", .oneOf(TrunkRules.IdentityHeader.self), .value(trunk.rules.identityHeader.rawValue),
          "P-Asserted-Identity, P-Preferred-Identity, Remote-Party-ID or no field; `auto`: P-Asserted-Identity with `trust_identity`, else P-Preferred-Identity."
        ),
        .init(
          "user", .text("text"), .none("the user's number, and with `from.user` the number that is shown"),
          "The calling number, whatever From shows: the line's own number, if the trunk allows another one (CLIP no screening)."
        ),
      ]),
    .init(
      "trunks[].numbers", isAppliedBySIGHUP: true, "The first rule whose prefix fits changes the number.",
      [
        .init(
          "country", .text("region, or 1 to 3 digits"), .none("numbers stay as dialled"),
          "The region (ISO 3166-1), such as `DE`, or its country code: numbers as dialled there become E.164. See [numbers](../operate/numbers.md)."
        ),
        .init(
          "international", .text("at most 5 digits"), .none("as in the region"), "What `+` is dialled as there, if it is another."
        ),
        .init(
          "national", .text("at most 5 digits"), .none("as in the region"),
          "What the country code is dialled as, if it is another; empty: nothing is."),
        .init(
          "inbound", .list(.mapping, limit: 100), .value("[]"),
          "Rules for numbers that the trunk sends, the caller's and the called one."),
        .init("outbound", .list(.mapping, limit: 100), .value("[]"), "Rules for the called number of our INVITEs."),
        .init("caller", .list(.mapping, limit: 100), .value("[]"), "Rules for the caller's number of our INVITEs."),
      ]),
    .init(
      "trunks[].numbers.inbound[]", "trunks[].numbers.outbound[]", "trunks[].numbers.caller[]", isAppliedBySIGHUP: true, "",
      [
        .init("prefix", .text("digits, `+`, `*`, `#`"), .value("\"\""), "The numbers that the rule is for."),
        .init("strip", .integer(0...20), .value("0"), "How many leading characters are removed."),
        .init("add", .text("digits, `+`, `*`, `#`"), .value("\"\""), "What is put in front then."),
      ]),
    .init(
      "trunks[].tls", isAppliedBySIGHUP: true, "",
      [
        .init(
          "ca", .file("PEM certificates"), .none("the system's authorities"), "The CAs of the trunk's certificate."
        ),
        .init("cert", .file("PEM certificate chain"), .none("no certificate"), "Our certificate, if the trunk requests one."),
        .init("key", .secretFile("PEM private key"), .none("–"), "Its private key; goes with `cert`."),
        .init(
          "verify", .flag, .value("\(Settings.Trunk(routing: trunk).verifiesCertificate)"),
          "Checks the trunk's certificate; `false` is for a lab."),
        .init(
          "name", .list(.text("host name, or `*.` and a domain"), limit: Limits.expectedNames), .none("the host of `uri`"),
          "The name in the trunk's certificate, if that is not the host of `uri`. `*.carrier.example` matches each name one label below, and the wildcard itself; without it no wildcard is accepted (RFC 5922 §7.2)."
        ),
      ]),
  ]

  static let users: [ConfigurationSection] = [
    .init(
      "users[]", isAppliedBySIGHUP: true,
      """
      With `any`, users that are not listed may log in, too. Such a user has the numbers that `trunkline users import` gave it, and may \
      dial what `routes.outbound` serves, without a limit: `{ id: any, max_calls: 2, calls_per_hour: 20, allow: [ "+49" ] }` \
      in place of `any` sets the limits of each of them. Listed users keep their own settings, and get imported numbers after their own. \
      A number in this file is never another user's by import.
      """,
      [
        .init(
          "id", .text("text"), .required,
          "`sub` of the login tokens of the user's devices; `any`, without `numbers` and as the last item: each user that is not listed."
        ),
        .init(
          "numbers", .list(.or(.text("number"), .mapping), limit: Limits.numbersPerUser), .value("[]"),
          "Numbers that ring the user's devices, as the trunk sends them (E.164 with `+` is best); the first is shown in outgoing calls."
        ),
        .init(
          "account", .text("text of at most \(Limits.accountBytes) bytes without spaces"), .none("none"),
          "The account (`acct` of login tokens) of the user's numbers that have none of their own."),
        .init("name", .text("text"), .none("no name"), "What trunks are shown beside the number."),
        .init("display_name", .flag, .value("false"), "Apps may choose another name."),
        .init(
          "allow", .list(.text("beginning of a number"), limit: Limits.numbersPerUser), .none("any number"),
          "The numbers that the user may dial."),
        .init(
          "max_calls", .integer(0...1_000), .none("no limit"),
          "Outgoing and diverted calls at a time; 0: none. Against toll fraud."),
        .init(
          "calls_per_hour", .integer(0...10_000), .none("no limit"),
          "Outgoing and diverted calls an hour; 0: none. Against toll fraud."),
        .init(
          "record", .flag, .value("false"), "The user's calls are recorded, unless `recording.when` is `off`; needs `recording`."),
        .init("diversions", .mapping, .none("those of the route"), "Where calls go that no device answers."),
        .init("claims", .mapping, .none("nothing"), "With `id: any`: what login tokens may grant (the claim `trunkline`)."),
        .init(
          "webhook", .mapping, .none("none"),
          "With `id: any`: the webhook for users and numbers that are in no file."),
        .init(
          "country", .text("region, or 1 to 3 digits"), .none("that of the trunks, if calls go out on trunks of one country"),
          "The region (ISO 3166-1), such as `DE`, or its country code: numbers may be dialled as there, and become E.164 before the route is chosen; its emergency numbers are the user's."
        ),
        .init(
          "international", .text("at most 5 digits"), .none("as in the region"), "What the user dials as `+`, if it is another."),
        .init(
          "national", .text("at most 5 digits"), .none("as in the region"),
          "What the user dials as the country code, if it is another; empty: nothing."),
      ]),
    .init(
      "users[].numbers[]", isAppliedBySIGHUP: true, "",
      [
        .init("number", .text("number"), .required, "Digits, with `+` in front of a country code."),
        .init(
          "account", .text("text of at most \(Limits.accountBytes) bytes without spaces"), .none("that of the user"),
          "Calls to the number ring only on devices that are logged in to this account."),
      ]),
    .init(
      "users[].webhook", isAppliedBySIGHUP: true,
      """
      Queried with a POST that is signed like that of `routes.inbound[].route`, by number and by user; in place of `claims`. Requests and
      answers, and what applies without one: [users without the file](../integrate/users.md#a-webhook). `routes.webhook_ca` has the CAs of its certificate.
      """,
      [
        .init("url", .text("URL of at most 2048 bytes"), .required, "`https:`, or `http:` of this machine."),
        .init("key_file", .secretFile("one line"), .required, "The secret that requests are signed with (HMAC-SHA256)."),
        .init(
          "cache", .integer(Limits.userCacheSeconds), .value("\(Limits.usualUserCacheSeconds)"),
          "Seconds for which an answer is cached, also that there is no such user."),
      ]),
    .init(
      "users[].claims", isAppliedBySIGHUP: true,
      """
      The row's `allow`, `max_calls` and `calls_per_hour` hold for tokens, too: a token that grants more than all this allows is refused, \
      never narrowed. The claim, its bounds and the owner of a number: [protocol](protocol.md#what-a-token-grants).
      """,
      [
        .init(
          "numbers", .list(.text("beginning of a number"), limit: Limits.numbersPerUser), .value("[]"),
          "Beginnings of the numbers that tokens may give to their users; `\"\"` is every number."),
        .init(
          "max_numbers", .integer(Limits.grantedNumbers), .value("\(GrantRules.defaultMaxNumbers)"), "Most numbers of one token."),
        .init(
          "diversions", .flag, .value("false"),
          "Tokens may set where calls go that no device answers: `user`, `number` or `code`. Second legs count against the user's limits."
        ),
      ]),
    .init(
      "users[].diversions", "routes.inbound[].diversions", isAppliedBySIGHUP: true,
      "A rule of the user goes before that of the route.",
      [
        .init("unreached", .mapping, "No device rings: none could be woken, or all of them filter the call."),
        .init("busy", .mapping, "Every device that responded was busy."),
        .init("declined", .mapping, "The user declined."),
        .init("no_answer", .mapping, "Devices rang and none answered."),
        .init("media_failed", .mapping, "A device answered, and its media did not come."),
      ]),
    .init(
      "users[].diversions.unreached", "users[].diversions.no_answer", "routes.inbound[].diversions.unreached",
      "routes.inbound[].diversions.no_answer", isAppliedBySIGHUP: true, "Needs one of `user`, `number`, `play` and `code`.",
      diversion + [
        .init(
          "after", .duration(.seconds(1) ... .seconds(600)), .none("`unreached`: 20s; `no_answer`: `timers.ring`"),
          "How long to wait until a device rings; for `no_answer`, how long the call rings.")
      ]),
    .init(
      "users[].diversions.busy", "users[].diversions.declined", "users[].diversions.media_failed",
      "routes.inbound[].diversions.busy", "routes.inbound[].diversions.declined", "routes.inbound[].diversions.media_failed",
      isAppliedBySIGHUP: true, "Needs one of `user`, `number`, `play` and `code`.", diversion),
  ]

  private static let diversion: [ConfigurationKey] = [
    .init("user", .text("id of a user"), "Another user's devices ring."),
    .init("number", .text("number"), "A second call on the user's behalf, over the outbound routes."),
    .init("show_caller", .flag, .value("false"), "With `number`: it shows the caller's number, where the trunk lets it."),
    .init("play", .file("WAV of at most \(Limits.recordingBytes / 1_000_000) MB"), "A recording is played, then the call ends."),
    .init("early", .flag, .value("false"), "With `play`: as early media (183); the call is then refused and never answered."),
    .init(
      "shows", .oneOf(["missed", "diverted"]), .value("missed"),
      "With `play`: what devices show of the call; `diverted` hides the missed call."),
    .init("code", .integer(Limits.refusals), "The final response."),
  ]
}
