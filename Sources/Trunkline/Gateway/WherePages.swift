import AppProtocol
import AppServer
import Bytes
import CallFlow
import Cluster
import Control
import Foundation
import Synchronization

/// Who and what is where in the cluster, on the admin port.
///
///     GET /v1/where?user=U              `UserPlaces`: devices and live calls of a user
///     GET /v1/where?call=ID             `CallWhere`: a live call's node and legs, or how it ended
///     GET /v1/cluster/calls?after=P     `ClusterCalls`: live calls of all nodes but the dead, in pages
///
/// The engine is asked by its own thread: calls notice nothing of it. Away, the node answers with what it knows, and says so (`partial`).
struct WherePages: Sendable {
  let inbox: Inbox
  let cluster: ClusterSide?

  /// Nodes that are asked for one call at a time.
  private static let nodesAtOnce = 64

  func find(_ request: AdminRequest, _ answer: @escaping RouteTable.Answer) throws(APIError) {
    guard let cluster else { return answer(NodePages.alone) }
    switch (try request.queryValue("user"), try request.queryValue("call")) {
    case (let user?, nil): find(user, cluster, answer)
    case (nil, let text?):
      guard let call = Identifier(text) else { return answer(APIError(.badRequest, "\(text) is no call's id").response) }
      find(call, cluster, answer)
    default: answer(APIError(.badRequest, "one of user=U and call=ID is missing").response)
    }
  }

  func calls(_ request: AdminRequest, _ answer: @escaping RouteTable.Answer) throws(APIError) {
    guard let cluster else { return answer(NodePages.alone) }
    let after = try request.queryValue("after").map { ClusterCallsReader.Position($0) }
    if case .some(.none) = after {
      return answer(APIError(.badRequest, "after= is not what a page before it gave as next").response)
    }
    let isAsked = inbox.cluster { machine in
      guard let machine else { return answer(NodePages.alone) }
      ClusterCallsReader(machine, after: after ?? nil, ask: { cluster.ask($0, $1) }) { answer(.json(200, $0)) }.read()
    }
    if !isAsked { answer(APIError.busy.response) }
  }

  // MARK: a user

  private func find(_ user: String, _ cluster: ClusterSide, _ answer: @escaping @Sendable (AdminResponse) -> Void) {
    let isAsked = inbox.cluster { [self] machine in
      guard let machine else { return answer(NodePages.alone) }
      let (view, mine) = (ClusterView(machine), machine.ownPlaces(of: user))
      cluster.ask(.locate(user: user, entering: nil)) { [self] result in
        if case .success(.located(let found)) = result {
          return answer(.json(200, UserPlaces(user, found, mine: mine, registered: [], view)))
        }
        let isAsked = inbox.machine { machine in
          let registered = machine.deviceSummaries.filter { $0.user == user && $0.firstSeen != nil }
          answer(.json(200, UserPlaces(user, nil, mine: mine, registered: registered, view)))
        }
        if !isAsked { answer(APIError.busy.response) }
      }
    }
    if !isAsked { answer(APIError.busy.response) }
  }

  // MARK: a call

  func find(_ call: CallID, _ cluster: ClusterSide, _ answer: @escaping @Sendable (AdminResponse) -> Void) {
    let isAsked = inbox.cluster { [self] machine in
      guard let machine else { return answer(NodePages.alone) }
      let view = ClusterView(machine)
      var out = CallWhere(call: call.description, asked: view.own.node, engine: view.state.rawValue, partial: false)
      if let entry = machine.ownEntry(of: call), let own = view.nodes.first {
        out.live = ClusterCall(entry, at: own)
        return answer(.json(200, out))
      }
      look(for: call, at: view.nodes.dropFirst(), out, cluster, answer)
    }
    if !isAsked { answer(APIError.busy.response) }
  }

  /// At the nodes that are left, some at a time, then at what is left of a call that is over.
  private func look(
    for call: CallID, at nodes: ArraySlice<SeenNode>, _ found: CallWhere, _ cluster: ClusterSide,
    _ answer: @escaping @Sendable (AdminResponse) -> Void
  ) {
    let asked = nodes.prefix(Self.nodesAtOnce)
    guard !asked.isEmpty else { return findEnd(of: call, found, cluster, answer) }
    let requests = asked.map { EngineRequest.entry(call, of: $0.lease.incarnation) }
    Answers.all(requests, cluster) { [self] results in
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
      if found.partial { return findEnd(of: call, found, cluster, answer) }
      look(for: call, at: nodes.dropFirst(asked.count), found, cluster, answer)
    }
  }

  private func findEnd(
    of call: CallID, _ found: CallWhere, _ cluster: ClusterSide, _ answer: @escaping @Sendable (AdminResponse) -> Void
  ) {
    Answers.all([.tombstone(of: call), .record(of: call)], cluster) { [self] results in
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
      // this node's own memory has it where the engine has not
      let isAsked = inbox.machine { machine in
        var found = seen
        found.over = found.over ?? machine.over(of: call)
        if found.over != nil || found.record != nil { return answer(.json(200, found)) }
        answer(
          APIError(
            .unknownCall,
            found.partial
              ? "the engine does not answer, and \(found.asked) alone knows nothing of this call"
              : "no node has this call, and nothing is left of its end: search the records"
          ).response)
      }
      if !isAsked { answer(APIError.busy.response) }
    }
  }
}

/// The answers to several questions, in their order.
private final class Answers: Sendable {
  typealias Answer = Result<EngineReply, EngineFailure>
  private let results: Mutex<[Answer?]>
  private let then: @Sendable ([Answer]) -> Void

  private init(_ count: Int, _ then: @escaping @Sendable ([Answer]) -> Void) {
    results = Mutex([Answer?](repeating: nil, count: count))
    self.then = then
  }

  static func all(_ requests: [EngineRequest], _ cluster: ClusterSide, _ then: @escaping @Sendable ([Answer]) -> Void) {
    let answers = Answers(requests.count, then)
    for (index, request) in requests.enumerated() { cluster.ask(request) { answers.add($0, at: index) } }
  }

  private func add(_ answer: Answer, at index: Int) {
    let all = results.withLock { results in
      results[index] = answer
      return results.compactMap(\.self).count == results.count ? results.compactMap(\.self) : nil
    }
    if let all { then(all) }
  }
}
