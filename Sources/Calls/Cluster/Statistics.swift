/// What a cluster machine counts. All are since the start of the process.
public struct ClusterStatistics: Hashable, Sendable {
  public enum Outcome: String, Hashable, Sendable, CaseIterable {
    /// Only devices here, or none that is connected.
    case here
    /// Redirected to the node of its devices or calls.
    case steered
    /// Taken here, with devices elsewhere that are woken.
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
  /// Too long, no shared store, an unknown node; or for a device that is not here any more.
  public var wakesDropped: UInt64 = 0
  public var reaped: [ReapedKind: UInt64] = [:]
  /// Calls of ours that others closed.
  public var reapedByOthers: UInt64 = 0
  /// Whereabouts and call places of dead or unknown incarnations, or of our own that we do not have.
  public var hintsDropped: UInt64 = 0
  /// Values that could not be read.
  public var valuesDropped: UInt64 = 0
  /// Messages that were none, from nodes without a lease, or of a session that is not here.
  public var messagesDropped: UInt64 = 0
  public var trunkRefusals: UInt64 = 0
  public var userRefusals: UInt64 = 0
  /// Requests by how they failed.
  public var timeouts: UInt64 = 0
  public var failures: UInt64 = 0
  /// The shared store had lost what it held, while this node was connected.
  public var flushes: UInt64 = 0
  /// Of login tokens, from and to the shared store.
  public var grantsRead: UInt64 = 0
  public var grantsPut: UInt64 = 0
  /// What was not written at once and was put back later.
  public var restored: UInt64 = 0
  /// What did not fit into the tables of what has to be put back.
  public var forgotten: UInt64 = 0
  public init() {}
}
