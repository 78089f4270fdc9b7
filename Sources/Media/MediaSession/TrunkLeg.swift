import TrunklineAudioCodecs
import TrunklineBytes
import TrunklineRTP
import TrunklineSRTP

/// The trunk's half of a session: which packets are accepted, the numbers of both streams, digits that the trunk sends.
struct TrunkLeg: ~Copyable {
  private(set) var isSet = false
  /// The encoding that is sent.
  private(set) var encoding = AudioEncoding.pcmu
  /// The encoding received now: each of the formats may come at any time (RFC 3264 §7).
  private(set) var incoming = AudioEncoding.pcmu
  /// The band that both the sent and the received encoding can carry.
  private(set) var band = AudioBand.narrowband
  private(set) var payloadType: UInt8 = 255
  /// The duration of received payloads.
  private(set) var payloadLength = PayloadLength(.pcmu)
  /// Octets of a 20 ms piece that can be decoded separately, of a stateless codec; 0 for others.
  private(set) var pieceOctets = 0
  /// The formats by payload type of received packets.
  private(set) var formats = IncomingFormats()
  /// Payload type of sent telephone-events, and their clock: 255 if digits are sent as tones.
  private(set) var telephoneEvent: UInt8 = 255
  private(set) var eventClockRateHz: UInt32 = 8_000
  /// Digits are detected in the audio.
  private(set) var detectsTones = false
  /// Tones are detected although telephone-event was agreed on, so that the log can name a carrier that sends no event.
  private(set) var watchesTones = false
  private(set) var comfortNoise: UInt8 = 255
  /// The peer's preferences for our Opus.
  private(set) var opus = OpusPreferences()
  private(set) var packetTimeMilliseconds = 20
  private(set) var sends = false
  private(set) var receives = false
  /// SRTP was agreed on: without `security` nothing is sent or accepted then.
  private(set) var isProtected = false
  var liveness = Liveness()
  var budget = PacketBudget()
  var received = ReceivedTotals()
  private var source: SourcePolicyState?
  /// Selects the SSRC that is played.
  var active = ActiveSource()
  var stream: OutgoingStream
  /// Statistics of the source that is played.
  var reception = ReceiverStatistics(clockRateHz: 8_000)
  var unheard = UnheardPackets()

  // Not used for every packet.
  var reports = ReportState(interval: Limits.reportInterval)
  var digits = EventSources()
  private var codecChangedAt: Instant?
  private var hasReportedSource = false
  private(set) var wantsVoIPMetrics = false
  private var remoteControl: SocketAddress?
  private var security: TrunkSecurity?

  init(ssrc: UInt32, sequence: UInt16, timestamp: UInt32) {
    stream = OutgoingStream(ssrc: ssrc, sequence: sequence, timestamp: timestamp, clockRateHz: 8_000)
  }

  /// Applies an offer/answer, first or by re-INVITE. Returns in which directions the codec changed.
  mutating func apply(_ parameters: TrunkLegParameters, at now: Instant) -> (incoming: Bool, outgoing: Bool) {
    let (before, isFirst) = (incoming, !isSet)
    let changed = isFirst || encoding != parameters.encoding
    if changed { stream.unitsPerFrame = parameters.encoding.clockRateHz / 50 }
    isSet = true
    encoding = parameters.encoding
    payloadType = parameters.payloadType
    band = encoding == .opus ? min(encoding.band, parameters.opus.band) : encoding.band
    formats = IncomingFormats(parameters.incoming.isEmpty ? parameters.symmetricFormats : parameters.incoming)
    if changed || !formats.contains(incoming) { setIncoming(encoding) }
    active.release(at: now)
    let event = parameters.telephoneEventPayloadType
    telephoneEvent = parameters.digits == .inband ? 255 : event ?? 255
    eventClockRateHz = event == nil ? encoding.clockRateHz : parameters.telephoneEventClockRateHz ?? encoding.clockRateHz
    detectsTones = parameters.digits == .inband || (parameters.digits == .auto && event == nil)
    watchesTones = !detectsTones && event != nil && unheard.mayNameTones
    wantsVoIPMetrics = parameters.wantsVoIPMetrics
    remoteControl = parameters.remoteControl
    comfortNoise = parameters.comfortNoisePayloadType ?? 255
    opus = parameters.opus
    let range = Limits.packetTimeMilliseconds
    packetTimeMilliseconds = min(max(parameters.packetTimeMilliseconds, range.lowerBound), range.upperBound)
    sends = parameters.sends
    receives = parameters.receives
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

  /// Follows the received stream to another agreed codec. False: too soon after the last change that needed another decoder.
  mutating func follow(_ encoding: AudioEncoding, needsDecoder: Bool, at now: Instant) -> Bool {
    if needsDecoder {
      if let last = codecChangedAt, now - last < Limits.codecChange { return false }
      codecChangedAt = now
    }
    setIncoming(encoding)
    return true
  }

  /// Called after an event, or after tones were reported.
  mutating func stopWatchingTones() {
    watchesTones = false
    unheard.eventCame()
  }

  private mutating func secure(_ keys: TrunkProtection?, sameEnd: Bool) {
    isProtected = keys != nil
    guard let keys else { return security = nil }
    // Keys fit their suite, or the description would have been refused; OpenSSL only fails without memory.
    do throws(SRTPError) {
      if security == nil { security = try TrunkSecurity(keys) } else { try security?.apply(keys, sameEnd: sameEnd) }
    } catch { security = nil }
  }

  // MARK: Sources

  /// Judges a packet's source, and learns it. Nil before the leg is set. HOT
  @inline(__always) mutating func classify(_ address: SocketAddress, at now: Instant) -> SourcePolicyState.Verdict? {
    source?.classify(address, at: now)
  }

  /// The same without effect, for a packet that is not decrypted yet.
  func mayAccept(_ address: SocketAddress, at now: Instant) -> Bool { source?.mayAccept(address, at: now) ?? false }

  func allowsControl(_ address: SocketAddress) -> Bool { source?.allowsControl(address) ?? false }

  /// The settings that would accept a rejected source, to be reported once in a call; nil afterwards.
  mutating func firstRejection(of address: SocketAddress) -> String? {
    guard !hasReportedSource, let source else { return nil }
    hasReportedSource = true
    return source.allowance(for: address)
  }

  // MARK: SRTP

  /// Decrypts a packet in place; without keys it throws `keyLength`. HOT
  mutating func unprotect(_ packet: UnsafeMutableRawBufferPointer, count: inout Int, isControl: Bool) throws(SRTPError) {
    guard security != nil else { throw .keyLength }
    try security?.unprotect(packet, count: &count, isControl: isControl)
  }

  /// Protects a packet in place; without keys it throws `keyLength`. HOT
  mutating func protect(_ packet: UnsafeMutableRawBufferPointer, count: inout Int, isControl: Bool) throws(SRTPError) {
    guard security != nil else { throw .keyLength }
    try security?.protect(packet, count: &count, isControl: isControl)
  }

  /// How many SSRCs the receiver retired since the last call.
  mutating func drainRetirements() -> UInt64 { security?.drainRetirements() ?? 0 }

  var eventClocks: EventForward.Clocks { EventForward.Clocks(event: eventClockRateHz, stream: encoding.clockRateHz) }

  /// The destination of RTP; nil before the leg is set.
  var destination: SocketAddress? { source?.destination }
  /// RTCP goes one port higher (RFC 3550 §11), or to the address in `a=rtcp` (RFC 3605).
  var controlDestination: SocketAddress? { remoteControl ?? destination.map { SocketAddress($0.ip, $0.port &+ 1) } }
}
