import AudioCodecs
import RTP

/// Whether the talker pauses, and what the pause sounds like.
struct Pause {
  /// What is missing is no loss.
  private(set) var isOn = false
  /// By comfort noise of the far end, not by its codec.
  private(set) var isDescribed = false
  var noise = ReceivedNoise()
  private var timestamp = RTPTimestamp(raw: 0)

  mutating func described(_ payload: Span<UInt8>, _ timestamp: RTPTimestamp) {
    noise.describe(payload)
    (isOn, isDescribed, self.timestamp) = (true, true, timestamp)
  }

  /// An empty packet of the codec.
  mutating func began() { (isOn, isDescribed) = (true, false) }

  /// Audio was played up to `timestamp`; audio from before the noise ends no pause.
  mutating func played(upTo timestamp: RTPTimestamp) {
    if isOn, !isDescribed || timestamp.distance(from: self.timestamp) > 0 { (isOn, isDescribed) = (false, false) }
  }
}
