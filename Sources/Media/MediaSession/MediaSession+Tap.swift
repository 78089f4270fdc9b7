import TrunklineAudioCodecs
import TrunklineBytes
import TrunklineRTP

// Audio for a recorder beside the call (a tap), and for a program in place of an app (a stream).

extension MediaSession {
  /// Connects the trunk to `stream` from now on; the call counts as connected.
  mutating func connect(_ stream: AudioStream, at now: Instant) {
    guard !apps.hasWinner, partners.bridge == nil else { return }
    taps.connect(stream)
    if state.connect(at: now) { reporting.start(at: now) }
    updateRelay()
  }

  /// Writes 20 ms of the trunk's audio to the stream: silence if there is none, so that it has no gap. HOT
  mutating func tickStream(at now: Instant, into output: inout MediaOutput) {
    var hasAudio = false
    if !state.isHeld { hasAudio = downlink.receiver.pull(into: frame, band, at: now) }
    if downlink.tones.isListening {
      hearTones(frame, count: hasAudio ? band.samplesPerTick : 0, band: band, at: now, into: &output)
    }
    if hasAudio {
      downlink.gate.measure(frame, band)
      if downlink.awaitsFirstAudio, !KeptAudio.isPause(frame, band) { reportFirstAudio(.trunkToApp, at: now, into: &output) }
    } else {
      frame.update(repeating: 0, count: band.samplesPerTick)
    }
    taps.record(.trunkToApp, frame, band, at: now)
    taps.send(frame, band, at: now)
  }
}
