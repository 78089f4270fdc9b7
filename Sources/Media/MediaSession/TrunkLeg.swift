import AudioCodecs
import Bytes
import RTP

/// The trunk's half of a session: which packets are taken, the numbers of both streams, digits it sends.
struct TrunkLeg: ~Copyable {
  private(set) var isSet = false
  private(set) var encoding = AudioEncoding.pcmu
  private(set) var payloadType: UInt8 = 255
  private(set) var telephoneEvent: UInt8 = 255
  private(set) var comfortNoise: UInt8 = 255
  private(set) var packetTimeMilliseconds = 20
  private(set) var sends = false
  private(set) var receives = false
  var source: SourcePolicyState?
  var toldSource = false

  var stream: OutgoingStream
  var reception = ReceiverStatistics(clockRateHz: 8_000)
  var digits = DigitReceiver(clockRateHz: 8_000)
  var reports = ReportState()
  var budget = PacketBudget()
  var bytesReceived: UInt64 = 0
  var dropped: UInt64 = 0
  var lastReceived: Instant?
  var isSilent = false

  init(ssrc: UInt32, sequence: UInt16, timestamp: UInt32) {
    stream = OutgoingStream(ssrc: ssrc, sequence: sequence, timestamp: timestamp, clockRateHz: 8_000)
  }

  /// What offer/answer settled, first or by re-INVITE. Returns true if the incoming encoding changed.
  mutating func take(_ parameters: TrunkLegParameters) -> Bool {
    let changed = !isSet || encoding != parameters.encoding
    if changed {
      reception = ReceiverStatistics(clockRateHz: parameters.encoding.clockRateHz)
      stream.unitsPerFrame = parameters.encoding.clockRateHz / 50
    }
    (isSet, encoding, payloadType) = (true, parameters.encoding, parameters.payloadType)
    telephoneEvent = parameters.telephoneEventPayloadType ?? 255
    comfortNoise = parameters.comfortNoisePayloadType ?? 255
    let range = Limits.packetTimeMilliseconds
    packetTimeMilliseconds = min(max(parameters.packetTimeMilliseconds, range.lowerBound), range.upperBound)
    (sends, receives) = (parameters.sends, parameters.receives)
    if source == nil { source = SourcePolicyState(parameters) } else { source?.apply(parameters) }
    return changed
  }

  /// The time without packets during a hold was no silence of the trunk.
  mutating func restartSilence(at now: Instant) {
    if lastReceived != nil { lastReceived = now }
  }

  /// Where RTP goes; nil before the leg is set.
  var destination: SocketAddress? { source?.destination }
  /// RTCP goes one port higher (RFC 3550 §11).
  var controlDestination: SocketAddress? { destination.map { SocketAddress($0.ip, $0.port &+ 1) } }
}

/// Which outgoing timestamp a forwarded telephone-event keeps for all its packets (RFC 4733 §2.5.1.2).
struct EventForward {
  private var source: UInt32?
  private var lastSeen = Instant.zero
  private var ended = true
  private(set) var timestamp: UInt32 = 0

  /// While true the audio of the stream is withheld.
  func isActive(at now: Instant) -> Bool { !ended && now - lastSeen < Limits.eventTimeout }

  /// True for the first packet of an event, which then lies at `next` on our clock.
  mutating func begin(_ timestamp: UInt32, isEnd: Bool, next: UInt32, at now: Instant) -> Bool {
    let isFirst = source != timestamp
    if isFirst { (source, self.timestamp) = (timestamp, next) }
    (lastSeen, ended) = (now, isEnd)
    return isFirst
  }
}
