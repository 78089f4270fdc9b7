import Trunking
import TrunklineAppProtocol
import TrunklineBytes
public import TrunklineSIPDialogs

extension Routing {
  /// The target of an incoming call.
  package struct InboundRoute {
    package var user: String
    /// The user's number as configured, or the called one.
    package var number: String
    package var diversions = Diversions()
    /// The rule's account, for users without their own.
    package var account: String?
    /// The webhook that names the users; `user` is empty then.
    package var hook: Routing.Hook?
    /// The stream that gets the call; `user` is empty then.
    package var stream: StreamTarget?
    /// The call is for one user, as far as is known yet.
    package var isUsers: Bool { hook == nil && stream == nil }
  }

  /// The rules of each trunk for the SIP user agent.
  public var rules: [String: TrunkRules] { Dictionary(trunks.map { ($0.name, $0.rules) }) { first, _ in first } }

  package func trunk(_ name: String) -> Trunk? {
    switch name {
    case Self.directTrunk: Self.direct
    case Self.testTrunk: Self.test
    default: trunks.first { $0.name == name }
    }
  }
  package func user(_ id: String) -> User? { directory.user(id) }

  /// The route for a called number; nil: there is none.
  package func route(called number: String, trunk: String) -> InboundRoute? {
    if trunk == Self.directTrunk { return directRoute(called: number) }
    for rule in inbound where rule.trunk == trunk {
      switch rule.target {
      case .user(let id) where directory.contains(id):
        return InboundRoute(user: id, number: number, diversions: rule.diversions, account: rule.account)
      case .user: continue
      case .hook(let hook):
        return InboundRoute(user: "", number: number, diversions: rule.diversions, account: rule.account, hook: hook)
      case .stream(let target):
        let wanted = Self.canonical(number)
        guard rule.numbers.isEmpty || rule.numbers.contains(where: { Self.canonical($0) == wanted }) else { continue }
        return InboundRoute(user: "", number: number, diversions: rule.diversions, stream: target)
      case .users:
        guard let owner = directory.owner(of: number) else { continue }
        return InboundRoute(user: owner.user, number: owner.number, diversions: rule.diversions, account: rule.account)
      }
    }
    return nil
  }

  /// The account of a call to `number` if `id` has it: the number's, the user's, else the route's. Nil: no particular one, so
  /// that all of the user's devices ring.
  package func account(of id: String, called number: String, route: String?) -> String? {
    guard let user = user(id) else { return route }
    let wanted = Self.canonical(number)
    let own = user.numberAccounts.first { Self.canonical($0.key) == wanted }?.value
    return own ?? user.account ?? route
  }

  /// The route for a dialled number that has a trunk to call out on.
  package func rule(dialling number: String, emergency: Bool = false) -> OutboundRule? {
    var best: OutboundRule?
    for rule in outbound where number.hasPrefix(rule.prefix) && (!emergency || rule.allowsEmergency) {
      guard rule.choices.contains(where: { trunk($0.trunk)?.canCall ?? false }) else { continue }
      if rule.prefix.utf8.count > best?.prefix.utf8.count ?? -1 { best = rule }
    }
    return best
  }

  /// Whether a number is one of the user's own.
  package func isOwn(_ number: String, of user: String) -> Bool {
    directory.owner(of: number)?.user == user
  }

  /// Whether a number is one of this gateway's users.
  package func isOwn(_ number: String) -> Bool { directory.owner(of: number) != nil }

  /// The number to call from: the requested one if it is the user's, else nil. If none is requested, the first of the account, or
  /// of all.
  package func callerNumber(of user: String, wanted: String?, account: String? = nil) -> String? {
    guard let numbers = self.user(user)?.numbers else { return nil }
    guard let wanted else {
      let own = account.flatMap { account in
        numbers.first { self.account(of: user, called: $0, route: nil) == account }
      }
      return own ?? numbers.first
    }
    let canonical = Self.canonical(wanted)
    return numbers.first { Self.canonical($0) == canonical }
  }

  /// The display name for trunks when an app of the user calls; only with `choosesName` the app chooses it.
  package func displayName(of id: String, wanted: String?) -> String? {
    guard let user = user(id) else { return nil }
    let chosen = user.choosesName ? wanted.map { String($0.prefix(Limits.textCharacters)) } : nil
    return chosen.flatMap { $0.isEmpty ? nil : $0 } ?? user.name
  }

  /// Carriers write the same number as `+1555`, `001555` or `1555`.
  public static func canonical(_ number: String) -> Substring {
    if number.hasPrefix("+") { return number.dropFirst() }
    if number.hasPrefix("00") { return number.dropFirst(2) }
    return number[...]
  }
}

extension Routing.Trunk {
  package var canCall: Bool { peer != nil || settings != nil }
}

extension Handle {
  /// A number from a trunk.
  package init(number: String, name: String?) {
    let number = String(number.prefix(Limits.textCharacters))
    self.init(
      k: Self.kind(ofNumber: number), h: number.isEmpty ? "anonymous" : number,
      n: name.map { String($0.prefix(Limits.textCharacters)) })
  }
}
