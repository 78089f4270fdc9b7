import Bytes

/// Whether what each end of an app's leg sends arrives at the other, by the numbers of the peer's RTCP reports (RFC 3550 §6.4.1): they come the
/// way that works, and say that the other does not. A pause moves no number, so that it is no silence.
struct OneWayWatch {
  private struct Reading {
    var sent: UInt64
    var arrived: UInt64
    var at: Instant
  }
  private var fromPeer: Reading?
  private var toPeer: Reading?

  /// A sender report: the peer has sent so many packets, and so many of its packets have come.
  /// - Returns: none has come for `Limits.oneWayTime`, in which `Limits.oneWayPackets` and more were sent.
  mutating func peerHasSent(_ packets: UInt32, arrived: UInt64, at now: Instant) -> Bool {
    Self.isStuck(&fromPeer, Reading(sent: UInt64(packets), arrived: arrived, at: now))
  }

  /// A report block about our stream: its highest number (extended) so far, and how many packets we have sent.
  mutating func peerHasReceived(_ highest: UInt32, sent: UInt64, at now: Instant) -> Bool {
    Self.isStuck(&toPeer, Reading(sent: sent, arrived: UInt64(highest), at: now))
  }

  private static func isStuck(_ last: inout Reading?, _ new: Reading) -> Bool {
    // where nothing is sent, nothing can arrive
    guard let since = last, since.arrived == new.arrived, new.sent > since.sent else {
      last = new
      return false
    }
    guard new.sent - since.sent >= Limits.oneWayPackets, new.at - since.at >= Limits.oneWayTime else { return false }
    // Told again, if it lasts, after as much time.
    last = new
    return true
  }
}
