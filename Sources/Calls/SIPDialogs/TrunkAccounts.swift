/// Trunks that addresses do not distinguish: several accounts at one carrier, or several trunks that accept any peer.
struct TrunkAccounts {
  /// The trunks known by one name, in addition to the trunk of that name, in the order of their names.
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

  /// Whether a message from `other`'s peers may belong to `trunk`. From an edge it may belong to any.
  func mayBeOne(_ trunk: String, _ other: String) -> Bool {
    trunk == other || other == Edge.peer || (known[trunk] ?? trunk) == (known[other] ?? other)
  }

  /// The trunk of a request from the peers of `trunk`, by the contact that it calls.
  func trunk(of trunk: String, called contact: String) -> String { byContact[trunk]?[contact] ?? trunk }

  /// The trunks that the peers of `trunk` may belong to.
  func all(of trunk: String) -> [String] { [trunk] + (others[trunk] ?? []) }
}
