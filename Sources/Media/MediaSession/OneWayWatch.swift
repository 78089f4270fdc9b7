import TrunklineBytes

/// Detects that packets of an app's leg do not arrive in one direction, from the numbers of the peer's RTCP reports (RFC 3550
/// §6.4.1), which arrive through the other direction. In a pause no number changes, so a pause does not count as silence.
struct OneWayWatch {
  private struct Reading {
    var sent: UInt64
    var arrived: UInt64
    var at: Instant
  }
  private var fromPeer: Reading?
  private var toPeer: Reading?

  /// Evaluates a sender report: the packets that the peer has sent, and how many of them have arrived.
  /// - Returns: true if none arrived for `Limits.oneWayTime` while `Limits.oneWayPackets` or more were sent.
  mutating func peerHasSent(_ packets: UInt32, arrived: UInt64, at now: Instant) -> Bool {
    Self.isStuck(&fromPeer, Reading(sent: UInt64(packets), arrived: arrived, at: now))
  }

  /// Evaluates a report block about our stream: its highest number (extended) so far, and how many packets we have sent.
  mutating func peerHasReceived(_ highest: UInt32, sent: UInt64, at now: Instant) -> Bool {
    Self.isStuck(&toPeer, Reading(sent: sent, arrived: UInt64(highest), at: now))
  }

  private static func isStuck(_ last: inout Reading?, _ new: Reading) -> Bool {
    // if nothing is sent, nothing can arrive
    guard let since = last, since.arrived == new.arrived, new.sent > since.sent else {
      last = new
      return false
    }
    guard new.sent - since.sent >= Limits.oneWayPackets, new.at - since.at >= Limits.oneWayTime else { return false }
    // Reported again, if it lasts, after the same time.
    last = new
    return true
  }
}
