import AudioCodecs
import Testing

@Suite struct BurstGuardTests {
  func admit(_ guardian: inout BurstGuard, _ samples: [Int16], isSuspect: Bool = false, judgesNoise: Bool = false) -> [Int16] {
    var samples = samples
    samples.withUnsafeMutableBufferPointer { guardian.admit($0, isSuspect: isSuspect, judgesNoise: judgesNoise) }
    return samples
  }
  func noise(_ amplitude: Int, _ count: Int = 160, seed: UInt32 = 1) -> [Int16] {
    var state = seed
    return (0..<count).map { _ in
      state = state &* 1_664_525 &+ 1_013_904_223
      return Int16(Int(state >> 8) % (2 * amplitude + 1) - amplitude)
    }
  }

  @Test func `what is not suspect passes unchanged, however sudden`() {
    var guardian = BurstGuard()
    _ = admit(&guardian, noise(50))
    let loud = voice(160, from: 0)
    #expect(admit(&guardian, loud) == loud)
    #expect(guardian.limited == 0)
  }

  @Test func `suspect audio is no louder than the last 200 ms, and what follows is whole again after 20 ms`() {
    var guardian = BurstGuard()
    let quiet = noise(1000)
    for _ in 0..<10 { _ = admit(&guardian, quiet) }
    let burst = admit(&guardian, noise(32_000), isSuspect: true)
    #expect(level(burst) <= level(quiet) + 0.2)
    #expect(burst.map { abs(Int($0)) }.max() ?? 0 <= quiet.map { abs(Int($0)) }.max() ?? 0)
    #expect(guardian.limited == 1)
    _ = admit(&guardian, quiet)
    #expect(admit(&guardian, quiet) == quiet)
  }

  @Test func `random octets as G711 are not heard above the speech before`() {
    var guardian = BurstGuard()
    let speech = voice(1600, from: 0)
    _ = admit(&guardian, speech.map { $0 / 8 }, judgesNoise: true)
    let before = level(speech.map { $0 / 8 })
    let burst = admit(&guardian, noise(30_000, 1600), judgesNoise: true)
    for start in stride(from: 0, to: 1600, by: 160) { #expect(level(Array(burst[start..<start + 160])) < before + 3) }
  }
}
