public import CallModel
public import TrunklineBytes

/// The part of the cluster that a query requests besides the nodes.
public enum ClusterPart: Hashable, Sendable {
  case nodes
  /// Devices and calls of a user at this node.
  case locations(user: String)
  /// A call of this node.
  case entry(CallID)
  /// Calls of this node after the given one, in the order of their ids; nil: from the first.
  case entries(after: CallID?)
}

/// The cluster as this node sees it: a value that the machine's owner copies for a query.
public struct ClusterSight: Sendable {
  public var settings: ClusterMachine.Settings
  /// The connection of this node to the shared store.
  public var state: SharedStoreState
  /// Time since this node's lease was renewed last; nil: it never was.
  public var leaseAge: Duration?
  public var leads: Set<SingleTask>
  /// This one first, the others in any order.
  public var nodes: [SeenNode]
  /// For `ClusterPart.locations`.
  public var locations: LocatedUser?
  /// For `ClusterPart.entry` and `.entries`.
  public var entries: [CallEntry] = []

  /// By name, this one first. O(n log n), on the caller's thread.
  public var sortedNodes: [SeenNode] {
    Array(nodes.prefix(1)) + nodes.dropFirst().sorted { $0.lease.incarnation < $1.lease.incarnation }
  }
}

extension ClusterMachine {
  /// An upper bound of the number of known nodes. O(1).
  public var mostNodes: Int { 2 + peers.count + suspects.count }

  /// - Parameters:
  ///   - most: the most entries for `ClusterPart.entries`.
  ///   - known: a recent list of the nodes, where there are too many to collect them for each query; nil: they are collected.
  public func sight(_ part: ClusterPart, most: Int, nodes known: [SeenNode]? = nil, at now: Instant) -> ClusterSight {
    var sight = ClusterSight(
      settings: settings, state: state, leaseAge: leaseAge(at: now), leads: leads, nodes: known ?? unsortedNodes)
    switch part {
    case .nodes: break
    case .locations(let user): sight.locations = ownLocations(of: user)
    case .entry(let call): sight.entries = ownEntry(of: call).map { [$0] } ?? []
    case .entries(let last): sight.entries = ownEntries(after: last, most: most)
    }
    return sight
  }
}
