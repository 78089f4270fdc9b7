/// Counters of a cluster machine, since the start of the process.
public struct ClusterStatistics: Hashable, Sendable {
  public enum Outcome: String, Hashable, Sendable, CaseIterable {
    /// Only devices here, or none that is connected.
    case here
    /// Redirected to the node of its devices or calls.
    case steered
    /// Accepted here, with devices elsewhere that are woken.
    case elsewhere
    /// The shared store did not answer in time.
    case unknown
    case refused
  }
  public enum ReapedKind: String, Hashable, Sendable, CaseIterable { case ringing, connected, inherited }

  public var locates: [Outcome: UInt64] = [:]
  /// `call.start`s.
  public var claims: [Outcome: UInt64] = [:]
  /// `hello`s that were completed without the shared store.
  public var blindWelcomes: UInt64 = 0
  /// Wakes that were too long, had no shared store or an unknown node, or were for a device that is no longer connected here.
  public var wakesDropped: UInt64 = 0
  public var reaped: [ReapedKind: UInt64] = [:]
  /// Calls of this node that other nodes closed.
  public var reapedByOthers: UInt64 = 0
  /// Locations of devices and calls at dead or unknown incarnations, or at this node, which does not have them.
  public var hintsDropped: UInt64 = 0
  /// Values that could not be decoded.
  public var valuesDropped: UInt64 = 0
  /// Messages that could not be decoded, came from nodes without a lease, or concern a session that is not here.
  public var messagesDropped: UInt64 = 0
  public var trunkRefusals: UInt64 = 0
  public var userRefusals: UInt64 = 0
  /// Failed requests, by kind of failure.
  public var timeouts: UInt64 = 0
  public var failures: UInt64 = 0
  /// Times the shared store lost its data while this node was connected.
  public var flushes: UInt64 = 0
  /// Rows of grants read from and written to the shared store.
  public var grantsRead: UInt64 = 0
  public var grantsPut: UInt64 = 0
  /// Deferred writes that were sent.
  public var restored: UInt64 = 0
  /// Writes, grants and suspects dropped because their tables were full.
  public var forgotten: UInt64 = 0
  public init() {}
}
