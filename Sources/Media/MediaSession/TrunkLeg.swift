import AudioCodecs
import Bytes
import RTP
import SRTP

/// The trunk's half of a session: which packets are taken, the numbers of both streams, digits it sends.
struct TrunkLeg: ~Copyable {
  private(set) var isSet = false
  private(set) var encoding = AudioEncoding.pcmu
  /// What both ends of it can carry.
  private(set) var band = AudioBand.narrowband
  private(set) var payloadType: UInt8 = 255
  private(set) var payloadLength = PayloadLength(.pcmu)
  /// Octets of 20 ms that are decoded by themselves, of a stateless codec; 0 of others.
  private(set) var pieceOctets = 0
  /// Of telephone-events that come in, and that go out: 255 there where digits go as tones.
  private(set) var incomingEvent: UInt8 = 255
  private(set) var telephoneEvent: UInt8 = 255
  /// Digits are listened for in the audio.
  private(set) var detectsTones = false
  private(set) var comfortNoise: UInt8 = 255
  /// What the peer wants of our Opus.
  private(set) var opus = OpusPreferences()
  private(set) var packetTimeMilliseconds = 20
  private(set) var sends = false
  private(set) var receives = false
  /// SRTP was agreed on: without `security` nothing is sent nor taken then.
  private(set) var isProtected = false
  var isSilent = false
  var lastReceived: Instant?
  var budget = PacketBudget()
  /// What the last audio packet lasted.
  var packetMilliseconds = Double(Frame.milliseconds)
  var bytesReceived: UInt64 = 0
  var source: SourcePolicyState?
  var stream: OutgoingStream
  var reception = ReceiverStatistics(clockRateHz: 8_000)

  // Not of every packet.
  var reports = ReportState(interval: Limits.reportInterval)
  var digits = DigitReceiver(clockRateHz: 8_000)
  var dropped: UInt64 = 0
  var toldSource = false
  private(set) var wantsVoIPMetrics = false
  private var remoteControl: SocketAddress?
  var security: TrunkSecurity?

  init(ssrc: UInt32, sequence: UInt16, timestamp: UInt32) {
    stream = OutgoingStream(ssrc: ssrc, sequence: sequence, timestamp: timestamp, clockRateHz: 8_000)
  }

  /// What offer/answer agreed on, first or by re-INVITE. Returns true if the incoming encoding changed.
  mutating func take(_ parameters: TrunkLegParameters) -> Bool {
    let changed = !isSet || encoding != parameters.encoding
    if changed {
      reception = ReceiverStatistics(clockRateHz: parameters.encoding.clockRateHz)
      stream.unitsPerFrame = parameters.encoding.clockRateHz / 50
    }
    (isSet, encoding, payloadType) = (true, parameters.encoding, parameters.payloadType)
    band = encoding == .opus ? min(encoding.band, parameters.opus.band) : encoding.band
    let row = encoding.row
    payloadLength = PayloadLength(encoding)
    pieceOctets = row.isStateless ? row.octets(ofMilliseconds: Frame.milliseconds) : 0
    incomingEvent = parameters.telephoneEventPayloadType ?? 255
    telephoneEvent = parameters.digits == .inband ? 255 : incomingEvent
    detectsTones = parameters.digits == .inband || (parameters.digits == .auto && incomingEvent == 255)
    (wantsVoIPMetrics, remoteControl) = (parameters.wantsVoIPMetrics, parameters.remoteControl)
    comfortNoise = parameters.comfortNoisePayloadType ?? 255
    opus = parameters.opus
    let range = Limits.packetTimeMilliseconds
    packetTimeMilliseconds = min(max(parameters.packetTimeMilliseconds, range.lowerBound), range.upperBound)
    (sends, receives) = (parameters.sends, parameters.receives)
    secure(parameters.protection, sameEnd: parameters.remote == destination)
    if source == nil { source = SourcePolicyState(parameters) } else { source?.apply(parameters) }
    return changed
  }

  private mutating func secure(_ keys: TrunkProtection?, sameEnd: Bool) {
    isProtected = keys != nil
    guard let keys else { return security = nil }
    // Keys fit their suite, or the description would have been refused; OpenSSL fails for want of memory alone.
    do throws(SRTPError) {
      if security == nil { security = try TrunkSecurity(keys) } else { try security?.take(keys, sameEnd: sameEnd) }
    } catch { security = nil }
  }

  /// The time without packets during a hold was no silence of the trunk.
  mutating func restartSilence(at now: Instant) {
    if lastReceived != nil { lastReceived = now }
  }

  /// Where RTP goes; nil before the leg is set.
  var destination: SocketAddress? { source?.destination }
  /// RTCP goes one port higher (RFC 3550 §11), or to where `a=rtcp` says (RFC 3605).
  var controlDestination: SocketAddress? { remoteControl ?? destination.map { SocketAddress($0.ip, $0.port &+ 1) } }
}
