import SRTP

/// Where a relayed packet's way leads beyond the first lines of its session: addresses to be fetched before the packet's turn comes,
/// never to be read through. They hold until the next command or handshake; older ones do no harm.
public struct FarMemory: Sendable {
  /// The leg that has the call, what is known of both directions of its keys, and both halves of the session.
  public fileprivate(set) var leg: UInt = 0
  public fileprivate(set) var keys = SRTPPlaces(), otherKeys = SRTPPlaces()
  public fileprivate(set) var downlink: UInt = 0, uplink: UInt = 0
  public init() {}
}

extension MediaSession {
  /// For the session where it lies now: it must not be moved.
  public mutating func farMemory() -> FarMemory {
    var far = FarMemory()
    far.downlink = withUnsafePointer(to: &downlink) { UInt(bitPattern: $0) }
    far.uplink = withUnsafePointer(to: &uplink) { UInt(bitPattern: $0) }
    guard hasLeg(winner) else { return far }
    far.leg = UInt(bitPattern: legs + winner)
    far.keys = legs[winner].security?.sender.places ?? SRTPPlaces()
    far.otherKeys = legs[winner].security?.receiver.places ?? SRTPPlaces()
    return far
  }
}
