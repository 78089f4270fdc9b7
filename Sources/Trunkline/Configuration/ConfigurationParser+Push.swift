import Bytes
import Foundation
import JSONWebToken
import Yams

/// `push:`, with every key read and tried, so that `serve --check` finds what Apple, Google or a browser would refuse.
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
    out.authorities = push.readableFile("ca")
    if push.has("apns") { out.apns = apns(push) }
    if push.has("fcm") { out.fcm = fcm(push) }
    if push.has("webpush") { out.webPush = webPush(push) }
    if !push.has("apns"), !push.has("fcm"), !push.has("webpush") { problem("push", "needs apns, fcm or webpush") }
    return out
  }

  // MARK: APNs

  private func apns(_ push: Section) -> Settings.APNs? {
    let apns = push.section("apns")
    guard let credentials = apns.has("certificate") ? certificate(apns) : key(apns) else { return nil }
    var out = Settings.APNs(credentials: credentials)
    out.topic = apns.value("topic", "the app's bundle identifier with .voip behind it") { text in
      text.hasSuffix(".voip") && text.count > 5 && text.utf8.count <= 255 && !text.contains(where: \.isWhitespace) ? text : nil
    }
    out.environment = apns.choice("environment", default: .production)
    if apns.node("url")?.text != nil {
      out.production = server(apns, "url")
      out.sandbox = out.production
    } else {
      let url = apns.section("url")
      (out.production, out.sandbox) = (server(url, "production"), server(url, "sandbox"))
    }
    return out
  }

  private func key(_ apns: Section) -> Settings.APNs.Credentials? {
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
    guard let bytes = signingKey(apns, "key_file", .ES256), let id, let team else { return nil }
    return .key(bytes, id: id, team: team)
  }

  private func certificate(_ apns: Section) -> Settings.APNs.Credentials? {
    for name in ["key_file", "key_id", "team_id"] where apns.has(name) {
      problem(apns.path(name), "certificate and \(name) exclude each other")
    }
    let row = apns.section("certificate")
    for name in ["cert", "key"] where !row.has(name) { problem(apns.path("certificate"), "\(name) is missing") }
    guard let certificate = row.readableFile("cert"), let key = row.readableFile("key"),
      let content = row.fileContent("cert", limit: Limits.fileBytes)
    else { return nil }
    // Not a secret: only so that a renewed certificate is seen as another one.
    var hash: UInt64 = 0xcbf2_9ce4_8422_2325
    for byte in content { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
    return .certificate(.init(certificate: certificate, key: key), fingerprint: hexString(hash))
  }

  // MARK: FCM

  private struct ServiceAccount: Decodable {
    var project_id: String?
    var client_email: String?
    var private_key: String?
    var token_uri: String?
  }

  private func fcm(_ push: Section) -> Settings.FCM? {
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
    let secret = Redacted(Array(key.utf8))
    guard trySigning(own, secret, .RS256) else { return nil }
    return Settings.FCM(project: project, account: email, key: secret, tokens: tokens, service: service)
  }

  // MARK: browsers

  private func webPush(_ push: Section) -> Settings.WebPush? {
    let row = push.section("webpush")
    for name in ["key_file", "subject"] where !row.has(name) { problem(row.path, "\(name) is missing") }
    let subject = row.value("subject", "a contact such as mailto:ops@example.com or https://example.com") { text in
      text.hasPrefix("mailto:") || text.hasPrefix("https://") ? text : nil
    }
    let hosts = row.list("hosts", limit: 100, "a host such as push.example.com or *.example.com") { text in
      !text.isEmpty && !text.contains("/") && !text.contains(":") ? text : nil
    }
    guard let key = signingKey(row, "key_file", .ES256), let subject else { return nil }
    return Settings.WebPush(key: key, subject: subject, hosts: hosts.isEmpty ? nil : hosts)
  }

  // MARK: parts

  private func signingKey(_ section: Section, _ key: String, _ algorithm: Algorithm) -> Redacted<[UInt8]>? {
    guard let bytes = section.fileContent(key) else { return nil }
    let secret = Redacted(bytes)
    return trySigning(section.path(key), secret, algorithm) ? secret : nil
  }

  private func trySigning(_ path: String, _ key: Redacted<[UInt8]>, _ algorithm: Algorithm) -> Bool {
    do {
      _ = try TokenSigner(keys: try KeySet(algorithm, keyFile: key.exposed)).sign(["try": "it"])
      return true
    } catch {
      problem(path, "\(error)")
      return false
    }
  }

  private func server(_ section: Section, _ key: String) -> Settings.PushServer? {
    section.value(key, "an address such as https://127.0.0.1:2197", Self.server)
  }

  /// `https://host[:port][/path]`; IPv6 in brackets.
  static func server(_ text: String) -> Settings.PushServer? {
    guard text.hasPrefix("https://") else { return nil }
    let rest = text.dropFirst("https://".count)
    let place = rest.prefix { $0 != "/" }
    var path = String(rest.dropFirst(place.count))
    if path == "/" { path = "" }
    guard !place.isEmpty, !place.contains("@"), !text.contains(where: \.isWhitespace) else { return nil }
    if place.hasPrefix("[") {
      guard let end = place.firstIndex(of: "]") else { return nil }
      let host = String(place[...end])
      let after = place[place.index(after: end)...]
      guard IPAddress(host.dropFirst().dropLast()) != nil else { return nil }
      if after.isEmpty { return .init(host: host, port: 443, path: path) }
      guard after.hasPrefix(":"), let port = UInt16(after.dropFirst()), port > 0 else { return nil }
      return .init(host: host, port: port, path: path)
    }
    let parts = place.split(separator: ":", omittingEmptySubsequences: false)
    guard let host = parts.first, !host.isEmpty, parts.count <= 2 else { return nil }
    guard parts.count == 2 else { return .init(host: String(host), port: 443, path: path) }
    guard let port = UInt16(parts[1]), port > 0 else { return nil }
    return .init(host: String(host), port: port, path: path)
  }
}
