import CallFlow
import Cluster
import Foundation
import TrunklineBytes

/// Reads one page of the cluster's live calls: this node's from its own memory, other nodes' from the shared store, node after
/// node.
///
///     asker.ask(.cluster(ClusterCallsReader.part(after: position, at: own)), for: client) { … }
///     ClusterCallsReader(sight, after: position, ask: { cluster.ask($0, $1) }) { page in … }.read()
///
/// Bounded: a page has `calls` rows or a few more (the count of a scan of the shared store is not exact), and costs `readings`
/// requests to the shared store at most. A call that begins or ends meanwhile may be in no page or, if the shared store returns
/// it twice, in two.
final class ClusterCallsReader: Sendable {
  /// Where a page begins: a node's incarnation, and how far its calls were read.
  struct Position: Sendable, Equatable {
    var incarnation: Incarnation
    /// Of another node: the shared store's cursor. Of the answering one: the id of the last call.
    var rest: String

    init(_ incarnation: Incarnation, _ rest: String) { (self.incarnation, self.rest) = (incarnation, rest) }

    init?(_ text: String) {
      let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
      guard parts.count == 2, let incarnation = Incarnation(String(parts[0])),
        parts[1].isEmpty || UInt64(parts[1]) != nil || Identifier(parts[1]) != nil
      else { return nil }
      self.init(incarnation, String(parts[1]))
    }

    var text: String { "\(incarnation):\(rest)" }
  }
  static let calls = 100
  static let readings = 64

  private let view: ClusterView
  /// In the order of their names, without dead nodes: their calls are being closed.
  private let nodes: [SeenNode]
  private let start: Position?
  private let own: [CallEntry]
  private let ask: SharedStoreQuestions.Ask
  private let done: @Sendable (ClusterCalls) -> Void

  /// The part that the node itself reads: its calls after the position, or all if the position is at another node.
  static func part(after position: Position?, at own: Incarnation) -> ClusterPart {
    .entries(after: position.flatMap { $0.incarnation == own ? Identifier($0.rest) : nil })
  }

  /// - Parameter sight: the answer to `part`.
  init(
    _ sight: ClusterSight, after position: Position?, ask: @escaping SharedStoreQuestions.Ask,
    _ done: @escaping @Sendable (ClusterCalls) -> Void
  ) {
    let view = ClusterView(sight)
    (self.view, self.ask, start, self.done) = (view, ask, position, done)
    nodes = view.nodes.filter { $0.liveness != .dead }.sorted { $0.lease.incarnation < $1.lease.incarnation }
    let isBehind = position.map { view.own < $0.incarnation } ?? false
    own = isBehind ? [] : Array(sight.entries.prefix(Self.calls + 1))
  }

  func read() {
    let page = ClusterCalls(asked: view.own.node, sharedStore: view.state.rawValue, partial: false, calls: [])
    // if the incarnation has ended meanwhile, continue with the next one
    let index = start.map { start in nodes.firstIndex { $0.lease.incarnation >= start.incarnation } ?? nodes.count } ?? 0
    let isThere = index < nodes.count && nodes[index].lease.incarnation == start?.incarnation
    read(index, from: isThere ? start.flatMap { UInt64($0.rest) } ?? 0 : 0, into: page, readings: 0)
  }

  private func read(_ index: Int, from cursor: UInt64, into page: ClusterCalls, readings: Int) {
    var page = page
    guard index < nodes.count else { return done(page) }
    let node = nodes[index]
    if node.lease.incarnation == view.own {
      let room = max(0, Self.calls - page.calls.count)
      page.calls += own.prefix(room).map { ClusterCall($0, at: node) }
      if own.count > room {
        page.next = Position(view.own, room > 0 ? own[room - 1].line.call.description : "").text
        return done(page)
      }
      return read(index + 1, from: 0, into: page, readings: readings)
    }
    guard page.calls.count < Self.calls, readings < Self.readings else {
      page.next = Position(node.lease.incarnation, "\(cursor)").text
      return done(page)
    }
    let seen = page
    ask(.entries(of: node.lease.incarnation, cursor: cursor)) { [self] result in
      var page = seen
      guard case .success(.entries(let entries, let next, _)) = result else {
        // this node's calls are known even if other nodes' cannot be read
        page.partial = true
        let mine = nodes[index...].firstIndex { $0.lease.incarnation == view.own }
        page.calls +=
          mine.map { at in own.prefix(max(0, Self.calls - page.calls.count)).map { ClusterCall($0, at: nodes[at]) } } ?? []
        return done(page)
      }
      page.calls += entries.map { ClusterCall($0, at: node) }
      read(next == 0 ? index + 1 : index, from: next, into: page, readings: readings + 1)
    }
  }
}
