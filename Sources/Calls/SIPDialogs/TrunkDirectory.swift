/// The rules of each trunk, and which trunks one source may belong to.
///
/// A removed trunk keeps its rules: its calls continue, and a peer that had to answer a challenge still has to. A trunk without rules
/// has the default ones.
struct TrunkDirectory {
  private var byName: [String: TrunkRules] = [:]
  private(set) var accounts = TrunkAccounts()

  func rules(of trunk: String) -> TrunkRules { byName[trunk] ?? TrunkRules() }
  func isKnown(_ trunk: String) -> Bool { byName[trunk] != nil }

  /// Sets the rules of these trunks; all others stay.
  mutating func set(_ rules: [String: TrunkRules]) {
    byName.merge(rules) { $1 }
    accounts = TrunkAccounts(byName)
  }
}
