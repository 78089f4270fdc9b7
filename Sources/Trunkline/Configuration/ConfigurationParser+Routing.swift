import AppSessions
import CallFlow
import TrunklineBytes
import Yams

/// Users and routes, which are read again at SIGHUP.
extension ConfigurationParser {
  /// `users: any`, or a list, whose last item may be `any`, or `{ id: any, max_calls: 2 }` with the permissions of every other
  /// user.
  func readUsers(_ top: Section, _ out: inout Settings) {
    let items = top.items("users", limit: Limits.users)
    for (index, item) in items.enumerated() {
      let row = if case .mapping = item.node { Section(item.node, item.path, self) } else { nil as Section? }
      guard let user = item.node.text == Self.anyone ? Routing.User(id: Self.anyone, numbers: []) : row.flatMap(user) else {
        if row == nil { problem(item.path, "expected a mapping with id, or any, got \(shown(item.node))") }
        continue
      }
      guard user.id == Self.anyone else {
        for key in ["claims", "webhook"] where row?.has(key) ?? false {
          problem("\(item.path).\(key)", "needs id: any: this user is defined by the file")
        }
        out.users.append(user)
        continue
      }
      out.grantRules = row.flatMap { grantRules($0, user) }
      out.userSource = row.flatMap(userSource)
      if index != items.count - 1 { problem(item.path, "any means all other users: write it last, and once") }
      if !user.numbers.isEmpty {
        problem(item.path + ".numbers", "a number belongs to one user: name the user, or see trunkline users import")
      }
      var anyone = user
      anyone.id = ""
      out.anyUser = anyone
    }
  }

  private static let anyone = "any"

  /// `claims:` of `any`: the grants that tokens may add to the permissions of `any`.
  private func grantRules(_ row: Section, _ user: Routing.User) -> GrantRules? {
    guard row.has("claims") else { return nil }
    let claims = row.section("claims")
    return GrantRules(
      numbers: claims.list("numbers", limit: Limits.numbersPerUser, "the beginning of a number such as \"+1555\"", prefix),
      maxNumbers: claims.integer("max_numbers", in: Limits.grantedNumbers, default: GrantRules.defaultMaxNumbers),
      acceptsDiversions: claims.flag("diversions", default: false), allow: user.allowance.prefixes,
      maxCalls: user.allowance.calls, callsPerHour: user.allowance.callsPerHour)
  }

  private func user(_ user: Section) -> Routing.User? {
    let numbers = numbers(user)
    guard let id = user.required("id") else { return nil }
    var out = Routing.User(id: id, numbers: numbers.map(\.number))
    out.name = user.string("name")
    out.choosesName = user.flag("display_name", default: out.choosesName)
    for (number, account) in numbers { out.numberAccounts[number] = account }
    out.account = account(user)
    if user.has("allow") {
      out.allowance.prefixes = user.list(
        "allow", limit: Limits.numbersPerUser, "the beginning of a number such as \"+49\"", prefix)
    }
    if user.has("max_calls") { out.allowance.calls = user.integer("max_calls", in: 0...1_000, default: 1) }
    out.diversions = diversions(user)
    out.isRecorded = user.flag("record", default: out.isRecorded)
    out.country = country(user)
    if user.has("calls_per_hour") { out.allowance.callsPerHour = user.integer("calls_per_hour", in: 0...10_000, default: 1) }
    return out
  }

  /// `"+15551230001"`, or `{ number: "+15551230001", account: work }`.
  private func numbers(_ user: Section) -> [(number: String, account: String?)] {
    let expected = "a number such as \"+15551230001\""
    return user.items("numbers", limit: Limits.numbersPerUser).compactMap { item in
      guard case .mapping = item.node else {
        return Section.value(item.node, item.path, self, expected, number).map { ($0, nil) }
      }
      let row = Section(item.node, item.path, self)
      if !row.has("number") { problem(item.path, "number is missing") }
      return row.value("number", expected, number).map { ($0, account(row)) }
    }
  }

  /// The name in `acct` of the devices' login tokens.
  private func account(_ section: Section) -> String? {
    section.value("account", "an account's name of at most \(Limits.accountBytes) characters without spaces") { text in
      (1...Limits.accountBytes).contains(text.utf8.count) && text.unicodeScalars.allSatisfy { $0.value > 32 && $0.value != 127 }
        ? text : nil
    }
  }

  func routes(_ top: Section, _ calls: inout CallFlow.Configuration) -> Settings.Routes {
    var out = Settings.Routes()
    let routes = top.section("routes")
    out.webhookAuthorities = routes.readableFile("webhook_ca")
    out.connectsUsers = routes.value("users", "direct or trunk") { ["direct": true, "trunk": false][$0] } ?? out.connectsUsers
    out.streamAuthorities = routes.readableFile("stream_ca")
    out.streamHosts = streamHosts(routes)
    if routes.has("emergency") {
      out.emergencyNumbers = Set(routes.list("emergency", limit: 100, "a number such as 112", number))
    }
    calls.declineCode = routes.value("decline_code", "486 or 603") { ["486": 486, "603": 603][$0] } ?? calls.declineCode
    for item in routes.items("inbound", limit: Limits.routes) {
      let row = Section(item.node, item.path, self)
      guard case .mapping = item.node else { continue }
      if ["to", "user", "route"].filter(row.has).count != 1 {
        problem(item.path, "needs exactly one of to: users or wss://…, user: ID, route: { webhook: URL }")
      }
      var target = Routing.InboundRule.Target.users
      if row.has("to") { target = inboundTarget(row) ?? target }
      if let id = row.string("user") { target = .user(id) }
      if row.has("route"), let hook = hook(row) { target = .hook(hook) }
      guard let trunk = row.required("trunk") else { continue }
      var rule = Routing.InboundRule(trunk: trunk, target: target)
      rule.numbers = streamNumbers(row, target)
      (rule.diversions, rule.account) = (diversions(row), account(row))
      out.inbound.append(rule)
    }
    for item in routes.items("outbound", limit: Limits.routes) {
      let row = Section(item.node, item.path, self)
      guard case .mapping = item.node else { continue }
      let prefix = row.value("prefix", "the beginning of a number", prefix) ?? ""
      if row.has("trunk"), row.has("trunks") { problem(item.path, "trunk and trunks exclude each other") }
      let choices =
        row.has("trunks") ? choices(row) : row.required("trunk").map { [.init(trunk: $0)] } ?? []
      guard !choices.isEmpty else { continue }
      out.outbound.append(.init(prefix: prefix, choices: choices, allowsEmergency: row.flag("emergency", default: false)))
    }
    return out
  }
}

extension ConfigurationParser {
  /// `[ a, b ]` in that order, or `{ trunk: a, priority: 1, weight: 70 }`.
  private func choices(_ row: Section) -> [Routing.TrunkChoice] {
    row.items("trunks", limit: 32).enumerated().compactMap { index, item in
      if let name = item.node.text { return .init(trunk: name, priority: index + 1) }
      let choice = Section(item.node, item.path, self)
      guard case .mapping = item.node, let name = choice.required("trunk") else { return nil }
      return .init(
        trunk: name, priority: choice.integer("priority", in: 1...1_000, default: index + 1),
        weight: UInt64(choice.integer("weight", in: 0...65_535, default: 1)))
    }
  }
}

/// `+` and digits, or digits alone, at most 20 of them.
func number(_ text: String) -> String? {
  let digits = text.hasPrefix("+") ? text.dropFirst() : text[...]
  return (1...20).contains(digits.count) && digits.allSatisfy { ("0"..."9").contains($0) } ? text : nil
}

/// A prefix of a number, which may be empty or `+` alone.
func prefix(_ text: String) -> String? {
  text.isEmpty || text == "+" ? text : number(text)
}
