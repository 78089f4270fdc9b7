import SRTP

/// Where a relayed packet's way leads beyond the first lines of its session: addresses to be fetched before the packet's turn comes,
/// never to be read through. They hold until the next command or handshake; older ones do no harm.
public struct PrefetchTargets: Sendable {
  /// The leg that has the call, what is known of both directions of its keys, and both halves of the session.
  public fileprivate(set) var leg: UInt = 0
  public fileprivate(set) var keys = SRTPPrefetchTargets(), otherKeys = SRTPPrefetchTargets()
  public fileprivate(set) var downlink: UInt = 0, uplink: UInt = 0
  public init() {}
}

extension MediaSession {
  /// For the session where it lies now: it must not be moved.
  public mutating func prefetchTargets() -> PrefetchTargets {
    var targets = PrefetchTargets()
    targets.downlink = withUnsafePointer(to: &downlink) { UInt(bitPattern: $0) }
    targets.uplink = withUnsafePointer(to: &uplink) { UInt(bitPattern: $0) }
    guard hasLeg(winner) else { return targets }
    targets.leg = UInt(bitPattern: legs + winner)
    targets.keys = legs[winner].security?.sender.prefetchTargets ?? SRTPPrefetchTargets()
    targets.otherKeys = legs[winner].security?.receiver.prefetchTargets ?? SRTPPrefetchTargets()
    return targets
  }
}
