import CallModel
import PushPolicy
import TrunklineBytes

extension Settings {
  /// `events:`.
  public struct Events: Sendable, Equatable {
    public var hasDigits = false
    public var webhooks: [EventWebhook] = []
    public var authorities: String?
  }
}

/// `events: { digits: false, webhooks: [ { url, key_file, kinds } ], ca: FILE }`.
extension ConfigurationKeys {
  static let events = KeyTable<Settings.Events>(
    .init(), .atSIGHUP,
    about: """
      [Events](../integrate/events.md) are kept for 24 hours and in 64 MiB, in a folder beside `store.sqlite`. SIGHUP applies changes of the section; \
      the section itself comes and goes with a restart.
      """,
    [
      .flag("digits", \.hasDigits, "Also `call.digits`: what people press, which may be PINs and card numbers."),
      .sections(
        "webhooks", eventWebhook, \.webhooks, limit: PushPolicy.Limits.eventWebhooks, default: .none("events are only fetched"),
        "The servers that get each event with a POST."),
      .authorities("ca", \.authorities, "The CAs of the webhooks' certificates."),
    ], rules: [digitsAreKept, urlsDiffer])

  private static let eventWebhook = KeyTable<EventWebhook>(
    .init(url: "", keys: []), .atSIGHUP,
    [
      .value(
        "url", \.url, "URL", default: .required(), expected: "a URL: https://…, or http://… of this machine",
        "`https:`, or `http:` of this machine. Redirects are not followed.", parse: webhookURL),
      .init(
        "key_file", .secretFile("one secret, or two on two lines"), default: .required(),
        "`whsec_` and base64, or any text of 16 characters and more. With two, each request has two signatures: change a secret so."
      ) { field, out in
        out.keys = eventKeys(field)
      },
      .init(
        "kinds", .list(.oneOf(GatewayEvent.Kind.allCases.map(\.rawValue)), limit: GatewayEvent.Kind.allCases.count),
        default: .none("all kinds"), "The kinds of events that this one gets."
      ) { field, out in
        guard field.isWritten else { return }
        let kinds = field.list(limit: GatewayEvent.Kind.allCases.count, "a kind such as call.ended") {
          GatewayEvent.Kind(rawValue: $0)?.rawValue
        }
        out.kinds = Set(kinds)
      },
    ])

  private static func eventKeys(_ field: Field) -> [Redacted<[UInt8]>] {
    guard let secret = field.secret() else { return [] }
    let lines = String(decoding: secret, as: UTF8.self).split(whereSeparator: \.isNewline)
    let keys = lines.prefix(PushPolicy.Limits.eventKeys + 1).compactMap { StandardWebhook.key(String($0)) }
    guard (1...PushPolicy.Limits.eventKeys).contains(lines.count), keys.count == lines.count else {
      field.problem(
        "expected one secret or two on two lines, each whsec_ and base64 of 16 octets and more, or a text of 16 characters and more"
      )
      return []
    }
    return keys.map { Redacted($0) }
  }

  @Sendable private static func digitsAreKept(_ events: Section, _ out: inout Settings.Events) {
    guard !out.hasDigits else { return }
    for (index, webhook) in out.webhooks.enumerated() where webhook.kinds?.contains(GatewayEvent.Kind.callDigits.rawValue) == true
    {
      events.parser.problem(at: "\(events["webhooks"].path)[\(index)].kinds", "call.digits needs events: { digits: true }")
    }
  }

  @Sendable private static func urlsDiffer(_ events: Section, _ out: inout Settings.Events) {
    var urls: Set<String> = []
    for webhook in out.webhooks where !webhook.url.isEmpty && !urls.insert(webhook.url).inserted {
      events["webhooks"].problem("two have the same URL, \(webhook.shown)")
    }
  }
}
