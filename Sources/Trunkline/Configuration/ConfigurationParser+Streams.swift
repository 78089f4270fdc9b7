import CallFlow
import TrunklineBytes

/// `to: wss://…` of a route, and the keys that belong to it.
extension ConfigurationParser {
  /// `to: users`, or `to: wss://bot.example/call` with `format` and `token_file`.
  func inboundTarget(_ row: Section) -> Routing.InboundRule.Target? {
    let expected = "users, or a URL such as wss://bot.example/call (ws: for this machine only)"
    guard row.string("to") != "users" else { return .users }
    guard let url = row.value("to", expected, { StreamURL($0) }) else { return nil }
    var target = StreamTarget(url)
    target.format = row.choice("format", default: target.format)
    if row.has("token_file"), let bytes = row.secret("token_file") {
      guard bytes.allSatisfy({ $0 > 32 && $0 < 127 }), bytes.count <= Limits.streamTokenBytes else {
        problem(row.path("token_file"), "needs a line of at most \(Limits.streamTokenBytes) visible characters")
        return nil
      }
      target.token = Redacted(String(decoding: bytes, as: UTF8.self))
    }
    return .stream(target)
  }

  /// Hosts and networks to which programs may send calls.
  func streamHosts(_ routes: Section) -> StreamHosts {
    var out = StreamHosts()
    let expected = "a host such as bot.example, *.bots.example or bot.example:8443, or ws://127.0.0.1:8080 of this machine"
    out.hosts = routes.list("stream_hosts", limit: Limits.streamHosts, expected) { StreamHosts.Host($0) }
    out.networks = routes.list("stream_networks", limit: Limits.streamHosts, "a network such as 10.0.0.0/8") { IPNetwork($0) }
    return out
  }

  /// The numbers of a row that leads to a stream; in any other row these keys are a mistake.
  func streamNumbers(_ row: Section, _ target: Routing.InboundRule.Target) -> [String] {
    guard case .stream = target else {
      for key in ["numbers", "format", "token_file"] where row.has(key) { problem(row.path(key), "goes with to: wss://…") }
      return []
    }
    if row.has("account") { problem(row.path("account"), "a stream has no account") }
    return row.list("numbers", limit: Limits.numbersPerUser, "a number such as \"+15551230001\"", number)
  }
}
