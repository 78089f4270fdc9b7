import CallModel
import Trunking
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineMediaSession
import TrunklinePlatform
import TrunklineRTP
import TrunklineSIPDialogs

/// `trunks:`: how a trunk's calls behave, and how the trunk writes numbers.
extension ConfigurationKeys {
  static let trunkMessages: [Key<TrunkDraft>] = [
    .init(
      "called", .list(.oneOf(TrunkRules.CalledNumber.self), limit: 3), default: .value("[ request_uri, to ]"),
      "Where its INVITEs have the called number: the first that does not name our own contact."
    ) { field, out in
      let sources = field.list(limit: 3, "request_uri, to or p_called_party_id") { TrunkRules.CalledNumber(rawValue: $0) }
      if !sources.isEmpty { out.trunk.routing.rules.called = sources }
    },
    .flag(
      "user_phone", \.trunk.routing.rules.marksPhones,
      "`user=phone` is appended to telephone numbers in Request-URI, From, To and the field of `identity` of our INVITEs."),
    .list(
      "headers", \.trunk.routing.rules.extraFields, .text("`Name: value`"), limit: Limits.extraFields, default: .value("[]"),
      expected: "a header field that the gateway does not write itself, as \"X-Name: value\"",
      "Fixed header fields of our INVITE, REGISTER and OPTIONS, at most 512 octets each; none that the gateway writes itself."
    ) { TrunkRules.ExtraField($0) },
    .list(
      "parameters", \.trunk.routing.rules.parameters, .text("header field"), limit: Limits.extraFields, default: .value("[]"),
      expected: "the name of a header field that the gateway does not read or write itself",
      "Header fields that carry a call's parameters: from its INVITE to the app (`call.offer`, push), and from an app's `call.start` to our INVITE. 1,024 octets in all."
    ) { CallParameters.isName($0) && TrunkRules.ExtraField("\($0): x") != nil ? $0 : nil },
    .choice(
      "rewrite_contact", \.trunk.routing.rules.contactRewriting,
      "Where requests inside a call go: `never`, to the trunk's Contact; `always`, to the source of the call's requests; `auto`, to the source if the Contact's address cannot be reached from here, as behind a NAT."
    ),
    .text(
      "contact_user", \.contactUser, none: "the user of `register`, else `trunkline`", "The user part of our Contact."),
  ]

  static let identityFields: [Key<TrunkDraft>] = [
    .section(
      "from", from, \.trunk.routing.rules, default: .none("the caller's number and the host of `uri`"),
      "From of our INVITEs."),
    .section(
      "identity", identityField, \.trunk.routing.rules, default: .none("the user's number"),
      "The header field, besides From, that identifies the caller."),
    .init(
      "outbound_proxy", .text("SIP URI"), default: .none("requests go to `uri`"),
      "The next hop of requests, sent as a Route; `uri` remains their target."
    ) { field, out in
      out.proxy = field.sipURI()
    },
  ]

  static let numbersAndTLS: [Key<TrunkDraft>] = [
    .section(
      "numbers", trunkNumbers, \.trunk.routing.numbers, default: .none("numbers stay as they are"),
      "How the trunk writes numbers."),
    .section("tls", trunkTLS, \.trunk, "TLS toward the trunk."),
  ]

  static let dialogs: [Key<TrunkDraft>] = [
    .choice("reliable", \.trunk.routing.rules.reliability, "Reliable provisional responses (100rel, RFC 3262)."),
    .init(
      "session_timer", .or(.integer(Limits.sessionSeconds), .oneOf(["off"])),
      standard: { .value($0.sessionSeconds.map { "\($0)" } ?? "off") },
      "Seconds of the session interval to request (RFC 4028); not less than `session_minimum`."
    ) { field, out in
      guard field.text != "off" else { return out.sessionSeconds = nil }
      guard field.value("off or seconds", { Int($0) }) != nil else { return }
      if let seconds = field.integer(in: Limits.sessionSeconds) { out.sessionSeconds = seconds }
    },
    .integer(
      "session_minimum", \.leastSessionSeconds, Limits.sessionSeconds,
      "Seconds: the shortest session interval that is accepted (Min-SE); RFC 4028 forbids less than 90."),
    .words(
      "hold", \.trunk.routing.signalsHold, [("local", false), ("signal", true)],
      "`signal`: an app's hold becomes a re-INVITE; `local`: the trunk hears `hold_audio`."),
    .init(
      "hold_audio",
      .or(.oneOf(["noise", "silence"]), .file("WAV of 40 ms at least, at most \(Limits.audioBytes >> 20) MiB")),
      default: .value("noise"), "What the trunk hears while an app holds."
    ) { field, out in
      if let audio = holdAudio(field) { out.trunk.routing.holdAudio = audio }
    },
    .init(
      "dtmf", .oneOf(DigitTransport.allCases.map(\.rawValue) + ["info"]), standard: { .value($0.trunk.routing.digits.rawValue) },
      "How digits go both ways; `auto`: telephone-event (RFC 4733) where negotiated, else tones. Tones from the trunk stay in the audio."
    ) { field, out in
      // With INFO, digits are no part of media: tones in the audio remain audio.
      let isInfo = field.text == "info"
      let digits = isInfo ? .rfc4733 : field.value("auto, rfc4733, inband or info") { DigitTransport(rawValue: $0) }
      if let digits { (out.trunk.routing.sendsDigitsByInfo, out.trunk.routing.digits) = (isInfo, digits) }
    },
  ]

  static let permissions: [Key<TrunkDraft>] = [
    .words(
      "redirects", \.followsRedirects, [("refuse", false), ("follow", true)],
      "`follow`: a 3xx is followed within the trunk's own hosts."),
    .list(
      "redirect_hosts", \.redirectHosts, .text("host name or address"), limit: 16, default: .value("[]"),
      expected: "a host name or address", "Further hosts of the trunk that a 3xx may name."
    ) { $0.isEmpty ? nil : $0.lowercased() },
    .flag(
      "trust_identity", \.trunk.routing.rules.trustsIdentity,
      "P-Asserted-Identity, Diversion and History-Info are trusted, and P-Asserted-Identity is sent instead of P-Preferred-Identity."
    ),
    .flag("transfers", \.trunk.routing.rules.allowsTransfer, "REFER and Replaces are served."),
    .flag("late_offer", \.trunk.routing.offersLate, "INVITEs go without SDP."),
    .choice(
      "srtp", \.trunk.routing.srtp,
      "SRTP with keys in the SDP (RFC 4568); `optional`: RTP/AVP with keys beside it. Needs SIP over TLS."),
    .flag(
      "srtp_without_tls", \.trunk.routing.sendsKeysInClear,
      "The keys are sent over UDP and TCP too, where anyone on the path can read them."),
    .flag(
      "location", \.trunk.routing.sendsLocation,
      "Emergency calls carry the location that the app gives (PIDF-LO, RFC 6442). See [emergency calls](../operate/emergency.md)."
    ),
    .flag(
      "record_private_numbers", \.trunk.routing.recordsPrivateNumbers, "Withheld numbers stay in journal and records."),
  ]

  /// `noise`, `silence`, or a WAV file.
  private static func holdAudio(_ field: Field) -> HoldAudio? {
    switch field.text {
    case "noise": return .noise
    case "silence": return .silence
    default:
      guard let recording = field.audio(limit: Limits.audioBytes) else { return nil }
      guard let clip = AudioClip(recording) else {
        field.problem("is shorter than 40 ms")
        return nil
      }
      return .clip(clip)
    }
  }
}

/// The sections of a trunk.
extension ConfigurationKeys {
  private static let from = KeyTable<TrunkRules>(
    .init(), .atSIGHUP,
    [
      .text(
        "user", \.fromUser, none: "the caller's number",
        "An account, if the trunk requires one; the number is then in P-Preferred-Identity or P-Asserted-Identity."),
      .optional(
        "domain", \.fromDomain, "host", default: .none("that of `uri`"), expected: "a host name or address",
        "Also that of P-Preferred-Identity and P-Asserted-Identity."
      ) { AdvertisedHost($0)?.description },
    ])

  private static let identityField = KeyTable<TrunkRules>(
    .init(), .atSIGHUP,
    [
      .choice(
        "header", \.identityHeader,
        "P-Asserted-Identity, P-Preferred-Identity, Remote-Party-ID or no field; `auto`: P-Asserted-Identity with `trust_identity`, else P-Preferred-Identity."
      ),
      .text(
        "user", \.identityUser, none: "the user's number, and with `from.user` the number that is shown",
        "The calling number, whatever From shows: the line's own number, if the trunk allows another one (CLIP no screening)."),
    ])

  private static let trunkNumbers = KeyTable<NumberRules>(
    .init(), .atSIGHUP, about: "The first rule whose prefix fits changes the number.",
    Key<NumberRules>.country(
      \.country, none: "numbers stay as dialled",
      "The region (ISO 3166-1), such as `DE`, or its country code: numbers as dialled there become E.164. See [numbers](../operate/numbers.md).",
      international: "What `+` is dialled as there, if it is another.",
      national: "What the country code is dialled as, if it is another; empty: nothing is."),
    [
      .sections(
        "inbound", numberRule, \.incoming, limit: 100, default: .value("[]"),
        "Rules for numbers that the trunk sends, the caller's and the called one."),
      .sections(
        "outbound", numberRule, \.outgoing, limit: 100, default: .value("[]"), "Rules for the called number of our INVITEs."),
      .sections(
        "caller", numberRule, \.caller, limit: 100, default: .value("[]"), "Rules for the caller's number of our INVITEs."),
    ])

  private static let numberRule = KeyTable<NumberRules.Rule>(
    .init(prefix: ""), .atSIGHUP,
    [
      .value(
        "prefix", \.prefix, "digits, `+`, `*`, `#`", default: .value("\"\""), expected: "the beginning of a number",
        "The numbers that the rule is for.", parse: dialledText),
      .integer("strip", \.strip, 0...20, "How many leading characters are removed."),
      .value(
        "add", \.add, "digits, `+`, `*`, `#`", default: .value("\"\""), expected: "digits", "What is put in front then.",
        parse: dialledText),
    ])

  @Sendable private static func dialledText(_ text: String) -> String? {
    text.utf8.count <= 20 && text.utf8.allSatisfy { (48...57).contains($0) || $0 == 43 || $0 == 42 || $0 == 35 } ? text : nil
  }

  private static let trunkTLS = KeyTable<Settings.Trunk>(
    .init(routing: Routing.Trunk(name: "")), .atSIGHUP,
    [
      .authorities("ca", \.tls.authorities, "The CAs of the trunk's certificate."),
      .file(
        "cert", \.tls.certificate, .file("PEM certificate chain"), default: .none("no certificate"),
        "Our certificate, if the trunk requests one."),
      .file("key", \.tls.key, .secretFile("PEM private key"), "Its private key; goes with `cert`."),
      .flag("verify", \.verifiesCertificate, "Checks the trunk's certificate; `false` is for a lab."),
      .list(
        "name", \.expectedNames, .text("host name, or `*.` and a domain"), limit: Limits.expectedNames,
        default: .none("the host of `uri`"),
        expected: "a host name such as sip.carrier.example, or *. and a domain such as *.carrier.example",
        "The name in the trunk's certificate, if that is not the host of `uri`. `*.carrier.example` matches each name one label below, and the wildcard itself; without it no wildcard is accepted (RFC 5922 §7.2)."
      ) { IPAddress($0) == nil ? ExpectedName($0) : nil },
    ],
    rules: [
      { tls, out in
        certificateHasKey(tls)
        if tls.has("name"), !out.verifiesCertificate {
          tls["name"].problem("is not checked: verify: false accepts any certificate", .warning)
        }
      }
    ])
}
