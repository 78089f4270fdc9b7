import TrunklineAudioCodecs
import TrunklineRTP

/// Whether the talker pauses, and what the pause sounds like.
struct Pause: ~Copyable {
  /// Missing packets are no loss.
  private(set) var isOn = false
  /// The far end's comfort noise began the pause, not its codec.
  private(set) var isDescribed = false
  private var noise = ReceivedNoise()
  private let widen = BandConverter()
  private var timestamp = RTPTimestamp(raw: 0)

  mutating func described(_ payload: Span<UInt8>, _ timestamp: RTPTimestamp) {
    noise.describe(payload)
    isOn = true
    isDescribed = true
    self.timestamp = timestamp
  }

  /// Fills in the described noise; the far end cannot describe what is above 4 kHz.
  mutating func fill(_ samples: UnsafeMutableBufferPointer<Int16>, _ band: AudioBand) {
    guard band == .wideband, let base = samples.baseAddress else { return noise.fill(samples) }
    let half = samples.count / 2
    noise.fill(UnsafeMutableBufferPointer(start: base + half, count: half))
    widen.convert(base + half, half, from: .narrowband, to: .wideband, into: base)
  }

  /// An empty packet of the codec began a pause.
  mutating func began() { (isOn, isDescribed) = (true, false) }

  /// Audio was played up to `timestamp`; audio from before the noise ends no pause.
  mutating func played(upTo timestamp: RTPTimestamp) {
    if isOn, !isDescribed || timestamp.distance(from: self.timestamp) > 0 { (isOn, isDescribed) = (false, false) }
  }
}
