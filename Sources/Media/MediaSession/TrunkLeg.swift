import AudioCodecs
import Bytes
import RTP
import SRTP

/// The trunk's half of a session: which packets are taken, the numbers of both streams, digits it sends.
struct TrunkLeg: ~Copyable {
  private(set) var isSet = false
  /// Of what is sent.
  private(set) var encoding = AudioEncoding.pcmu
  /// Of what comes in now: each of the formats may come at any time (RFC 3264 §7).
  private(set) var incoming = AudioEncoding.pcmu
  /// What both ends of it can carry.
  private(set) var band = AudioBand.narrowband
  private(set) var payloadType: UInt8 = 255
  /// Of what comes in.
  private(set) var payloadLength = PayloadLength(.pcmu)
  /// Octets of 20 ms that are decoded by themselves, of a stateless codec; 0 of others.
  private(set) var pieceOctets = 0
  /// By the numbers of packets that come in.
  private(set) var formats = IncomingFormats()
  /// Of telephone-events that go out, and their clock: 255 where digits go as tones.
  private(set) var telephoneEvent: UInt8 = 255
  private(set) var eventClockRateHz: UInt32 = 8_000
  /// Digits are listened for in the audio.
  private(set) var detectsTones = false
  /// Tones are listened for although telephone-event was agreed on, so that the log can name a carrier that sends no event.
  private(set) var watchesTones = false
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
  /// Which SSRC's audio is heard.
  var active = ActiveSource()
  /// Audio packets that were played, relayed or kept.
  var heard: UInt64 = 0
  var stream: OutgoingStream
  /// Of the source that is heard.
  var reception = ReceiverStatistics(clockRateHz: 8_000)

  // Not of every packet.
  var reports = ReportState(interval: Limits.reportInterval)
  var digits = EventSources()
  var unheard = UnheardPackets()
  private var codecChangedAt: Instant?
  var dropped: UInt64 = 0
  var reportedSource = false
  private(set) var wantsVoIPMetrics = false
  private var remoteControl: SocketAddress?
  var security: TrunkSecurity?

  init(ssrc: UInt32, sequence: UInt16, timestamp: UInt32) {
    stream = OutgoingStream(ssrc: ssrc, sequence: sequence, timestamp: timestamp, clockRateHz: 8_000)
  }

  /// What offer/answer agreed on, first or by re-INVITE. Returns which direction has another codec.
  mutating func apply(_ parameters: TrunkLegParameters, at now: Instant) -> (incoming: Bool, outgoing: Bool) {
    let (before, isFirst) = (incoming, !isSet)
    let changed = isFirst || encoding != parameters.encoding
    if changed { stream.unitsPerFrame = parameters.encoding.clockRateHz / 50 }
    (isSet, encoding, payloadType) = (true, parameters.encoding, parameters.payloadType)
    band = encoding == .opus ? min(encoding.band, parameters.opus.band) : encoding.band
    formats = IncomingFormats(parameters.incoming.isEmpty ? parameters.symmetricFormats : parameters.incoming)
    if changed || !formats.contains(incoming) { setIncoming(encoding) }
    active.release(at: now)
    let event = parameters.telephoneEventPayloadType
    telephoneEvent = parameters.digits == .inband ? 255 : event ?? 255
    eventClockRateHz = event == nil ? encoding.clockRateHz : parameters.telephoneEventClockRateHz ?? encoding.clockRateHz
    detectsTones = parameters.digits == .inband || (parameters.digits == .auto && event == nil)
    watchesTones = !detectsTones && event != nil && unheard.mayNameTones
    (wantsVoIPMetrics, remoteControl) = (parameters.wantsVoIPMetrics, parameters.remoteControl)
    comfortNoise = parameters.comfortNoisePayloadType ?? 255
    opus = parameters.opus
    let range = Limits.packetTimeMilliseconds
    packetTimeMilliseconds = min(max(parameters.packetTimeMilliseconds, range.lowerBound), range.upperBound)
    (sends, receives) = (parameters.sends, parameters.receives)
    secure(parameters.protection, sameEnd: parameters.remote == destination)
    if source == nil { source = SourcePolicyState(parameters) } else { source?.apply(parameters) }
    return (isFirst || incoming != before, changed)
  }

  private mutating func setIncoming(_ encoding: AudioEncoding) {
    incoming = encoding
    reception.setClock(rateHz: encoding.clockRateHz)
    let row = encoding.row
    payloadLength = PayloadLength(encoding)
    pieceOctets = row.isStateless ? row.octets(ofMilliseconds: Frame.milliseconds) : 0
  }

  /// Another of the agreed codecs comes in. False: too soon after the last that needed another decoder.
  mutating func follow(_ encoding: AudioEncoding, needsDecoder: Bool, at now: Instant) -> Bool {
    if needsDecoder {
      if let last = codecChangedAt, now - last < Limits.codecChange { return false }
      codecChangedAt = now
    }
    setIncoming(encoding)
    return true
  }

  /// An event came, or the operator has heard of tones.
  mutating func stopWatchingTones() {
    watchesTones = false
    unheard.mayNameTones = false
  }

  private mutating func secure(_ keys: TrunkProtection?, sameEnd: Bool) {
    isProtected = keys != nil
    guard let keys else { return security = nil }
    // Keys fit their suite, or the description would have been refused; OpenSSL fails for want of memory alone.
    do throws(SRTPError) {
      if security == nil { security = try TrunkSecurity(keys) } else { try security?.apply(keys, sameEnd: sameEnd) }
    } catch { security = nil }
  }

  /// The time without packets during a hold was no silence of the trunk.
  mutating func restartSilence(at now: Instant) {
    if lastReceived != nil { lastReceived = now }
  }

  var eventClocks: EventForward.Clocks { EventForward.Clocks(event: eventClockRateHz, stream: encoding.clockRateHz) }

  /// Where RTP goes; nil before the leg is set.
  var destination: SocketAddress? { source?.destination }
  /// RTCP goes one port higher (RFC 3550 §11), or to where `a=rtcp` says (RFC 3605).
  var controlDestination: SocketAddress? { remoteControl ?? destination.map { SocketAddress($0.ip, $0.port &+ 1) } }
}
