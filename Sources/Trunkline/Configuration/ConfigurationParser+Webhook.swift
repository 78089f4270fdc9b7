import CallFlow
import PushPolicy
import TrunklineBytes
import Yams

extension ConfigurationParser {
  /// `route: { webhook: URL, key_file: F, fallback: users }`, also `fallback: { user: ID }` or `{ code: 503 }`.
  func hook(_ row: Section) -> Routing.Hook? {
    let route = row.section("route")
    if !route.has("key_file") { problem(route.path, "key_file is missing: the secret that requests are signed with") }
    let fallback = fallback(route)
    guard route.has("webhook") else {
      problem(route.path, "webhook is missing")
      return nil
    }
    let url = route.value("webhook", "a URL: https://…, or http://… of this machine", webhookURL)
    guard let url, let key = route.secret("key_file") else { return nil }
    return .init(Webhook(url: url, key: Redacted(key)), fallback: fallback)
  }

  /// `webhook: { url: URL, key_file: F, cache: 60 }` of the user `any`.
  func userSource(_ row: Section) -> UserSource? {
    guard row.has("webhook") else { return nil }
    let source = row.section("webhook")
    if row.has("claims") { problem(source.path, "excludes claims: choose one of the two") }
    if !source.has("key_file") { problem(source.path, "key_file is missing: the secret that requests are signed with") }
    if !source.has("url") { problem(source.path, "url is missing") }
    let url = source.value("url", "a URL: https://…, or http://… of this machine", webhookURL)
    let cache = source.integer("cache", in: Limits.userCacheSeconds, default: Limits.usualUserCacheSeconds)
    guard let url, let key = source.secret("key_file") else { return nil }
    return UserSource(Webhook(url: url, key: Redacted(key)), cache: .seconds(cache))
  }

  private func fallback(_ route: Section) -> Routing.Hook.Fallback {
    if route.node("fallback")?.text != nil || !route.has("fallback") {
      _ = route.value("fallback", "users, { user: ID } or { code: 503 }") { $0 == "users" ? true : nil }
      return .users
    }
    let rule = route.section("fallback")
    if rule.has("user") == rule.has("code") { problem(rule.path, "needs exactly one of user: ID, code: 503") }
    if let user = rule.string("user") { return .user(user) }
    return .code(rule.integer("code", in: Limits.refusals, default: 503))
  }
}

/// Requests contain numbers and names: unencrypted only where no third party can read them.
func webhookURL(_ text: String) -> String? {
  guard text.utf8.count <= 2_048, text.utf8.allSatisfy({ (33...126).contains($0) }) else { return nil }
  if text.hasPrefix("https://"), text.utf8.count > 8 { return text }
  guard text.hasPrefix("http://") else { return nil }
  let authority = text.dropFirst(7).prefix { $0 != "/" && $0 != "?" && $0 != "#" }
  guard !authority.contains("@") else { return nil }
  let address = SocketAddress(String(authority))?.ip ?? IPAddress(String(authority))
  return address?.isLoopback == true || authority == "localhost" || authority.hasPrefix("localhost:") ? text : nil
}
