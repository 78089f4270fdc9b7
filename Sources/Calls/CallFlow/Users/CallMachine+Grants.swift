import AppSessions
import CallModel
import JSONWebToken
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineSIPDialogs

/// Numbers and limits in login tokens: kept in the directory, and passed to the store.
extension CallMachine {
  mutating func granted(_ grant: TokenGrant, _ key: DeviceKey, _ session: SessionID, _ step: inout Step) {
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
      let changes = try routing.directory.grants.accept(grant, of: key.user, at: step.wallNow)
      granted(changes, &step)
      guard sharesGrants else { return }
      let unshared = routing.directory.grants.unshared(key.user, after: changes, always: !hasSharedGrants)
      if let unshared { step.output.actions.append(.shareGrants([unshared])) }
    } catch {
      switch error {
      case .ownedByOther(let index): refuse(index)
      case .full: step.app(.refuse(session, Failure(.overload, msg: "no room for what the token grants", fatal: true)))
      }
    }
  }

  /// Replaces the routing, and keeps the grants that the new one allows.
  mutating func replace(_ new: Routing, _ step: inout Step) {
    let grants = routing.directory.grants
    routing = new
    routing.settle()
    routing.directory.grants = grants
    if !grants.isEmpty, new.userSource == nil { granted(routing.directory.grants.keep(new.directory.grantRules), &step) }
  }

  func granted(_ changes: [UserGrants.Change], _ step: inout Step) {
    if !changes.isEmpty { step.output.actions.append(.grants(changes)) }
  }

  // MARK: in a cluster

  /// Whether the grants of login tokens are kept in the shared store.
  var sharesGrants: Bool { configuration.isClustered && routing.directory.grantRules != nil }

  /// Applies rows of the shared store. Grants of users with a session here that the shared store has lost are written again, as
  /// at a login.
  mutating func apply(_ shared: SharedGrants, _ step: inout Step) {
    if let known = shared.known {
      granted(routing.directory.grants.compare(known, at: step.wallNow), &step)
      let ours = routing.directory.grants.stale.filter { presences[$0]?.isEmpty == false }.sorted()
        .compactMap { routing.directory.grants.unshared($0, after: []) }
      if !ours.isEmpty { step.output.actions.append(.shareGrants(ours)) }
    }
    granted(routing.directory.grants.apply(shared.rows, routing.directory.grantRules, at: step.wallNow), &step)
    if shared.isAll { hasSharedGrants = true }
  }

  /// Removes the user's grant at all nodes. Returns how many were removed here.
  mutating func forgetGrants(of user: String, _ step: inout Step) -> Int {
    let issuedAt = max(step.wallNow, routing.directory.grants[user]?.issuedAt ?? 0)
    let removed = routing.directory.grants.remove(user)
    granted(removed, &step)
    if sharesGrants {
      let erased = SharedGrant(user: user, grant: nil, issuedAt: issuedAt, seen: step.wallNow)
      step.output.actions.append(.shareGrants([erased]))
    }
    return removed.count
  }

  /// Writes the grants that the shared store has lost from this node's copy. The shared store orders them by `iat`: a number of
  /// which a later token was written since stays with that token's user.
  mutating func restoreGrants(_ question: QuestionID, _ step: inout Step) {
    let lost = routing.directory.grants.stale.sorted().compactMap { routing.directory.grants.unshared($0, after: []) }
    if !lost.isEmpty { step.output.actions.append(.shareGrants(lost)) }
    step.answer(question, .restoring(users: lost.count))
  }

  mutating func reportStaleGrants(_ step: inout Step) {
    let digest = routing.directory.grants.staleDigest
    guard configuration.isClustered, digest != reportedStaleGrants else { return }
    reportedStaleGrants = digest
    step.output.actions.append(.staleGrants(digest))
  }

  /// No user has the number here, but the shared store or another node may know its user.
  func mayBeElsewhere(_ invite: InboundInvite) -> Bool {
    sharesGrants && (mayLackGrants || !hasSharedGrants) && routing.isForUsers(of: invite.trunk)
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
