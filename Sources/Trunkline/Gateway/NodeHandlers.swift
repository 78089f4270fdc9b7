import AppServer
import CallFlow
import Cluster
import Control
import Glibc
import TrunklinePlatform

/// A node of the cluster on the admin port.
struct NodeRow: Codable, Sendable {
  var node: String
  /// This node is the one that answers.
  var own: Bool
  var liveness: String
  /// Milliseconds since 1970, by the node's clock.
  var started: Int64
  var url: String
  var sip: String
  var calls: Int
  var sessions: Int
  var version: String
  /// Its shared configuration differs from this node's.
  var differs: Bool
}

/// This node in its cluster.
struct ClusterStatus: Codable, Sendable {
  /// The state of this node's connection to the shared store: away, isolated or up.
  var state: String
  /// Milliseconds since its lease was last renewed; nil: it never was.
  var leaseAgeMs: Int64?
  /// Single tasks that it does for all nodes.
  var leads: [String]
  var nodes: [NodeRow]
}

/// Nodes on the admin port.
///
///     GET  /v1/nodes                 `ClusterStatus`, this node first
///     GET  /v1/nodes/NAME            one node, `NodeRow`
///     POST /v1/nodes/NAME/drain      for the answering node: no new calls, and it ends with the last one, as after SIGTERM
///     POST /v1/nodes/NAME/forget     an operator states that it is dead: its calls are closed. Refused while it has a lease
///     POST /v1/grants/restore        {"users":12}: what login tokens granted and the shared store has lost was written from this node's copy
struct NodeHandlers: Sendable {
  let asker: Asker

  func list(_ request: AdminRequest, _ answer: @escaping AdminRequest.Answer) { ask(request, answer) { answer(.json(200, $0)) } }

  func show(_ request: AdminRequest, _ answer: @escaping AdminRequest.Answer) {
    node(request, answer) { answer(.json(200, $0)) }
  }

  func drain(_ request: AdminRequest, _ answer: @escaping AdminRequest.Answer) {
    node(request, answer) { node in
      guard node.own else {
        return answer(APIError(.badState, "\(node.node) is another node: send the request to its own admin port").response)
      }
      _ = Glibc.kill(getpid(), SIGTERM)
      answer(.text(202, "draining: no new calls, the process ends with the last one"))
    }
  }

  func forget(_ request: AdminRequest, _ answer: @escaping AdminRequest.Answer) {
    node(request, answer) { [asker] node in
      let isLiving = ["living", "draining"].contains(node.liveness)
      guard !node.own, !isLiving else {
        return answer(APIError(.badState, "\(node.node) has a valid lease: stop its process first").response)
      }
      asker.ask(.operation(.forgetNode(node.node)), for: request.client) { done in
        answer(done == nil ? APIError.busy.response : .text(202, "forgotten: its calls are closed"))
      }
    }
  }

  func restoreGrants(_ request: AdminRequest, _ answer: @escaping AdminRequest.Answer) {
    struct Body: Encodable { var users: Int }
    ask(request, answer) { [asker] status in
      guard status.state == SharedStoreState.up.rawValue else {
        return answer(APIError(.overload, "the shared store does not answer or accepts no writes; nothing was written").response)
      }
      asker.ask(.operation(.restoreGrants), for: request.client) { done in
        switch done {
        case .operation(.restored(let users))?: answer(.json(200, Body(users: users)))
        case .operation(.restoring(let users))?:
          answer(
            APIError(.badState, "an earlier request is writing grants: those of \(users) users so far; wait for it").response)
        case .operation(.restoreFailed(let users))?:
          let text =
            "the shared store stopped answering or accepting writes: the grants of \(users) users were written; send the request again"
          answer(APIError(.overload, text).response)
        default: answer(APIError.busy.response)
        }
      }
    }
  }

  static let alone = APIError(.unknownPage, "this gateway is not in a cluster: its configuration has no cluster.shared_store")
    .response
  private static let unknown = APIError(.unknownNode, "no such node was seen").response

  private func node(
    _ request: AdminRequest, _ answer: @escaping AdminRequest.Answer, _ then: @escaping @Sendable (NodeRow) -> Void
  ) {
    let name = request.argument("node")
    ask(request, answer) { status in
      guard let node = status.nodes.first(where: { $0.node == name }) else { return answer(Self.unknown) }
      then(node)
    }
  }

  private func ask(
    _ request: AdminRequest, _ answer: @escaping AdminRequest.Answer, _ then: @escaping @Sendable (ClusterStatus) -> Void
  ) {
    asker.ask(.cluster(.nodes), for: request.client) { found in
      guard case .cluster(let sight)? = found else { return answer(APIError.busy.response) }
      guard let sight else { return answer(Self.alone) }
      then(ClusterStatus(sight))
    }
  }
}

extension ClusterStatus {
  init(_ sight: ClusterSight) {
    let own = sight.settings
    state = sight.state.rawValue
    leaseAgeMs = sight.leaseAge?.milliseconds
    leads = sight.leads.map(\.description).sorted()
    nodes = sight.sortedNodes.map { seen in
      NodeRow(
        node: seen.lease.incarnation.node, own: seen.lease.incarnation == own.incarnation, liveness: seen.liveness.rawValue,
        started: seen.lease.incarnation.started, url: seen.lease.url, sip: seen.lease.sip, calls: seen.lease.calls,
        sessions: seen.lease.sessions, version: seen.lease.version,
        // the configuration of a node without a lease is unknown
        differs: [.living, .draining].contains(seen.liveness) && seen.lease.configuration != own.configuration)
    }
  }
}
