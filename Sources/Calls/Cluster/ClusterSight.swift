public import Bytes
public import CallFlow

/// What of the cluster somebody wants to see beside the nodes.
public enum ClusterPart: Hashable, Sendable {
  case nodes
  /// Devices and calls of a user at this node.
  case locations(user: String)
  /// A call of this node.
  case entry(CallID)
  /// Calls of this node behind one, in the order of their ids; nil: from the first.
  case entries(after: CallID?)
}

/// The cluster as this node sees it: a value that its owner copies, for whoever asks.
public struct ClusterSight: Sendable {
  public var settings: ClusterMachine.Settings
  /// How this node stands to the shared store.
  public var state: SharedStoreState
  /// Since its lease was renewed last; nil: it never was.
  public var leaseAge: Duration?
  public var leads: Set<SingleTask>
  /// This one first, the others in any order.
  public var nodes: [SeenNode]
  /// Of `ClusterPart.locations`.
  public var locations: LocatedUser?
  /// Of `ClusterPart.entry` and `.entries`.
  public var entries: [CallEntry] = []

  /// By name, this one first. O(n log n), for who asked.
  public var sortedNodes: [SeenNode] {
    Array(nodes.prefix(1)) + nodes.dropFirst().sorted { $0.lease.incarnation < $1.lease.incarnation }
  }
}

extension ClusterMachine {
  /// Nodes that are known, or a few more. O(1).
  public var mostNodes: Int { 2 + peers.count + suspects.count + reaped.count }

  /// - Parameters:
  ///   - most: entries of `ClusterPart.entries`.
  ///   - known: the nodes as they were a moment ago, where there are too many to be gathered for one question; nil: they are gathered.
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

/// The place of a call among those that are in the shared store.
struct EntryKey: Hashable, Comparable, Sendable {
  let call: CallID
  init(_ call: CallID) { self.call = call }

  static func < (a: EntryKey, b: EntryKey) -> Bool { (a.call.high, a.call.low) < (b.call.high, b.call.low) }
}
