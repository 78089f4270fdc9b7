import TrunklineAudioCodecs
import TrunklineBytes
import TrunklineRTP

/// The audio that the trunk hears while the app holds.
public enum HoldAudio: Sendable {
  case silence
  /// Noise like that between the words.
  case noise
  /// Starts at its beginning with each hold and repeats.
  case clip(AudioClip)
}

/// Mono audio in both bands that many calls play: immutable.
///
/// Its ends are faded, so that the loop does not click. 48 bytes of memory per millisecond.
public final class AudioClip: Sendable {
  // `count` initialised samples at 8 kHz and twice as many at 16; freed in deinit.
  nonisolated(unsafe) private let narrow: UnsafeMutablePointer<Int16>
  nonisolated(unsafe) private let wide: UnsafeMutablePointer<Int16>
  /// Samples at 8 kHz.
  public let count: Int

  /// Nil for less than `Limits.clipSamples.lowerBound` samples at 8 kHz; samples beyond its upper bound are dropped.
  public init?(_ source: Recording) {
    count = min(source.count(.narrowband), source.count(.wideband) / 2, Limits.clipSamples.upperBound)
    guard count >= Limits.clipSamples.lowerBound else { return nil }
    narrow = Self.copy(source.samples(.narrowband).prefix(count), fade: AudioBand.narrowband.samplesPerTick)
    wide = Self.copy(source.samples(.wideband).prefix(2 * count), fade: AudioBand.wideband.samplesPerTick)
  }
  deinit {
    narrow.deallocate()
    wide.deallocate()
  }

  func samples(_ band: AudioBand) -> UnsafeMutablePointer<Int16> { band == .wideband ? wide : narrow }

  private static func copy(_ source: ArraySlice<Int16>, fade: Int) -> UnsafeMutablePointer<Int16> {
    let samples = UnsafeMutablePointer<Int16>.allocate(capacity: source.count)
    _ = UnsafeMutableBufferPointer(start: samples, count: source.count).initialize(from: source)
    for k in 0..<fade {
      samples[k] = Int16(Int(samples[k]) * k / fade)
      samples[source.count - 1 - k] = Int16(Int(samples[source.count - 1 - k]) * k / fade)
    }
    return samples
  }
}

/// Plays a leg's hold audio frame by frame and cross-fades it with the talk before and after, over one frame each, so that
/// nothing clicks.
struct HoldPlayer: ~Copyable {
  private var audio = HoldAudio.silence
  // Pointers into the clip in `audio`, so that a frame costs no reference counting.
  private var narrow: UnsafeMutablePointer<Int16>?
  private var wide: UnsafeMutablePointer<Int16>?
  /// In samples at 8 kHz.
  private var count = 0
  private var position = 0
  /// The last frame was from the clip.
  private(set) var isPlaying = false

  /// Sets the audio for the next hold.
  mutating func replace(_ next: HoldAudio) {
    if case .clip(let clip) = next {
      if narrow == clip.samples(.narrowband) { return }
      narrow = clip.samples(.narrowband)
      wide = clip.samples(.wideband)
      count = clip.count
    } else {
      narrow = nil
      wide = nil
      count = 0
    }
    audio = next
    position = 0
  }

  var playsClip: Bool { narrow != nil }
  var playsNoise: Bool { if case .noise = audio { true } else { false } }

  /// Writes the clip's next 20 ms to `frame`, which holds the talk that the first frame fades out (or silence). HOT
  mutating func play(into frame: UnsafeMutablePointer<Int16>, _ band: AudioBand) {
    guard narrow != nil else { return }
    if !isPlaying { position = 0 }
    position = following(band) { k, sample in frame[k] = isPlaying ? sample : mixed(sample, last: frame[k], k: k, band: band) }
    isPlaying = true
  }

  /// Ends the hold: the clip fades out into `frame`, the first of the talk.
  mutating func stop(into frame: UnsafeMutablePointer<Int16>, _ band: AudioBand) {
    guard isPlaying else { return }
    isPlaying = false
    position = following(band) { k, sample in frame[k] = mixed(frame[k], last: sample, k: k, band: band) }
  }

  /// Passes the clip's next 20 ms to `replace`; returns the position after them.
  @inline(__always) private func following(_ band: AudioBand, _ replace: (_ k: Int, _ sample: Int16) -> Void) -> Int {
    guard let samples = band == .wideband ? wide : narrow else { return position }
    let scale = band.sampleRateHz / 8_000
    let end = count &* scale
    var at = position &* scale
    for k in 0..<band.samplesPerTick {
      replace(k, samples[at])
      at = at &+ 1 == end ? 0 : at &+ 1
    }
    return at / scale
  }

  /// Cross-fades within a frame: the weighted sum is at most the larger sample.
  @inline(__always) private func mixed(_ next: Int16, last: Int16, k: Int, band: AudioBand) -> Int16 {
    let length = band.samplesPerTick
    return Int16(truncatingIfNeeded: (Int(next) &* k &+ Int(last) &* (length &- k)) / length)
  }
}
