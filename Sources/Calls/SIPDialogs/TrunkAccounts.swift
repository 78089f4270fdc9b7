/// Trunks that addresses do not tell apart: several accounts at one carrier, or several trunks that take any peer.
struct TrunkAccounts {
  /// The trunks that are known by one name, beside the trunk of that name itself, in the order of their names.
  private var others: [String: [String]] = [:]
  private var known: [String: String] = [:]
  private var byContact: [String: [String: String]] = [:]

  init(_ rules: [String: TrunkRules] = [:]) {
    for (trunk, rule) in rules {
      guard let name = rule.peersKnownAs, name != trunk else { continue }
      known[trunk] = name
      others[name, default: []].append(trunk)
    }
    for (name, trunks) in others {
      others[name] = trunks.sorted()
      for trunk in [name] + trunks { byContact[name, default: [:]][rules[trunk]?.contactUser ?? ""] = trunk }
    }
  }

  /// Whether what came from `other`'s peers may be of `trunk`. From an edge it may be of any.
  func mayBeOne(_ trunk: String, _ other: String) -> Bool {
    trunk == other || other == Edge.peer || (known[trunk] ?? trunk) == (known[other] ?? other)
  }

  /// The trunk that a request from the peers of `trunk` is for, by the contact that it calls.
  func trunk(of trunk: String, called contact: String) -> String { byContact[trunk]?[contact] ?? trunk }

  /// The trunks that the peers of `trunk` may be of.
  func all(of trunk: String) -> [String] { [trunk] + (others[trunk] ?? []) }
}
