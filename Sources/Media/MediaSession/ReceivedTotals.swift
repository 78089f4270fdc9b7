import TrunklineRTP

/// What was received from one leg's peer.
struct ReceivedTotals {
  /// Octets of payload.
  private(set) var payloadBytes: UInt64 = 0
  /// Packets that were refused.
  private(set) var dropped: UInt64 = 0
  /// Duration of the last audio packet.
  private(set) var packetMilliseconds = Double(Frame.milliseconds)

  @inline(__always) mutating func received(payloadBytes count: Int) { payloadBytes &+= UInt64(count) }
  @inline(__always) mutating func audioReceived(milliseconds: Double) { packetMilliseconds = milliseconds }
  mutating func packetDropped() { dropped &+= 1 }
}
