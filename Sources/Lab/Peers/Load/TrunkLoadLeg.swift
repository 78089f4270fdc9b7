import Bytes
import Platform
import RTP
import SDP
import SIPDialogs

/// The carrier's half of one call: a pair of sockets, what is sent and what is counted.
final class TrunkLoadLeg {
  let socket: UDPSocket
  let control: UDPSocket
  var leg: LegID?
  var negotiation: TrunkNegotiation
  /// The negotiated media of the peer.
  var media: TrunkMedia?
  var isAnswered = false
  var isOver = false
  private(set) var sent: UInt64 = 0, withheld: UInt64 = 0, unsent: UInt64 = 0
  var heard = StreamCount(clockRateHz: 8000)
  private var position: Int
  private var sequence: UInt16
  private var timestamp: UInt32
  private let ssrc: UInt32
  private var held: [(at: Instant, packet: [UInt8])] = []
  private var impairment = Impairment()

  /// - Parameter position: the frame of the sentence that it begins with.
  init(address: IPAddress, position: Int, random: RandomSource) throws(SystemError) {
    self.position = position
    (socket, control) = try MediaPorts.bindPair(address, random)
    negotiation = TrunkNegotiation(local: socket.localAddress, codecs: [.pcmu, .pcma], sessionID: random.next() >> 2)
    sequence = UInt16(truncatingIfNeeded: random.next())
    timestamp = UInt32(truncatingIfNeeded: random.next())
    ssrc = UInt32(truncatingIfNeeded: random.next())
  }

  func use(_ network: LoadOptions.Network, seed: UInt64) {
    impairment = Impairment(
      lossPercent: network.lossPercent, jitterMilliseconds: network.jitterMilliseconds, reorderPercent: network.reorderPercent,
      seed: seed)
  }

  /// Sends the next 20 ms from the answer on: a gateway discards what a caller says before. False if nothing may be sent.
  func speak(_ frames: [[UInt8]], at now: Instant) -> Bool {
    guard let media, isAnswered, media.direction.sends, !isOver, !frames.isEmpty else { return false }
    let frame = position % frames.count
    var packet = [UInt8](repeating: 0, count: 12 + frames[frame].count)
    let header = RTPHeader(
      payloadType: media.payloadType, marker: sent == 0, sequence: SequenceNumber(raw: sequence),
      timestamp: RTPTimestamp(raw: timestamp),
      ssrc: SSRC(raw: ssrc))
    var room = packet.mutableSpan
    _ = header.write(into: &room)
    packet.replaceSubrange(12..., with: frames[frame])
    sequence &+= 1
    timestamp &+= 160
    position += 1
    sent += 1
    if impairment.isNone {
      transmit(packet, media.remote)
    } else if let wait = impairment.next() {
      if wait <= .zero { transmit(packet, media.remote) } else { held.append((now + wait, packet)) }
    } else {
      withheld += 1
    }
    return true
  }

  private func transmit(_ packet: [UInt8], _ remote: SocketAddress) {
    if (try? socket.send(packet, to: remote)) != true { unsent += 1 }
  }

  /// Sends what a bad network held back until now.
  func release(at now: Instant) {
    guard !held.isEmpty, let media else { return }
    for entry in held where entry.at <= now { transmit(entry.packet, media.remote) }
    held.removeAll { $0.at <= now }
  }
}
