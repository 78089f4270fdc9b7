import AudioCodecs
import Testing

@Suite struct GainTests {
  private func apply(_ gain: inout Gain, _ samples: [Int16]) -> [Int16] {
    var samples = samples
    var span = samples.mutableSpan
    gain.apply(to: &span)
    return samples
  }
  /// Samples that stand at full scale beside another that does: a flat top.
  private func isClipped(_ samples: [Int16]) -> Bool {
    zip(samples, samples.dropFirst()).contains { ($0 >= 32_767 && $1 >= 32_767) || ($0 <= -32_767 && $1 <= -32_767) }
  }

  @Test(arguments: [Int32(8_192), 16_384, 65_536, .max]) func `no gain clips, however loud the voice`(target: Int32) {
    var gain = Gain()
    gain.target = target
    var loudest: Int16 = 0
    for tick in 0..<100 {
      let samples = apply(&gain, voice(160, from: tick * 160))
      #expect(!isClipped(samples))
      loudest = max(loudest, samples.max() ?? 0)
    }
    #expect(loudest > 17_000)
  }

  @Test func `what is quiet enough gets the whole gain`() {
    var gain = Gain()
    gain.target = 3 * Gain.unity
    let quiet = voice(160, pauses: false).map { $0 / 8 }
    _ = apply(&gain, quiet)
    #expect(zip(apply(&gain, quiet), quiet).allSatisfy { abs(Int($0) - 3 * Int($1)) <= 1 })
  }

  @Test func `after a loud word the gain comes back by about a decibel a tick`() {
    var gain = Gain()
    gain.target = 8 * Gain.unity
    let loud = voice(160, pauses: false)
    for _ in 0..<3 { _ = apply(&gain, loud) }
    let low = gain.current
    #expect(low < 8 * Gain.unity)
    let quiet = loud.map { $0 / 32 }
    var rising: [Int32] = []
    for _ in 0..<20 {
      _ = apply(&gain, quiet)
      rising.append(gain.current)
    }
    #expect(zip([low] + rising, rising).allSatisfy { $1 >= $0 && Double($1) <= Double($0) * 1.13 })
    #expect(rising.last == 8 * Gain.unity)
  }

  @Test func `a peak of minus full scale is no trap`() {
    var gain = Gain()
    gain.target = 2 * Gain.unity
    #expect(apply(&gain, [.min, .max, 0]).allSatisfy { $0 >= .min && $0 <= .max })
    #expect(apply(&gain, []) == [])
  }
}
