import TrunklineAudioCodecs
import TrunklineBytes
import TrunklineJitterBuffer
import TrunklineMediaSession
import TrunklineRTP
import TrunklineSDP

/// The received audio, from the payloads of packets to the loudspeaker.
///
/// | state | input | → | gives |
/// |---|---|---|---|
/// | no decoder | `insert`, `skip`, `setPath` | same | – |
/// | no decoder | `play` | same | silence |
/// | any | `use` of another codec than before | a decoder of that codec with an empty jitter buffer | true |
/// | decoder | `use` of its codec | same; the decoder follows a change of the band within the stream | false |
/// | decoder | `play` | same | 20 ms of the stream, in the device's band |
struct PlayedAudio: ~Copyable {
  private let band: AudioBand
  private var receiver: AudioReceiver?
  private var peak = LevelPeak()
  private(set) var level = -127.0
  private(set) var concealedMilliseconds: UInt64 = 0
  private(set) var bufferDelayMilliseconds = 0.0
  private let converter = BandConverter()
  /// 20 ms of a narrower band than the device's.
  private var narrowed = ContiguousArray<Int16>(repeating: 0, count: AudioBand.narrowband.samplesPerTick)

  /// - Parameter band: of the samples that `play` writes.
  init(band: AudioBand) { self.band = band }

  /// Whether the codec has started.
  var isReady: Bool { receiver != nil }

  /// - Returns: true if the codec is another one.
  mutating func use(_ encoding: AudioEncoding) -> Bool {
    guard receiver?.encoding != encoding else { return false }
    receiver = try? AudioReceiver(encoding: encoding, band: band)
    return true
  }

  /// HOT
  mutating func insert(_ header: RTPHeader, payload: Span<UInt8>, at now: Instant) {
    _ = receiver?.insert(header, payload: payload, at: now)
  }
  /// The packet was not audio.
  mutating func skip(_ header: RTPHeader, at now: Instant) { receiver?.skip(header, at: now) }
  /// Mouth to ear without the jitter buffer.
  mutating func setPath(milliseconds: Double) { receiver?.setPath(milliseconds: milliseconds) }

  /// Writes the next 20 ms. HOT
  /// - Parameter samples: 20 ms of silence in the band.
  mutating func play(into samples: inout MutableSpan<Int16>, at now: Instant) {
    if let from = receiver?.band, from < band {
      var frame = narrowed
      narrowed = []  // otherwise the array is copied when it is written
      defer { narrowed = frame }
      var room = frame.mutableSpan
      for index in room.indices { room[index] = 0 }
      _ = receiver?.pull(into: &room, at: now)
      converter.convert(room.span, from: from, to: band, into: &samples)
    } else {
      _ = receiver?.pull(into: &samples, at: now)
    }
    level = peak.measure(samples.span)
    guard let statistics = receiver?.statistics else { return }
    concealedMilliseconds = statistics.concealedMilliseconds
    bufferDelayMilliseconds = statistics.bufferDelayMilliseconds
  }
}
