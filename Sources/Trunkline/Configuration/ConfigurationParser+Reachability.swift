import CallModel
import Trunking

/// Finds rows that are valid by themselves but that no call can reach.
extension ConfigurationParser {
  func checkReachability(_ configuration: Settings) {
    checkInbound(configuration.routes.inbound)
    for (index, trunk) in configuration.trunks.enumerated() {
      let path = "trunks[\(index)].numbers"
      checkRules(trunk.routing.numbers.incoming, path + ".inbound")
      checkRules(trunk.routing.numbers.outgoing, path + ".outbound")
      checkRules(trunk.routing.numbers.caller, path + ".caller")
    }
    checkUnreached(configuration)
    checkAllowed(configuration)
    checkInternational(configuration)
    checkNumbers(configuration)
  }

  /// The first row of a trunk that fits wins: `user`, `route` and a stream without `numbers` fit every call, and a second
  /// `to: users` fits the same calls as the first.
  private func checkInbound(_ rows: [Routing.InboundRule]) {
    var everything: [String: Int] = [:]
    var users: [String: Int] = [:]
    for (index, row) in rows.enumerated() {
      let path = "routes.inbound[\(index)]"
      if let other = everything[row.trunk] {
        problem(
          at: path, "unreachable: routes.inbound[\(other)] matches every call of trunk \"\(row.trunk)\"; move this row before it")
      } else if case .users = row.target {
        if let other = users[row.trunk] {
          problem(at: path, "equals routes.inbound[\(other)]: remove one of them")
        } else {
          users[row.trunk] = index
        }
      } else if row.numbers.isEmpty {
        everything[row.trunk] = index
      }
    }
  }

  /// The first rule that fits is applied.
  private func checkRules(_ rules: [NumberRules.Rule], _ path: String) {
    for (index, rule) in rules.enumerated() {
      guard let other = rules[..<index].firstIndex(where: { rule.prefix.hasPrefix($0.prefix) }) else { continue }
      problem(
        at: "\(path)[\(index)]",
        "unreachable: prefix \"\(rules[other].prefix)\" before it matches all that begin with \"\(rule.prefix)\"; move this row before it"
      )
    }
  }

  /// `no_answer.after` replaces `timers.ring`, which ends the ringing whether a device was reached or not. A user's rules are
  /// combined with the route's: a longer time there may apply.
  private func checkUnreached(_ configuration: Settings) {
    func longest(_ all: [Diversions]) -> Duration? { all.compactMap { $0.rules[.noAnswer]?.after }.max() }
    func check(_ diversions: Diversions, at path: String, others: Duration?) {
      guard let rule = diversions.rules[.unreached] else { return }
      let own = diversions.rules[.noAnswer]?.after
      let end = max(own ?? configuration.calls.timers.ring, others ?? .zero)
      let after = rule.after ?? Diversions.unreachedAfter
      guard after >= end else { return }
      problem(
        at: path + ".diversions.unreached.after",
        "waits \(durationText(after)), but the call stops ringing after \(durationText(end)) "
          + "(no_answer.after, or timers.ring): write less than that")
    }
    let (users, rows) = (configuration.userRows, configuration.routes.inbound)
    let (ofUsers, ofRoutes) = (longest(users.map(\.diversions)), longest(rows.map(\.diversions)))
    for (index, user) in users.enumerated() {
      check(user.diversions, at: "users[\(index)]", others: user.diversions.rules[.noAnswer]?.after == nil ? ofRoutes : nil)
    }
    for (index, row) in rows.enumerated() { check(row.diversions, at: "routes.inbound[\(index)]", others: ofUsers) }
  }

  private func checkAllowed(_ configuration: Settings) {
    let routes = Set(configuration.routes.outbound.map(\.prefix))
    var served: [String: Bool] = [:]
    for (index, user) in configuration.userRows.enumerated() {
      for (row, prefix) in (user.allowance.prefixes ?? []).enumerated() {
        let isServed = served[prefix] ?? routes.contains { $0.hasPrefix(prefix) || prefix.hasPrefix($0) }
        served[prefix] = isServed
        guard !isServed else { continue }
        problem(at: "users[\(index)].allow[\(row)]", "no row of routes.outbound serves numbers with \"\(prefix)\"", .warning)
      }
    }
  }

  /// Prefixes are compared with the number as the device dials it, which from an address book is E.164.
  private func checkInternational(_ configuration: Settings) {
    func check(_ prefixes: [String], _ path: (Int) -> String) {
      let plus = prefixes.filter { $0.isEmpty || $0.hasPrefix("+") }
      for (index, prefix) in prefixes.enumerated() where prefix.hasPrefix("00") {
        let meant = "+" + prefix.dropFirst(2)
        guard !plus.contains(where: meant.hasPrefix) else { continue }
        problem(at: path(index), "\"\(prefix)\" fits no number that begins with \"+\": write \"\(meant)\", too", .warning)
      }
    }
    for (index, user) in configuration.userRows.enumerated() {
      check(user.allowance.prefixes ?? []) { "users[\(index)].allow[\($0)]" }
    }
    check(configuration.routes.outbound.map(\.prefix)) { "routes.outbound[\($0)].prefix" }
  }
}
