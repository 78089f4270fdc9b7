import TrunklineAudioCodecs
import TrunklineBytes
import TrunklinePlatform

/// The cost of a transcoded call on this machine, measured before the first one.
enum CallCost {
  private static let frames = 25

  /// Share of a core: 50 frames a second through an encoder and a decoder, and a quarter more for the rest. Runs for a few
  /// milliseconds on the calling thread.
  static func estimate(complexity: Int) -> Double {
    guard var encoder = try? OpusEncoder(complexity: complexity), var decoder = try? OpusDecoder() else {
      return Limits.mostCallCost
    }
    var random = SplitMix64(seed: 1)
    var samples = [Int16](repeating: 0, count: 160)
    var packet = [UInt8](repeating: 0, count: TrunklineAudioCodecs.Limits.opusFrameLength)
    var quickest = Duration.seconds(1)
    for _ in 0..<frames {
      // A buzz with noise: all of the encoder's searches run.
      for index in samples.indices {
        samples[index] = Int16(truncatingIfNeeded: (index % 57) * 200 - 5_700 + Int(random.next() % 2_000))
      }
      let start = MonotonicClock.threadCPU()
      var room = packet.mutableSpan
      guard let count = try? encoder.encode(samples.span, into: &room) else { continue }
      var heard = samples.mutableSpan
      _ = try? decoder.decode(packet.span.extracting(0..<count), into: &heard)
      quickest = min(quickest, MonotonicClock.threadCPU() - start)
    }
    return quickest.inSeconds * 50 * 1.25
  }
}
