import AppServer
import CallFlow
import CallModel
import Cluster
import Control
import Foundation
import Synchronization
import TrunklineAppProtocol
import TrunklineBytes

/// Locations of users, devices and calls in the cluster, on the admin port.
///
///     GET /v1/where?user=U              `UserLocations`: devices and live calls of a user
///     GET /v1/where?call=ID             `CallWhere`: a live call's node and legs, or how it ended
///     GET /v1/cluster/calls?after=P     `ClusterCalls`: live calls of all nodes except dead ones, in pages
///
/// The shared store's thread sends the requests, and the thread `pages` decodes the answers, so that calls are not delayed. If
/// the shared store is not connected, the node answers with what it knows itself, and marks the answer (`partial`).
struct LocationHandlers: Sendable {
  let asker: Asker
  let cluster: ClusterComponent?

  /// Nodes whose entries are requested at once for one call.
  private static let nodesAtOnce = 64

  func find(_ request: AdminRequest, _ answer: @escaping AdminRequest.Answer) throws(APIError) {
    guard let cluster else { return answer(NodeHandlers.alone) }
    switch (try request.queryValue("user"), try request.queryValue("call")) {
    case (let user?, nil): find(user, cluster, for: request.client, answer)
    case (nil, let text?):
      guard let call = Identifier(text) else { return answer(APIError(.badRequest, "\(text) is not the id of a call").response) }
      find(call, cluster, for: request.client, answer)
    default: answer(APIError(.badRequest, "give exactly one of user=U and call=ID").response)
    }
  }

  func calls(_ request: AdminRequest, _ answer: @escaping AdminRequest.Answer) throws(APIError) {
    guard let cluster else { return answer(NodeHandlers.alone) }
    let after = try request.queryValue("after").map { ClusterCallsReader.Position($0) }
    if case .some(.none) = after {
      return answer(APIError(.badRequest, "after= must be the next of a previous page").response)
    }
    let (position, client) = (after ?? nil, request.client)
    let part = ClusterCallsReader.part(after: position, at: cluster.machine.incarnation)
    look(part, for: client, answer) { [self] sight in
      ClusterCallsReader(sight, after: position, ask: { ask($0, cluster, for: client, $1) }) { answer(.json(200, $0)) }.read()
    }
  }

  // MARK: requests

  private func look(
    _ part: ClusterPart, for client: String, _ answer: @escaping @Sendable (AdminResponse) -> Void,
    _ then: @escaping @Sendable (ClusterSight) -> Void
  ) {
    asker.ask(.cluster(part), for: client) { found in
      guard case .cluster(let sight)? = found else { return answer(APIError.busy.response) }
      guard let sight else { return answer(NodeHandlers.alone) }
      then(sight)
    }
  }

  /// `then` runs on the asker's thread, not on the shared store's.
  private func ask(
    _ request: SharedStoreRequest, _ cluster: ClusterComponent, for client: String, _ then: @escaping SharedStoreQuestions.Answer
  ) {
    cluster.ask(request) { [asker] result in asker.run(for: client) { then(result) } }
  }

  // MARK: a user

  private func find(
    _ user: String, _ cluster: ClusterComponent, for client: String, _ answer: @escaping @Sendable (AdminResponse) -> Void
  ) {
    look(.locations(user: user), for: client, answer) { [self] sight in
      let (view, mine) = (ClusterView(sight), sight.locations ?? LocatedUser(user))
      ask(.locate(user: user, entering: nil), cluster, for: client) { [self] result in
        if case .success(.located(let found)) = result {
          return answer(.json(200, UserLocations(user, found, mine: mine, registered: [], view)))
        }
        asker.ask(.devices(DeviceFilter(user: user), after: nil), for: client) { found in
          guard case .devices(let page)? = found else { return answer(APIError.busy.response) }
          let registered = page.rows.map(\.summary).filter { $0.firstSeen != nil }
          answer(.json(200, UserLocations(user, nil, mine: mine, registered: registered, view)))
        }
      }
    }
  }

  // MARK: a call

  func find(
    _ call: CallID, _ cluster: ClusterComponent, for client: String, _ answer: @escaping @Sendable (AdminResponse) -> Void
  ) {
    look(.entry(call), for: client, answer) { [self] sight in
      let view = ClusterView(sight)
      var out = CallWhere(call: call.description, asked: view.own.node, sharedStore: view.state.rawValue, partial: false)
      if let entry = sight.entries.first, let own = view.nodes.first {
        out.live = ClusterCall(entry, at: own)
        return answer(.json(200, out))
      }
      look(for: call, at: view.nodes.dropFirst(), found: out, cluster: cluster, client: client, answer)
    }
  }

  /// Searches the remaining nodes, some at a time, then the tombstone and the record of an ended call.
  private func look(
    for call: CallID, at nodes: ArraySlice<SeenNode>, found: CallWhere, cluster: ClusterComponent, client: String,
    _ answer: @escaping @Sendable (AdminResponse) -> Void
  ) {
    let asked = nodes.prefix(Self.nodesAtOnce)
    guard !asked.isEmpty else { return findEnd(of: call, found: found, cluster: cluster, client: client, answer) }
    let requests = asked.map { SharedStoreRequest.entry(call, of: $0.lease.incarnation) }
    Answers.all(requests, { ask($0, cluster, for: client, $1) }) { [self] results in
      var found = found
      for (node, result) in zip(asked, results) {
        guard case .success(.entries(let entries, _, _)) = result else {
          found.partial = true
          continue
        }
        if let entry = entries.first, found.live == nil { found.live = ClusterCall(entry, at: node) }
      }
      if found.live != nil {
        found.partial = false
        return answer(.json(200, found))
      }
      if found.partial { return findEnd(of: call, found: found, cluster: cluster, client: client, answer) }
      look(for: call, at: nodes.dropFirst(asked.count), found: found, cluster: cluster, client: client, answer)
    }
  }

  private func findEnd(
    of call: CallID, found: CallWhere, cluster: ClusterComponent, client: String,
    _ answer: @escaping @Sendable (AdminResponse) -> Void
  ) {
    Answers.all([.tombstone(of: call), .record(of: call)], { ask($0, cluster, for: client, $1) }) { [self] results in
      var found = found
      for result in results {
        switch result {
        case .success(.tombstone(let tombstone, _)): found.over = tombstone?.over
        case .success(.record(let line)):
          found.record = line.flatMap { try? JSONDecoder().decode(CallRecord.self, from: Data($0)) }
        default: found.partial = true
        }
      }
      let seen = found
      // this node's own memory may have it if the shared store has not
      asker.ask(.over(call), for: client) { own in
        guard case .over(let over)? = own else { return answer(APIError.busy.response) }
        var found = seen
        found.over = found.over ?? over
        if found.over != nil || found.record != nil { return answer(.json(200, found)) }
        answer(
          APIError(
            .unknownCall,
            found.partial
              ? "the shared store does not answer, and \(found.asked) has no data of this call"
              : "no node has this call, and its end is no longer stored: search the records"
          ).response)
      }
    }
  }
}

/// The answers to several requests, in their order.
private final class Answers: Sendable {
  typealias Answer = Result<SharedStoreReply, SharedStoreFailure>
  private let results: Mutex<[Answer?]>
  private let then: @Sendable ([Answer]) -> Void

  private init(_ count: Int, _ then: @escaping @Sendable ([Answer]) -> Void) {
    results = Mutex([Answer?](repeating: nil, count: count))
    self.then = then
  }

  static func all(
    _ requests: [SharedStoreRequest], _ ask: SharedStoreQuestions.Ask, _ then: @escaping @Sendable ([Answer]) -> Void
  ) {
    let answers = Answers(requests.count, then)
    for (index, request) in requests.enumerated() { ask(request) { answers.add($0, at: index) } }
  }

  private func add(_ answer: Answer, at index: Int) {
    let all = results.withLock { results in
      results[index] = answer
      return results.compactMap(\.self).count == results.count ? results.compactMap(\.self) : nil
    }
    if let all { then(all) }
  }
}
