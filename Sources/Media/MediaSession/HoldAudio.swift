import Bytes

/// What the trunk hears while the app holds the call.
public enum HoldAudio: Sendable {
  case silence
  /// Noise such as there was between the words.
  case noise
  /// From its beginning with each hold, over and over.
  case clip(AudioClip)
}

/// Samples at 8 kHz, mono, that many calls play: made once, never changed.
///
/// Its ends are faded, so that the seam of the loop does not click. 16 bytes of memory per millisecond.
public final class AudioClip: Sendable {
  /// `count` initialised samples; freed in deinit.
  nonisolated(unsafe) let samples: UnsafeMutablePointer<Int16>
  public let count: Int

  /// Nil for less than `Limits.clipSamples.lowerBound` samples; what is beyond its upper bound is left out.
  public init?(_ source: [Int16]) {
    let kept = source.prefix(Limits.clipSamples.upperBound)
    guard kept.count >= Limits.clipSamples.lowerBound else { return nil }
    count = kept.count
    samples = .allocate(capacity: count)
    _ = UnsafeMutableBufferPointer(start: samples, count: count).initialize(from: kept)
    for k in 0..<Frame.samples {
      samples[k] = Int16(Int(samples[k]) * k / Frame.samples)
      samples[count - 1 - k] = Int16(Int(samples[count - 1 - k]) * k / Frame.samples)
    }
  }
  deinit { samples.deallocate() }
}

/// Plays a leg's hold audio frame by frame and joins it to the talk before and after: over one frame each, so that nothing clicks.
struct HoldPlayer: ~Copyable {
  private var audio = HoldAudio.silence
  // Of the clip in `audio`, so that a frame counts no reference.
  private var samples: UnsafeMutablePointer<Int16>?
  private var count = 0
  private var position = 0
  /// The last frame was of the clip.
  private(set) var isPlaying = false

  /// What is to be played from the next hold on.
  mutating func take(_ next: HoldAudio) {
    if case .clip(let clip) = next {
      if samples == clip.samples { return }
      (samples, count) = (clip.samples, clip.count)
    } else {
      (samples, count) = (nil, 0)
    }
    (audio, position) = (next, 0)
  }

  var playsClip: Bool { samples != nil }
  var playsNoise: Bool { if case .noise = audio { true } else { false } }

  /// The clip's next 20 ms in `frame`, which holds the talk that the first frame fades out of (or silence). HOT
  mutating func play(into frame: UnsafeMutablePointer<Int16>) {
    guard let samples else { return }
    if !isPlaying { position = 0 }
    for k in 0..<Frame.samples {
      let sample = samples[position]
      position = position &+ 1 == count ? 0 : position &+ 1
      frame[k] = isPlaying ? sample : mixed(sample, frame[k], k)
    }
    isPlaying = true
  }

  /// The hold is over: the clip fades out into `frame`, the first of the talk.
  mutating func stop(into frame: UnsafeMutablePointer<Int16>) {
    guard isPlaying else { return }
    isPlaying = false
    guard let samples else { return }
    for k in 0..<Frame.samples {
      frame[k] = mixed(frame[k], samples[position], k)
      position = position &+ 1 == count ? 0 : position &+ 1
    }
  }

  /// From one to the other within a frame: both parts add up to at most the larger one.
  @inline(__always) private func mixed(_ next: Int16, _ last: Int16, _ k: Int) -> Int16 {
    Int16(truncatingIfNeeded: (Int(next) &* k &+ Int(last) &* (Frame.samples &- k)) / Frame.samples)
  }
}
