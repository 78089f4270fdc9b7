import AppSessions
import CallModel
import JSONWebToken
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineSIPDialogs

/// Numbers and limits in login tokens: kept in the directory, and passed to the store.
extension CallMachine {
  mutating func granted(_ grant: TokenGrant, to key: DeviceKey, on session: SessionID, _ step: inout Step) {
    // a refused login grants nothing
    if devices.isRevoked(key) { return }
    // the configuration file defines this user
    if routing.directory.isListed(key.user) { return }
    if sharesGrants, grant.issuedAt == 0 {
      let fault = TokenGrant.Fault("", "the token needs iat: by it the nodes of a cluster know which of two is the later one")
      return step.app(.refuse(session, Failure(.auth, msg: fault.description, fatal: true)))
    }
    func refuse(_ index: Int) {
      let fault = TokenGrant.Fault("numbers[\(index)]", "\(grant.numbers[index]) is another user's here")
      step.app(.refuse(session, Failure(.auth, msg: fault.description, fatal: true)))
    }
    if let index = grant.numbers.firstIndex(where: { !routing.directory.isFree($0, for: key.user) }) { return refuse(index) }
    do throws(UserGrants.Fault) {
      let changes = try accept(grant, of: key.user, step)
      granted(changes, &step)
      guard sharesGrants else { return }
      let always = !sharedGrants.wasRead
      let unshared = changeGrants { $0.unshared(key.user, after: changes, always: always) }
      if let unshared { step.output.actions.append(.shareGrants([unshared])) }
    } catch {
      switch error {
      case .ownedByOther(let index): refuse(index)
      case .full: step.app(.refuse(session, Failure(.overload, msg: "no room for what the token grants", fatal: true)))
      }
    }
  }

  /// Replaces the grants by those of the store, and checks them all by the present rules.
  mutating func loadGrants(_ stored: [UserGrants.Entry], at wall: Int64, _ step: inout Step) {
    granted(changeGrants { $0.load(stored, at: wall) }, &step)
    grantReview.begin(at: step.now)
    while grantReview.nextStep != nil { reviewGrants(&step) }
  }

  mutating func accept(_ grant: TokenGrant, of user: String, _ step: Step) throws(UserGrants.Fault) -> [UserGrants.Change] {
    try changeGrants { (grants) throws(UserGrants.Fault) in try grants.accept(grant, of: user, at: step.wallNow) }
  }

  /// The next step of the check of all grants by the rules of login tokens.
  mutating func reviewGrants(_ step: inout Step) {
    let (rules, last) = (routing.directory.grantRules, grantReview.last)
    let checked = changeGrants { $0.keep(rules, after: last, most: CallModel.Limits.grantsPerStep) }
    grantReview.checked(checked.last, at: step.now)
    granted(checked.changes, &step)
  }

  func granted(_ changes: [UserGrants.Change], _ step: inout Step) {
    if !changes.isEmpty { step.output.actions.append(.grants(changes)) }
  }

  // MARK: in a cluster

  /// Whether the grants of login tokens are kept in the shared store.
  var sharesGrants: Bool { configuration.isClustered && routing.directory.grantRules != nil }

  /// Applies a step of what the shared store has.
  mutating func apply(_ shared: SharedGrants, _ step: inout Step) {
    switch shared {
    case .comparison(let known):
      changeGrants { $0.beginComparison(known) }
      grantRestoring.compared()
      compareGrants(&step)
    case .comparisonStep: compareGrants(&step)
    case .rows(let rows, let isAll):
      let rules = routing.directory.grantRules
      granted(changeGrants { $0.apply(rows, rules, at: step.wallNow) }, &step)
      if isAll { sharedGrants.read() }
    }
  }

  /// Grants of users with a session here that the shared store has lost are written again, as at a login.
  private mutating func compareGrants(_ step: inout Step) {
    let (changes, stale) = changeGrants { $0.compareNext(most: CallModel.Limits.grantsPerStep, at: step.wallNow) }
    granted(changes, &step)
    let connected = stale.filter { !presences[$0].isEmpty }
    let ours = changeGrants { grants in connected.compactMap { grants.unshared($0, after: []) } }
    if !ours.isEmpty { step.output.actions.append(.shareGrants(ours)) }
    if !routing.directory.grants.isComparing { step.output.actions.append(.grantsCompared) }
  }

  /// Removes the user's grant at all nodes. Returns how many were removed here.
  mutating func forgetGrants(of user: String, _ step: inout Step) -> Int {
    let issuedAt = max(step.wallNow, routing.directory.grants[user]?.issuedAt ?? 0)
    let removed = changeGrants { $0.remove(user) }
    granted(removed, &step)
    if sharesGrants {
      let erased = SharedGrant(user: user, grant: nil, issuedAt: issuedAt, seen: step.wallNow)
      step.output.actions.append(.shareGrants([erased]))
    }
    return removed.count
  }

  /// Writes the grants that the shared store has lost from this node's copy, in batches. The shared store orders them by `iat`: a
  /// number of which a later token was written since stays with that token's user.
  mutating func restoreGrants(_ question: QuestionID, _ step: inout Step) {
    guard grantRestoring.begin(question) else { return step.answer(question, .restoring(users: grantRestoring.users)) }
    if sharesGrants { step.output.actions.append(.restoreGrants([])) } else { grantsRestored(0, false, &step) }
  }

  mutating func grantsRestored(_ users: Int, _ hasFailed: Bool, _ step: inout Step) {
    if hasFailed {
      if let question = grantRestoring.failed(users) { step.answer(question, .restoreFailed(users: grantRestoring.users)) }
      return
    }
    let (batch, answered) = grantRestoring.confirmed(users, routing.directory.grants)
    if !batch.isEmpty { step.output.actions.append(.restoreGrants(batch)) }
    if let answered { step.answer(answered, .restored(users: grantRestoring.users)) }
  }

  mutating func reportStaleGrants(_ step: inout Step) {
    let digest = routing.directory.grants.staleDigest
    // the digest of some of the users is no other node's
    guard configuration.isClustered, !routing.directory.grants.isComparing, sharedGrants.report(digest) else { return }
    step.output.actions.append(.staleGrants(digest))
  }

  /// No user has the number here, but the shared store or another node may know its user.
  func mayBeElsewhere(_ invite: InboundInvite) -> Bool {
    sharesGrants && sharedGrants.mayLackGrants && routing.isForUsers(of: invite.trunk)
  }
}

extension CallMachine.Input {
  /// Inputs of the store arrive before anything runs.
  var isOfStore: Bool {
    switch self {
    case .devices, .grants, .blocked: true
    default: false
    }
  }
}
