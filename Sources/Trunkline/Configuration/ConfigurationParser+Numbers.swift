import CallModel
import PhoneNumbers
import Trunking

/// Checks for numbers and prefixes that no call ever has.
extension ConfigurationParser {
  func checkNumbers(_ configuration: Settings) {
    for (index, user) in configuration.userRows.enumerated() {
      for (row, number) in user.numbers.enumerated() {
        check(number, by: user.country, at: "users[\(index)].numbers[\(row)]")
      }
      for (row, prefix) in (user.allowance.prefixes ?? []).enumerated() { check(prefix: prefix, "users[\(index)].allow[\(row)]") }
      checkDiversions(user.diversions, by: user.country, at: "users[\(index)]")
    }
    for (index, row) in configuration.routes.inbound.enumerated() {
      for (position, number) in row.numbers.enumerated() {
        check(number, by: nil, at: "routes.inbound[\(index)].numbers[\(position)]")
      }
      checkDiversions(row.diversions, by: nil, at: "routes.inbound[\(index)]")
    }
    for (index, row) in configuration.routes.outbound.enumerated() {
      check(prefix: row.prefix, "routes.outbound[\(index)].prefix")
    }
    checkCountries(configuration)
  }

  private func checkDiversions(_ diversions: Diversions, by plan: NumberPlan?, at path: String) {
    for reason in DiversionTrigger.allCases {
      guard case .number(let number, _)? = diversions.rules[reason]?.target else { continue }
      check(number, by: plan, at: "\(path).diversions.\(reason.key).number")
    }
  }

  /// Checks only numbers with `+`, or with a known country: others may be a private branch exchange's.
  private func check(_ number: String, by plan: NumberPlan?, at path: String) {
    guard number.hasPrefix("+") || plan != nil else { return }
    do throws(NumberRefusal) {
      _ = try DialledNumber(number, in: plan)
    } catch {
      problem(at: path, "\"\(number)\" can never ring: \(error)", .warning)
    }
  }

  private func check(prefix: String, _ path: String) {
    guard prefix.hasPrefix("+"), prefix.utf8.count > 1, !NumberPlan.mayBegin(prefix) else { return }
    problem(at: path, "\"\(prefix)\" fits no number: \(NumberRefusal.noSuchCode)", .warning)
  }

  /// A user without a country dials as in the country of the trunks; if the trunks have several, national numbers are refused.
  private func checkCountries(_ configuration: Settings) {
    guard configuration.userRows.contains(where: { $0.country == nil }) else { return }
    let names = Set(configuration.routes.outbound.flatMap { $0.choices.map(\.trunk) })
    var first: (trunk: String, country: NumberPlan)?
    for (index, trunk) in configuration.trunks.enumerated() where names.contains(trunk.name) {
      guard let country = trunk.routing.numbers.country else { continue }
      guard let other = first, other.country != country else {
        first = first ?? (trunk.name, country)
        continue
      }
      problem(
        at: "trunks[\(index)].numbers.country",
        "is \(country.region), that of trunk \"\(other.trunk)\" \(other.country.region): users without country must dial with +; "
          + "write users[].country", .warning)
      return
    }
  }
}
