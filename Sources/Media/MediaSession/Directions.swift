import AudioCodecs
import Bytes
import RTP

/// Trunk → app: how the winner gets the trunk's audio.
struct Downlink: ~Copyable {
  /// Packets are forwarded as they come; else they go through the receiver and the encoder.
  var relays = false
  /// Something lies in the receiver, or may.
  var isPrimed = false
  var isFirstAudioReported = false
  var event = EventForward()
  /// Listens for digits, if the trunk may send tones.
  var tones: ToneDetector?
  var gate = SilenceGate()
  /// Where an app of Opus gets a stream without gaps.
  var silence: CodedSilence?
  /// First words, between the 200 and the device's play-out.
  var kept: KeptAudio?
  var receiver = ReceiverSlot()
  var phase = TickPhase()
  var encoder: AudioEncoder?

  /// From here on packets are forwarded as they come: what coding needed is freed. The encoder of a relayed app is asked for nothing
  /// more.
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
  /// Something lies in the receiver, or may.
  var isPrimed = false
  var isFirstAudioReported = false
  /// The last packet that was relayed, or when relaying began.
  var lastForwarded = Instant.zero
  var sender = DigitSender()
  var event = EventForward()
  var digits = EventSources()
  /// A press that came while digits of `call.dtmf` went out, which it follows: its source and timestamp.
  var deferred: (ssrc: UInt32, timestamp: UInt32)?
  var hold = HoldPlayer()
  var packetizer = Packetizer()
  var gathered = GatheredSamples()
  var gate = SilenceGate()
  /// First words, between `ok{won}` and the 200.
  var kept: KeptAudio?
  var receiver = ReceiverSlot()
  var phase = TickPhase()
  var encoder: AudioEncoder?

  /// The same; but the encoder stays, for digits and where the app is quiet.
  mutating func beginRelaying() {
    (relays, isPrimed) = (true, false)
    receiver.free()
  }
}
