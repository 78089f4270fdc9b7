import CallFlow
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

extension ConfigurationParser {
  /// `events: { digits: false, webhooks: [ { url, key_file, kinds } ], ca: FILE }`.
  func events(_ top: Section) -> Settings.Events? {
    guard top.has("events") else { return nil }
    let row = top.section("events")
    var out = Settings.Events()
    out.hasDigits = row.flag("digits", default: false)
    out.authorities = row.readableFile("ca")
    out.webhooks = row.items("webhooks", limit: PushPolicy.Limits.eventWebhooks).compactMap { node, path in
      let section = Section(node, path, self)
      let webhook = webhook(section)
      if webhook?.kinds?.contains(GatewayEvent.Kind.callDigits.rawValue) == true, !out.hasDigits {
        problem(section.path("kinds"), "call.digits needs events: { digits: true }")
      }
      return webhook
    }
    var urls: Set<String> = []
    for webhook in out.webhooks where !urls.insert(webhook.url).inserted {
      problem("events.webhooks", "two have the same URL, \(webhook.shown)")
    }
    return out
  }

  private func webhook(_ row: Section) -> EventWebhook? {
    for key in ["url", "key_file"] where !row.has(key) { problem(row.path, "\(key) is missing") }
    let url = row.value("url", "a URL: https://…, or http://… of this machine", webhookURL)
    let kinds = row.list(
      "kinds", limit: GatewayEvent.Kind.allCases.count, "a kind such as call.ended"
    ) { GatewayEvent.Kind(rawValue: $0)?.rawValue }
    guard let url, let secret = row.secret("key_file") else { return nil }
    let lines = String(decoding: secret, as: UTF8.self).split(whereSeparator: \.isNewline)
    let keys = lines.prefix(PushPolicy.Limits.eventKeys + 1).compactMap { StandardWebhook.key(String($0)) }
    guard (1...PushPolicy.Limits.eventKeys).contains(lines.count), keys.count == lines.count else {
      problem(
        row.path("key_file"),
        "expected one secret or two on two lines, each whsec_ and base64 of 16 octets and more, or a text of 16 characters and more"
      )
      return nil
    }
    return EventWebhook(url: url, keys: keys.map { Redacted($0) }, kinds: row.has("kinds") ? Set(kinds) : nil)
  }
}
