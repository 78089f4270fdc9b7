import TrunklineBytes
import TrunklinePlatform
import TrunklineRTP
import TrunklineSDP
import TrunklineSIPDialogs

/// The carrier's half of one call: a pair of sockets, sent packets and counters.
final class TrunkLoadLeg {
  let socket: UDPSocket
  let control: UDPSocket
  var leg: LegID?
  var negotiation: TrunkNegotiation
  /// The negotiated media of the peer.
  var media: TrunkMedia?
  var isAnswered = false
  var isOver = false
  private(set) var sender: RTPSender
  var received = StreamCount(clockRateHz: 8000)
  private var position: Int

  /// - Parameter position: the frame at which the sentence starts.
  init(address: IPAddress, position: Int, isWide: Bool, random: RandomSource) throws(SystemError) {
    self.position = position
    (socket, control) = try MediaPorts.bindPair(address, random)
    negotiation = TrunkNegotiation(
      local: socket.localAddress, codecs: isWide ? [.g722] : [.pcmu, .pcma], sessionID: random.next() >> 2)
    sender = RTPSender(socket, random: random)
  }

  func use(_ network: LoadOptions.Network, seed: UInt64) {
    sender.impairment = Impairment(
      lossPercent: network.lossPercent, jitterMilliseconds: network.jitterMilliseconds, reorderPercent: network.reorderPercent,
      seed: seed)
  }

  /// Sends the next 20 ms after the answer: a gateway discards a caller's earlier audio. False if nothing may be sent.
  func speak(_ frames: [[UInt8]], at now: Instant) -> Bool {
    guard let media, isAnswered, media.direction.sends, !isOver, !frames.isEmpty else { return false }
    let frame = position % frames.count
    let packet = sender.makePacket(frames[frame], payloadType: media.payloadType, marker: sender.sent == 0)
    sender.timestamp &+= 160
    position += 1
    sender.send(packet, to: media.remote, at: now)
    return true
  }

  /// Sends packets that a bad network has delayed until now.
  func release(at now: Instant) { if let media { sender.sendDelayed(to: media.remote, at: now) } }
}
