import TrunklineAudioCodecs
import TrunklineBytes
import TrunklineRTP

/// Trunk → app: how the winner gets the trunk's audio.
///
/// | input | effect |
/// |---|---|
/// | `beginRelaying` | packets are forwarded from now on: frees what coding needed, also the encoder, which a relayed app does not need |
/// | `fillGaps(true)` | silence is coded once and repeated |
/// | `fillGaps(false)` | the app gets no packets in pauses |
/// | `keepSilence`, `nextSilence`, `dropSilence` | of the coded silence; without it no effect, nil |
/// | `firstAudio` | true once |
struct Downlink: ~Copyable {
  var relay = RelaySwitch()
  private var isFirstAudioReported = false
  var event = EventForward()
  var tones = ToneListener()
  var gate = SilenceGate()
  /// Coded silence, where an Opus app gets a stream without gaps.
  private var silence: CodedSilence?
  /// Kept between the 200 and the device's play-out.
  var firstWords = FirstWords()
  var receiver = ReceiverSlot()
  var phase = TickPhase()
  var encoder = EncoderSlot()

  init() {}

  mutating func beginRelaying() {
    relay.begin()
    receiver.free()
    encoder.free()
    if silence != nil { silence = nil }
  }

  @inline(__always) var awaitsFirstAudio: Bool { !isFirstAudioReported }

  mutating func firstAudio() -> Bool {
    guard !isFirstAudioReported else { return false }
    isFirstAudioReported = true
    return true
  }

  mutating func fillGaps(_ on: Bool) { silence = on ? CodedSilence() : nil }

  mutating func keepSilence(_ packet: Span<UInt8>) { silence?.keep(packet) }

  /// The talker speaks, or the band has changed: later silence is coded again.
  mutating func dropSilence() { silence?.removeAll() }

  /// A kept packet of silence, if there are enough of them.
  mutating func nextSilence() -> UnsafeRawBufferPointer? { silence?.next() }
}

/// App → trunk: how the trunk gets the winner's audio.
///
/// | input | effect |
/// |---|---|
/// | `beginRelaying` | packets are forwarded from now on; the encoder stays, for digits and while the app is silent |
/// | `forwarded` | silence counts from then on |
/// | `defers` a press while digits of `call.dtmf` are sent | true for all packets of that press: it follows them |
/// | `defers` any other press | false |
/// | `setEventClock`, the same | – |
/// | `setEventClock`, another | digits that wait are dropped |
/// | `setFormat` | frames are gathered for packets of that time |
/// | `clearFrames` | gathered frames are dropped; returns their duration |
/// | `firstAudio` | true once |
struct Uplink: ~Copyable {
  var relay = RelaySwitch()
  private var isFirstAudioReported = false
  /// When the last packet was relayed, or when relaying began.
  private(set) var lastForwarded = Instant.zero
  var sender = DigitSender()
  var event = EventForward()
  var digits = EventSources()
  /// A key press that came while digits of `call.dtmf` were being sent, and that is sent after them: its source and timestamp.
  private var deferred: (ssrc: UInt32, timestamp: UInt32)?
  var hold = HoldPlayer()
  var packetizer = Packetizer()
  var gathered = GatheredSamples()
  var gate = SilenceGate()
  /// Kept between `ok{won}` and the 200.
  var firstWords = FirstWords()
  var receiver = ReceiverSlot()
  var phase = TickPhase()
  var encoder = EncoderSlot()

  init() {}

  mutating func beginRelaying() {
    relay.begin()
    receiver.free()
  }

  @inline(__always) mutating func forwarded(at now: Instant) { lastForwarded = now }

  @inline(__always) var awaitsFirstAudio: Bool { !isFirstAudioReported }

  mutating func firstAudio() -> Bool {
    guard !isFirstAudioReported else { return false }
    isFirstAudioReported = true
    return true
  }

  /// One press is sent to the trunk at a time.
  /// - Parameter acceptsEvents: the trunk accepts telephone-events.
  mutating func defers(_ ssrc: UInt32, timestamp: UInt32, acceptsEvents: Bool) -> Bool {
    if let deferred, deferred == (ssrc, timestamp) { return true }
    guard acceptsEvents, !sender.isIdle, !event.isPending else { return false }
    deferred = (ssrc, timestamp)
    return true
  }

  mutating func setEventClock(rateHz: UInt32) {
    if sender.clockRateHz != rateHz { sender = DigitSender(clockRateHz: rateHz) }
  }

  mutating func setFormat(_ row: CodecRow, packetTimeMilliseconds: Int) {
    let packetTime = row.packetTime(atMost: packetTimeMilliseconds)
    if row.octetsPerUnit > 0 {
      packetizer.setFormat(row, packetTime: packetTime)
    } else {
      gathered.setPacketTime(milliseconds: packetTime)
    }
  }

  /// Returns the duration in units of the trunk's clock.
  @discardableResult mutating func clearFrames(unitsPerFrame: UInt32, _ band: AudioBand) -> Int {
    packetizer.clear() + gathered.clear() * Int(unitsPerFrame) / band.samplesPerTick
  }
}
