import TrunklineAudioCodecs
import TrunklineBytes
import TrunklineRTP

// Audio for a recorder beside the call (a tap), and for a program in place of an app (a stream).

extension MediaSession {
  /// Sends frames to `tap` from now on; nil: stops. A tapped call is decoded in both directions.
  mutating func setTap(_ tap: AudioTap?) {
    self.tap = tap
    updateRelay()
  }

  /// Connects the trunk to `stream` from now on; the call counts as connected.
  mutating func connect(_ stream: AudioStream, at now: Instant) {
    guard winner < 0, bridge == nil else { return }
    self.stream = stream
    if connectedAt == nil {
      connectedAt = now
      nextQuality = now + Limits.reportInterval
    }
    updateRelay()
  }

  /// Copies `frame` to the tap, as audio of this direction. HOT
  @inline(__always)
  func tapFrame(_ direction: AudioDirection, at now: Instant) {
    guard let tap else { return }
    tap.put(TappedFrame(direction, band, at: now), frame)
  }

  /// Writes 20 ms of the trunk's audio to the stream: silence if there is none, so that it has no gap. HOT
  mutating func tickStream(at now: Instant, into output: inout MediaOutput) {
    var hasAudio = false
    if !isHeld { hasAudio = downlink.receiver.pull(into: frame, band, at: now) }
    if downlink.tones != nil { hearTones(frame, hasAudio ? band.samplesPerTick : 0, band, at: now, into: &output) }
    if hasAudio {
      downlink.gate.measure(frame, band)
      if !downlink.isFirstAudioReported, !KeptAudio.isPause(frame, band) { reportFirstAudio(.trunkToApp, at: now, into: &output) }
    } else {
      frame.update(repeating: 0, count: band.samplesPerTick)
    }
    tapFrame(.trunkToApp, at: now)
    stream?.heard.put(TappedFrame(.trunkToApp, band, at: now), frame)
  }

  /// Reads the stream's next frame into `frame`, in the call's band. False: the stream has none. HOT
  mutating func pullStream(_ stream: AudioStream) -> Bool {
    let (frame, band) = (frame, band)
    return stream.said.pop { head, samples in
      guard head.band != band else { return frame.update(from: samples, count: band.samplesPerTick) }
      var converter = BandInterpolator()
      converter.convert(samples, head.band.samplesPerTick, from: head.band, to: band, into: frame)
    }
  }
}
