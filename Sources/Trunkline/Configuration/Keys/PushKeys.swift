import Foundation
import JSONWebToken
import PushPolicy
import TrunklineBytes
import TrunklinePlatform

/// `push:`. Every key is read and tried, so that `serve --check` finds faults that Apple, Google or a browser would refuse.
extension ConfigurationKeys {
  static let push = KeyTable<Settings.Push>(
    .init(gateway: ""), .atSIGHUP, about: "Needs `gateway` and at least one service.",
    [
      .value(
        "gateway", \.gateway, "`wss://` address of at most 512 bytes",
        default: .required(hint: "the address that a woken app connects to, such as wss://phone.example.com/v1/connect"),
        expected: "an address such as wss://phone.example.com/v1/connect", "Where a woken app connects.", parse: gateway),
      .init("apns", .mapping, default: .none("no pushes to iOS"), "Apple Push Notification service.", inner: apns) { field, out in
        guard field.isWritten, let draft = apns.value(field) else { return }
        out.topic = draft.topic
        out.environment = draft.environment
        out.tls = draft.tls
        if let provider = draft.provider { out.providers[.apns] = provider }
      },
      .init("fcm", .mapping, default: .none("no pushes to Android"), "Firebase Cloud Messaging.", inner: fcm) { field, out in
        if field.isWritten, let provider = fcm.value(field)?.provider { out.providers[.fcm] = provider }
      },
      .init("webpush", .mapping, default: .none("no pushes to browsers"), "Web Push (RFC 8030).", inner: webPush) { field, out in
        if field.isWritten, let provider = webPush.value(field)?.provider { out.providers[.webPush] = provider }
      },
      .authorities("ca", \.tls.authorities, "For a stand-in of the services."),
    ], rules: [someService])

  @Sendable private static func someService(_ push: Section, _ out: inout Settings.Push) {
    if !["apns", "fcm", "webpush"].contains(where: push.has) { push.problem("needs apns, fcm or webpush") }
  }

  @Sendable private static func gateway(_ text: String) -> String? {
    let isSecure = text.hasPrefix("wss://") && text.count > 6
    return (isSecure || text.hasPrefix("ws://") && text.count > 5) && text.utf8.count <= 512
      && !text.contains(where: \.isWhitespace) ? text : nil
  }

  /// Tries the key, so that `serve --check` finds one that does not sign.
  private static func signer(_ key: [UInt8]?, _ algorithm: Algorithm, kid: String? = nil, _ field: Field) -> TokenSigner? {
    guard let key else { return nil }
    do {
      let signer = try TokenSigner(keys: try KeySet(algorithm, keyFile: key), kid: kid)
      _ = try signer.sign(["try": "it"])
      return signer
    } catch {
      field.problem("\(error)")
      return nil
    }
  }
}

// MARK: APNs

extension ConfigurationKeys {
  private static let apns = KeyTable<APNsDraft>(
    .init(), .atSIGHUP, about: "Needs `certificate`, or `key_file`, `key_id` and `team_id`.",
    [
      .init("key_file", .secretFile(".p8 key of Apple"), "The key that pushes are signed with.") { field, out in
        out.key = field.fileContent()
      },
      .optional(
        "key_id", \.keyID, "1 to 32 letters and digits", expected: "the key's id, such as ABC123DEFG", "The id of the key.",
        parse: word),
      .optional(
        "team_id", \.team, "1 to 32 letters and digits", expected: "the team's id, such as DEF123GHIJ", "The id of the team.",
        parse: word),
      .init("certificate", .mapping, "A VoIP Services certificate in place of the key.", inner: apnsCertificate) { field, out in
        guard field.isWritten else { return }
        out.hasCertificate = true
        apnsCertificate.read(field, into: &out)
      },
      .optional(
        "topic", \.topic, "bundle identifier with `.voip`", default: .none("an app must name one"),
        expected: "the app's bundle identifier with .voip behind it", "For apps that name none."
      ) { text in
        text.hasSuffix(".voip") && text.count > 5 && text.utf8.count <= 255 && !text.contains(where: \.isWhitespace) ? text : nil
      },
      .choice("environment", \.environment, "For apps that name none: `sandbox` is for builds of Xcode."),
      .init(
        "url", .or(.text("`https://` address"), .mapping), default: .none("Apple's"),
        "A stand-in of both environments, or a mapping.", inner: apnsURL
      ) { field, out in
        if field.text == nil { return apnsURL.read(field, into: &out) }
        let server = field.value(PushServer.expected, PushServer.init)
        (out.production, out.sandbox) = (server, server)
      },
    ], rules: [keyOrCertificate])

  private static let apnsCertificate = KeyTable<APNsDraft>(
    .init(), .atSIGHUP,
    [
      .init("cert", .file("PEM certificate"), default: .required(), "The VoIP Services certificate.") { field, out in
        guard let content = field.fileContent(limit: Limits.fileBytes) else { return }
        out.tls.certificate = field.text.map(field.parser.resolve)
        // Not a secret: the hash only distinguishes a renewed certificate.
        out.certificate = hexString(FNV1a(content).value)
      },
      .file("key", \.tls.key, .secretFile("PEM private key"), default: .required(), "Its private key."),
    ])

  private static let apnsURL = KeyTable<APNsDraft>(
    .init(), .atSIGHUP,
    [
      .server("production", \.production, none: "Apple's", "A stand-in of production."),
      .server("sandbox", \.sandbox, none: "Apple's", "A stand-in of the sandbox."),
    ])

  @Sendable private static func word(_ text: String) -> String? {
    (1...32).contains(text.utf8.count)
      && text.utf8.allSatisfy { (48...57).contains($0) || (65...90).contains($0) || (97...122).contains($0) } ? text : nil
  }

  @Sendable private static func keyOrCertificate(_ apns: Section, _ out: inout APNsDraft) {
    if out.hasCertificate {
      for name in ["key_file", "key_id", "team_id"] where apns.has(name) {
        apns[name].problem("certificate and \(name) exclude each other")
      }
      if out.tls.key != nil { out.credentials = out.certificate.map { .certificate(name: $0) } }
      return
    }
    if !apns.has("key_file") {
      apns.problem("key_file is missing: the .p8 that Apple gave you, or certificate: { cert: FILE, key: FILE }")
    }
    for name in ["key_id", "team_id"] where !apns.has(name) { apns.problem("\(name) is missing") }
    let signer = signer(out.key, .ES256, kid: out.keyID, apns["key_file"])
    if let signer, let id = out.keyID, let team = out.team { out.credentials = .key(signer, keyID: id, team: team) }
  }
}

private struct APNsDraft: Sendable {
  var key: [UInt8]?
  var keyID: String?
  var team: String?
  var hasCertificate = false
  var certificate: String?
  var tls = TLSFiles()
  var topic: String?
  var environment = Settings.Push(gateway: "").environment
  var production: PushServer?
  var sandbox: PushServer?
  var credentials: APNsProvider.Credentials?

  /// Nil after an error.
  var provider: APNsProvider? {
    guard let credentials else { return nil }
    var out = APNsProvider(credentials)
    if let production { out.production = production.endpoint }
    if let sandbox { out.sandbox = sandbox.endpoint }
    return out
  }
}

// MARK: FCM

extension ConfigurationKeys {
  private static let fcm = KeyTable<FCMDraft>(
    .init(), .atSIGHUP,
    [
      .init(
        "service_account", .secretFile("JSON of Google"), default: .required(hint: "the JSON file that Google gave you"),
        "Project and key that pushes are sent with."
      ) { field, out in
        out.account = field.fileContent().flatMap { serviceAccount($0, field) }
      },
      .server("url", \.service, none: "Google's", "A stand-in of the service."),
      .server("token_url", \.tokens, none: "that of the service account", "A stand-in of the token server."),
    ], rules: [accountSigns])

  private static func serviceAccount(_ bytes: [UInt8], _ field: Field) -> ServiceAccount? {
    guard let account = try? JSONDecoder().decode(ServiceAccount.self, from: Data(bytes)) else {
      field.problem("not the JSON of a service account")
      return nil
    }
    let parts = [
      ("project_id", account.project_id), ("client_email", account.client_email), ("private_key", account.private_key),
    ]
    let missing = parts.filter { $0.1?.isEmpty ?? true }.map(\.0)
    guard missing.isEmpty else {
      field.problem("the service account has no \(missing.joined(separator: ", "))")
      return nil
    }
    return account
  }

  @Sendable private static func accountSigns(_ fcm: Section, _ out: inout FCMDraft) {
    guard let account = out.account, let project = account.project_id, let email = account.client_email,
      let key = account.private_key
    else { return }
    let field = fcm["service_account"]
    guard let tokens = out.tokens ?? PushServer(account.token_uri ?? "https://oauth2.googleapis.com/token") else {
      return field.problem("token_uri is not an https address")
    }
    guard let signer = signer(Array(key.utf8), .RS256, field) else { return }
    var provider = FCMProvider(project: project, account: email, signer: signer)
    provider.tokens = (tokens.host, tokens.port, tokens.path.isEmpty ? "/token" : tokens.path)
    if let service = out.service { provider.service = service.endpoint }
    out.provider = provider
  }
}

private struct ServiceAccount: Decodable, Sendable {
  var project_id: String?
  var client_email: String?
  var private_key: String?
  var token_uri: String?
}

private struct FCMDraft: Sendable {
  var account: ServiceAccount?
  var service: PushServer?
  var tokens: PushServer?
  /// Nil after an error.
  var provider: FCMProvider?
}

// MARK: browsers

extension ConfigurationKeys {
  private static let webPush = KeyTable<WebPushDraft>(
    .init(), .atSIGHUP,
    [
      .init(
        "key_file", .secretFile("PEM key on P-256"), default: .required(), "The VAPID key that pushes are signed with."
      ) { field, out in
        out.signer = signer(field.fileContent(), .ES256, field)
      },
      .optional(
        "subject", \.subject, "`mailto:` or `https:`", default: .required(),
        expected: "a contact such as mailto:ops@example.com or https://example.com",
        "The contact address for a push service when pushes fail."
      ) { $0.hasPrefix("mailto:") || $0.hasPrefix("https://") ? $0 : nil },
      .list(
        "hosts", \.hosts, .text("host, or `*.` and a domain, each also with a port"), limit: 100,
        default: .none("the browsers' push services"),
        expected: "a host such as push.example.com, *.example.com or push.example.com:8443",
        "Hosts of endpoints that are pushed to; without a port: 443.", parse: pushHost),
    ])

  @Sendable private static func pushHost(_ text: String) -> String? {
    let parts = text.split(separator: ":", omittingEmptySubsequences: false)
    guard parts.count <= 2, !parts[0].isEmpty, !text.contains("/") else { return nil }
    if parts.count == 2 { guard let port = UInt16(parts[1]), port > 0 else { return nil } }
    return text.lowercased()
  }
}

private struct WebPushDraft: Sendable {
  var signer: TokenSigner?
  var subject: String?
  var hosts: [String] = []

  /// Nil after an error.
  var provider: WebPushProvider? {
    guard let signer, let subject, let point = signer.publicPoint else { return nil }
    return WebPushProvider(
      signer: signer, publicKey: Base64URL.encode(point), subject: subject,
      hosts: hosts.isEmpty ? WebPushProvider.browsers : hosts)
  }
}

// MARK: servers

/// A server of a push service.
struct PushServer: Equatable, Sendable {
  static let expected = "an address such as https://127.0.0.1:2197"
  var host: String
  var port: UInt16 = 443
  var path: String
  var endpoint: (host: String, port: UInt16) { (host, port) }

  /// `https://host[:port][/path]`; IPv6 in brackets.
  init?(_ text: String) {
    guard text.hasPrefix("https://") else { return nil }
    let rest = text.dropFirst("https://".count)
    let authority = rest.prefix { $0 != "/" }
    let path = String(rest.dropFirst(authority.count))
    self.path = path == "/" ? "" : path
    guard !authority.isEmpty, !authority.contains("@"), !text.contains(where: \.isWhitespace) else { return nil }
    var after: Substring
    if authority.hasPrefix("[") {
      guard let end = authority.firstIndex(of: "]") else { return nil }
      host = String(authority[...end])
      after = authority[authority.index(after: end)...]
      guard IPAddress(host.dropFirst().dropLast()) != nil else { return nil }
    } else {
      host = String(authority.prefix { $0 != ":" })
      after = authority.dropFirst(host.count)
      guard !host.isEmpty else { return nil }
    }
    guard !after.isEmpty else { return }
    guard after.hasPrefix(":"), let port = UInt16(after.dropFirst()), port > 0 else { return nil }
    self.port = port
  }
}

extension Key {
  fileprivate static func server(_ name: String, _ path: Path<PushServer?>, none: String, _ meaning: String) -> Key {
    .optional(
      name, path, "`https://` address", default: .none(none), expected: PushServer.expected, meaning, parse: { PushServer($0) })
  }
}
