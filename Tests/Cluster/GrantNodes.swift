import AppSessions
import Cluster
import JSONWebToken
import MemorySharedStore
import Testing
import TrunklineBytes

@testable import CallFlow
@testable import CallModel

/// Nodes with the grants that their call machines would have.
final class GrantNodes {
  let world: ClusterWorld
  var grants: [UserGrants]
  /// Users with a session at the node.
  var sessions: [Set<String>]
  var pages: [Int]
  /// Users of the largest step at the node.
  var largest: [Int]
  /// Answers to `restoreLost`.
  private(set) var answers: [OperationAnswer] = []
  private var restoring: [GrantRestoring]
  /// Nodes whose copy may lack grants.
  private(set) var uncertain: Set<Int> = []
  private var reported: [UInt64]
  private static let rules = GrantRules(numbers: ["+"])

  init(_ count: Int, seed: UInt64 = 1) {
    world = ClusterWorld(nodes: count, seed: seed)
    grants = Array(repeating: UserGrants(), count: count)
    sessions = Array(repeating: [], count: count)
    pages = Array(repeating: 0, count: count)
    largest = Array(repeating: 0, count: count)
    restoring = Array(repeating: GrantRestoring(), count: count)
    reported = Array(repeating: 0, count: count)
    world.onAction = { [unowned self] logged in
      switch logged.action {
      case .grants(let told): world.after(.zero) { [unowned self] in take(told, logged.node) }
      case .grantsRestored(let users, let hasFailed):
        world.after(.zero) { [unowned self] in restored(users, hasFailed, logged.node) }
      case .grantsUncertain(true): uncertain.insert(logged.node)
      case .grantsUncertain(false): uncertain.remove(logged.node)
      default: return false
      }
      return true
    }
    for node in 0..<count { world.input(node, .sharesGrants(true)) }
  }

  private func take(_ told: SharedGrants, _ node: Int) {
    pages[node] += 1
    switch told {
    case .comparison(let known):
      grants[node].beginComparison(known)
      restoring[node].compared()
      compare(node)
    case .comparisonStep: compare(node)
    case .rows(let rows, _):
      largest[node] = max(largest[node], rows.count)
      _ = grants[node].apply(rows, Self.rules, at: 0)
    }
    report(node)
  }

  private func compare(_ node: Int) {
    let stale = grants[node].compareNext(most: CallModel.Limits.grantsPerStep, at: 0).stale
    let ours = stale.filter(sessions[node].contains).compactMap { grants[node].unshared($0, after: []) }
    if !ours.isEmpty { world.input(node, .grants(ours)) }
    if !grants[node].isComparing { world.input(node, .grantsCompared) }
  }

  private func report(_ node: Int) {
    guard !grants[node].isComparing, grants[node].staleDigest != reported[node] else { return }
    reported[node] = grants[node].staleDigest
    world.input(node, .staleGrants(reported[node]))
  }

  /// An operator's `users restore` at the node.
  func restoreLost(_ node: Int) {
    guard restoring[node].begin(QuestionID(1)) else { return answers.append(.restoring(users: restoring[node].users)) }
    world.input(node, .restoreGrants([]))
  }

  private func restored(_ users: Int, _ hasFailed: Bool, _ node: Int) {
    if hasFailed {
      if restoring[node].failed(users) != nil { answers.append(.restoreFailed(users: restoring[node].users)) }
      return
    }
    let (batch, answered) = restoring[node].confirmed(users, grants[node])
    if !batch.isEmpty { world.input(node, .restoreGrants(batch)) }
    if answered != nil { answers.append(.restored(users: restoring[node].users)) }
  }

  func token(_ node: Int, _ user: String, _ numbers: [String], _ issuedAt: Int64) {
    let grant = TokenGrant(numbers: numbers, issuedAt: issuedAt)
    guard let changes = try? grants[node].accept(grant, of: user, at: 0) else { return }
    sessions[node].insert(user)
    if let unshared = grants[node].unshared(user, after: changes) { world.input(node, .grants([unshared])) }
  }
  func erase(_ node: Int, _ user: String, at: Int64) {
    _ = grants[node].remove(user)
    report(node)
    world.input(node, .grants([SharedGrant(user: user, grant: nil, issuedAt: at, seen: 0)]))
  }
  /// A new process of the node, which loads what its store held.
  func restart(_ node: Int) {
    world.kill(node)
    restoring[node] = GrantRestoring()
    grants[node].comparison = nil
    sessions[node] = []
    uncertain.remove(node)
    world.restart(node)
    world.input(node, .sharesGrants(true))
    reported[node] = 0
    report(node)
  }
  func expectSame(_ location: SourceLocation = #_sourceLocation) {
    let sharedStore = world.sharedStore.store.grantRows.compactMapValues(\.grant)
    for node in grants {
      #expect(node.entries.mapValues(\.grant) == sharedStore, sourceLocation: location)
      #expect(node.stale.isEmpty, sourceLocation: location)
    }
    #expect(uncertain.isEmpty, sourceLocation: location)
    for node in world.nodes { #expect(node.machine.unwritten == 0, sourceLocation: location) }
  }
  /// A number has one user: in the shared store, and at each node.
  func expectOneUser(_ location: SourceLocation = #_sourceLocation) {
    let numbers = world.sharedStore.store.grantRows.values.flatMap(\.canonicalNumbers)
    #expect(Set(numbers).count == numbers.count, sourceLocation: location)
    for node in grants {
      #expect(node.owners.count == node.entries.values.reduce(0) { $0 + $1.grant.numbers.count }, sourceLocation: location)
    }
  }
}
