import TrunklineBytes
import TrunklinePlatform
import TrunklineRTP

/// Sends one RTP stream through a configurable network impairment.
struct RTPSender {
  /// Packets made, dropped by the impairment, and refused by the kernel.
  private(set) var sent: UInt64 = 0, withheld: UInt64 = 0, unsent: UInt64 = 0
  var impairment: Impairment
  /// The timestamp of the next packet.
  var timestamp: UInt32
  private var sequence: UInt16
  private let ssrc: UInt32
  private let socket: UDPSocket
  private var delayed: [(at: Instant, packet: [UInt8])] = []

  init(_ socket: UDPSocket, impairment: Impairment = Impairment(), random: RandomSource) {
    (self.socket, self.impairment) = (socket, impairment)
    sequence = UInt16(truncatingIfNeeded: random.next())
    timestamp = UInt32(truncatingIfNeeded: random.next())
    ssrc = UInt32(truncatingIfNeeded: random.next())
  }

  /// The stream's next packet. `lag`: how far its timestamp is before `timestamp`.
  mutating func makePacket(_ payload: [UInt8], payloadType: UInt8, marker: Bool, lag: Int = 0) -> [UInt8] {
    var packet = [UInt8](repeating: 0, count: 12 + payload.count)
    let header = RTPHeader(
      payloadType: payloadType, marker: marker, sequence: SequenceNumber(raw: sequence),
      timestamp: RTPTimestamp(raw: timestamp).advanced(by: -lag), ssrc: SSRC(raw: ssrc))
    var room = packet.mutableSpan
    _ = header.write(into: &room)
    packet.replaceSubrange(12..., with: payload)
    sequence &+= 1
    sent += 1
    return packet
  }

  /// Sends at once, later (`sendDelayed`) or not at all, as the impairment decides.
  mutating func send(_ packet: [UInt8], to remote: SocketAddress, at now: Instant) {
    if impairment.isNone { return transmit(packet, remote) }
    guard let delay = impairment.next() else { return withheld += 1 }
    if delay <= .zero { transmit(packet, remote) } else { delayed.append((now + delay, packet)) }
  }

  /// Sends the packets that are due by now.
  mutating func sendDelayed(to remote: SocketAddress, at now: Instant) {
    guard !delayed.isEmpty else { return }
    for entry in delayed.filter({ $0.at <= now }).sorted(by: { $0.at < $1.at }) { transmit(entry.packet, remote) }
    delayed.removeAll { $0.at <= now }
  }

  // A packet for an unreachable port shows as loss in the reports.
  private mutating func transmit(_ packet: [UInt8], _ remote: SocketAddress) {
    if (try? socket.send(packet, to: remote)) != true { unsent += 1 }
  }
}
