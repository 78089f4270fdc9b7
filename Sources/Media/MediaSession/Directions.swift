import TrunklineAudioCodecs
import TrunklineBytes
import TrunklineRTP

/// Trunk → app: how the winner gets the trunk's audio.
struct Downlink: ~Copyable {
  /// Packets are forwarded as they arrive; else they go through the receiver and the encoder.
  var relays = false
  /// The receiver holds packets, or may.
  var isPrimed = false
  var isFirstAudioReported = false
  var event = EventForward()
  /// Listens for digits, if the trunk may send tones.
  var tones: ToneDetector?
  var gate = SilenceGate()
  /// Coded silence, where an Opus app gets a stream without gaps.
  var silence: CodedSilence?
  /// The first words, kept between the 200 and the device's play-out.
  var kept: KeptAudio?
  var receiver = ReceiverSlot()
  var phase = TickPhase()
  var encoder: AudioEncoder?

  /// Packets are forwarded from now on: frees what coding needed, also the encoder, which a relayed app does not need.
  mutating func beginRelaying() {
    (relays, isPrimed) = (true, false)
    receiver.free()
    if encoder != nil { encoder = nil }
    if silence != nil { silence = nil }
  }
}

/// App → trunk: how the trunk gets the winner's audio.
struct Uplink: ~Copyable {
  var relays = false
  /// The receiver holds packets, or may.
  var isPrimed = false
  var isFirstAudioReported = false
  /// When the last packet was relayed, or when relaying began.
  var lastForwarded = Instant.zero
  var sender = DigitSender()
  var event = EventForward()
  var digits = EventSources()
  /// A key press that came while digits of `call.dtmf` were being sent, and that is sent after them: its source and timestamp.
  var deferred: (ssrc: UInt32, timestamp: UInt32)?
  var hold = HoldPlayer()
  var packetizer = Packetizer()
  var gathered = GatheredSamples()
  var gate = SilenceGate()
  /// The first words, kept between `ok{won}` and the 200.
  var kept: KeptAudio?
  var receiver = ReceiverSlot()
  var phase = TickPhase()
  var encoder: AudioEncoder?

  /// Packets are forwarded from now on. The encoder stays, for digits and while the app is silent.
  mutating func beginRelaying() {
    (relays, isPrimed) = (true, false)
    receiver.free()
  }
}
