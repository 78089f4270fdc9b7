import AppProtocol
import AppSessions
import Bytes
import JSONWebToken
import SIPDialogs

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
      share(changes.compactMap { if case .stored(let entry) = $0 { SharedGrant(entry) } else { nil } }, &step)
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

  /// Whether grants of one node hold at all nodes.
  var sharesGrants: Bool { configuration.isClustered && routing.directory.grantRules != nil }

  private func share(_ grants: [SharedGrant], _ step: inout Step) {
    if sharesGrants, !grants.isEmpty { step.output.actions.append(.shareGrants(grants)) }
  }

  /// Applies the grants of other nodes.
  mutating func merge(_ grants: SharedGrants, _ step: inout Step) {
    let merged = routing.directory.grants.merge(grants.rows, routing.directory.grantRules, at: step.wallNow)
    granted(merged.stored, &step)
    share(merged.shared, &step)
    guard let known = grants.known else { return }
    hasSharedGrants = true
    share(routing.directory.grants.missing(in: known), &step)
  }

  /// Removes the user's grant at all nodes. Returns how many were removed here.
  mutating func forgetGrants(of user: String, _ step: inout Step) -> Int {
    let issuedAt = max(step.wallNow, routing.directory.grants[user]?.issuedAt ?? 0)
    let removed = routing.directory.grants.remove(user)
    granted(removed, &step)
    share([SharedGrant(user: user, grant: nil, issuedAt: issuedAt, seen: step.wallNow)], &step)
    return removed.count
  }

  /// No user has the number here, but the grants of other nodes were not read yet.
  func mayBeElsewhere(_ invite: InboundInvite) -> Bool {
    sharesGrants && !hasSharedGrants && routing.isForUsers(of: invite.trunk)
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
