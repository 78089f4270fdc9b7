import Foundation
import JSONWebToken
import PushPolicy
import TrunklineBytes
import Yams

/// `push:`. Every key is read and tried, so that `serve --check` finds faults that Apple, Google or a browser would refuse.
extension ConfigurationParser {
  func push(_ top: Section) -> Settings.Push? {
    guard top.has("push") else { return nil }
    let push = top.section("push")
    guard case .mapping = top.node("push") else { return nil }
    if !push.has("gateway") {
      problem("push", "gateway is missing: the address that a woken app connects to, such as wss://phone.example.com/v1/connect")
    }
    let gateway = push.value("gateway", "an address such as wss://phone.example.com/v1/connect") { text in
      let isSecure = text.hasPrefix("wss://") && text.count > 6
      return (isSecure || text.hasPrefix("ws://") && text.count > 5) && text.utf8.count <= 512
        && !text.contains(where: \.isWhitespace) ? text : nil
    }
    var out = Settings.Push(gateway: gateway ?? "")
    out.tls.authorities = push.readableFile("ca")
    var providers: [(any PushProvider)?] = []
    if push.has("apns") { providers.append(apns(push, &out)) }
    if push.has("fcm") { providers.append(fcm(push)) }
    if push.has("webpush") { providers.append(webPush(push)) }
    if providers.isEmpty { problem("push", "needs apns, fcm or webpush") }
    out.providers = PushProviders(providers.compactMap(\.self))
    return out
  }

  // MARK: APNs

  private func apns(_ push: Section, _ out: inout Settings.Push) -> APNsProvider? {
    let apns = push.section("apns")
    guard let credentials = apns.has("certificate") ? certificate(apns, &out) : key(apns) else { return nil }
    var provider = APNsProvider(credentials)
    out.topic = apns.value("topic", "the app's bundle identifier with .voip behind it") { text in
      text.hasSuffix(".voip") && text.count > 5 && text.utf8.count <= 255 && !text.contains(where: \.isWhitespace) ? text : nil
    }
    out.environment = apns.choice("environment", default: out.environment)
    if apns.node("url")?.text != nil {
      if let server = server(apns, "url") { (provider.production, provider.sandbox) = (server.endpoint, server.endpoint) }
    } else {
      let url = apns.section("url")
      if let server = server(url, "production") { provider.production = server.endpoint }
      if let server = server(url, "sandbox") { provider.sandbox = server.endpoint }
    }
    return provider
  }

  private func key(_ apns: Section) -> APNsProvider.Credentials? {
    if !apns.has("key_file") {
      problem(apns.path, "key_file is missing: the .p8 that Apple gave you, or certificate: { cert: FILE, key: FILE }")
    }
    let word: (String) -> String? = { text in
      (1...32).contains(text.utf8.count)
        && text.utf8.allSatisfy { (48...57).contains($0) || (65...90).contains($0) || (97...122).contains($0) } ? text : nil
    }
    for name in ["key_id", "team_id"] where !apns.has(name) { problem(apns.path, "\(name) is missing") }
    let id = apns.value("key_id", "the key's id, such as ABC123DEFG", word)
    let team = apns.value("team_id", "the team's id, such as DEF123GHIJ", word)
    guard let signer = signer(apns, "key_file", .ES256, kid: id), let id, let team else { return nil }
    return .key(signer, keyID: id, team: team)
  }

  private func certificate(_ apns: Section, _ out: inout Settings.Push) -> APNsProvider.Credentials? {
    for name in ["key_file", "key_id", "team_id"] where apns.has(name) {
      problem(apns.path(name), "certificate and \(name) exclude each other")
    }
    let row = apns.section("certificate")
    for name in ["cert", "key"] where !row.has(name) { problem(apns.path("certificate"), "\(name) is missing") }
    guard let certificate = row.readableFile("cert"), let key = row.readableFile("key"),
      let content = row.fileContent("cert", limit: Limits.fileBytes)
    else { return nil }
    (out.tls.certificate, out.tls.key) = (certificate, key)
    // Not a secret: the hash only distinguishes a renewed certificate.
    return .certificate(name: hexString(FNV1a(content).value))
  }

  // MARK: FCM

  private struct ServiceAccount: Decodable {
    var project_id: String?
    var client_email: String?
    var private_key: String?
    var token_uri: String?
  }

  private func fcm(_ push: Section) -> FCMProvider? {
    let fcm = push.section("fcm")
    if !fcm.has("service_account") { problem(fcm.path, "service_account is missing: the JSON file that Google gave you") }
    let service = server(fcm, "url")
    let given = server(fcm, "token_url")
    guard let bytes = fcm.fileContent("service_account") else { return nil }
    let own = fcm.path("service_account")
    guard let account = try? JSONDecoder().decode(ServiceAccount.self, from: Data(bytes)) else {
      problem(own, "not the JSON of a service account")
      return nil
    }
    let missing = [
      ("project_id", account.project_id), ("client_email", account.client_email), ("private_key", account.private_key),
    ]
    .filter { $0.1?.isEmpty ?? true }.map(\.0)
    guard missing.isEmpty, let project = account.project_id, let email = account.client_email, let key = account.private_key
    else {
      problem(own, "the service account has no \(missing.joined(separator: ", "))")
      return nil
    }
    guard let tokens = given ?? Self.server(account.token_uri ?? "https://oauth2.googleapis.com/token") else {
      problem(own, "token_uri is not an https address")
      return nil
    }
    guard let signer = signer(own, Array(key.utf8), .RS256) else { return nil }
    var provider = FCMProvider(project: project, account: email, signer: signer)
    provider.tokens = (tokens.host, tokens.port, tokens.path.isEmpty ? "/token" : tokens.path)
    if let service { provider.service = service.endpoint }
    return provider
  }

  // MARK: browsers

  private func webPush(_ push: Section) -> WebPushProvider? {
    let row = push.section("webpush")
    for name in ["key_file", "subject"] where !row.has(name) { problem(row.path, "\(name) is missing") }
    let subject = row.value("subject", "a contact such as mailto:ops@example.com or https://example.com") { text in
      text.hasPrefix("mailto:") || text.hasPrefix("https://") ? text : nil
    }
    let hosts = row.list(
      "hosts", limit: 100, "a host such as push.example.com, *.example.com or push.example.com:8443", pushHost)
    guard let signer = signer(row, "key_file", .ES256), let subject, let point = signer.publicPoint else { return nil }
    return WebPushProvider(
      signer: signer, publicKey: Base64URL.encode(point), subject: subject,
      hosts: hosts.isEmpty ? WebPushProvider.browsers : hosts)
  }

  private func pushHost(_ text: String) -> String? {
    let parts = text.split(separator: ":", omittingEmptySubsequences: false)
    guard parts.count <= 2, !parts[0].isEmpty, !text.contains("/") else { return nil }
    if parts.count == 2 { guard let port = UInt16(parts[1]), port > 0 else { return nil } }
    return text.lowercased()
  }

  // MARK: parts

  private func signer(_ section: Section, _ key: String, _ algorithm: Algorithm, kid: String? = nil) -> TokenSigner? {
    section.fileContent(key).flatMap { signer(section.path(key), $0, algorithm, kid: kid) }
  }

  /// Tries the key, so that `serve --check` finds one that does not sign.
  private func signer(_ path: String, _ key: [UInt8], _ algorithm: Algorithm, kid: String? = nil) -> TokenSigner? {
    do {
      let signer = try TokenSigner(keys: try KeySet(algorithm, keyFile: key), kid: kid)
      _ = try signer.sign(["try": "it"])
      return signer
    } catch {
      problem(path, "\(error)")
      return nil
    }
  }

  /// A server of a push service.
  struct Server: Equatable {
    var host: String
    var port: UInt16
    var path: String
    var endpoint: (host: String, port: UInt16) { (host, port) }
  }

  private func server(_ section: Section, _ key: String) -> Server? {
    section.value(key, "an address such as https://127.0.0.1:2197", Self.server)
  }

  /// `https://host[:port][/path]`; IPv6 in brackets.
  static func server(_ text: String) -> Server? {
    guard text.hasPrefix("https://") else { return nil }
    let rest = text.dropFirst("https://".count)
    let authority = rest.prefix { $0 != "/" }
    var path = String(rest.dropFirst(authority.count))
    if path == "/" { path = "" }
    guard !authority.isEmpty, !authority.contains("@"), !text.contains(where: \.isWhitespace) else { return nil }
    if authority.hasPrefix("[") {
      guard let end = authority.firstIndex(of: "]") else { return nil }
      let host = String(authority[...end])
      let after = authority[authority.index(after: end)...]
      guard IPAddress(host.dropFirst().dropLast()) != nil else { return nil }
      if after.isEmpty { return .init(host: host, port: 443, path: path) }
      guard after.hasPrefix(":"), let port = UInt16(after.dropFirst()), port > 0 else { return nil }
      return .init(host: host, port: port, path: path)
    }
    let parts = authority.split(separator: ":", omittingEmptySubsequences: false)
    guard let host = parts.first, !host.isEmpty, parts.count <= 2 else { return nil }
    guard parts.count == 2 else { return .init(host: String(host), port: 443, path: path) }
    guard let port = UInt16(parts[1]), port > 0 else { return nil }
    return .init(host: String(host), port: port, path: path)
  }
}
