import TrunklineAudioCodecs
import TrunklineBytes
import TrunklineRTP

/// A recorder's tap beside the call, and a program's stream in place of an app.
///
/// | operation | without | with one |
/// |---|---|---|
/// | `record` | – | the tap gets the frame; a full one drops and counts it |
/// | `send` | – | the stream gets the trunk's frame, in the same way |
/// | `receive` | false | the stream's next frame, in the call's band; false if it has none |
struct AudioTaps {
  private var tap: AudioTap?
  private var stream: AudioStream?

  var hasTap: Bool { tap != nil }
  var hasStream: Bool { stream != nil }

  /// The frames are copied to `tap` from now on; nil: to none.
  mutating func attach(_ tap: AudioTap?) { self.tap = tap }
  mutating func connect(_ stream: AudioStream) { self.stream = stream }

  /// HOT
  @inline(__always)
  func record(_ direction: AudioDirection, _ frame: UnsafePointer<Int16>, _ band: AudioBand, at now: Instant) {
    guard let tap else { return }
    tap.put(TappedFrame(direction, band, at: now), frame)
  }

  /// HOT
  func send(_ frame: UnsafePointer<Int16>, _ band: AudioBand, at now: Instant) {
    stream?.heard.put(TappedFrame(.trunkToApp, band, at: now), frame)
  }

  /// HOT
  func receive(into frame: UnsafeMutablePointer<Int16>, _ band: AudioBand) -> Bool {
    guard let stream else { return false }
    return stream.said.pop { head, samples in
      guard head.band != band else { return frame.update(from: samples, count: band.samplesPerTick) }
      var converter = BandInterpolator()
      converter.convert(samples, head.band.samplesPerTick, from: head.band, to: band, into: frame)
    }
  }
}
