import AudioCodecs
import Bytes
import RTP

// Audio for a recorder of the call, and for a program that replaces an app (a stream).

extension MediaSession {
  /// From now on frames go to `tap`; nil: to none. A tapped call is decoded on both sides.
  mutating func setTap(_ tap: AudioTap?) {
    self.tap = tap
    updateRelay()
  }

  /// The call's other side is `stream`, from now on; it counts as connected.
  mutating func connect(_ stream: AudioStream, at now: Instant) {
    guard winner < 0, bridge == nil else { return }
    self.stream = stream
    if connectedAt == nil {
      connectedAt = now
      nextQuality = now + Limits.reportInterval
    }
    updateRelay()
  }

  /// What lies in `frame` is of this direction. HOT
  @inline(__always)
  func tapFrame(_ direction: AudioDirection, at now: Instant) {
    guard let tap else { return }
    tap.put(TappedFrame(direction, band, at: now), frame)
  }

  /// 20 ms of the trunk's audio for the stream: silence where there is none, so that it has no gap. HOT
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

  /// The next frame of the stream's audio in `frame`, in the call's band. False: there is none. HOT
  mutating func pullStream(_ stream: AudioStream) -> Bool {
    let (frame, band) = (frame, band)
    return stream.said.pop { head, samples in
      guard head.band != band else { return frame.update(from: samples, count: band.samplesPerTick) }
      var converter = BandInterpolator()
      converter.convert(samples, head.band.samplesPerTick, from: head.band, to: band, into: frame)
    }
  }
}
