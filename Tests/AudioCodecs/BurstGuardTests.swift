import AudioCodecs
import Bytes
import Testing

@Suite struct BurstGuardTests {
  func admit(
    _ guardian: inout BurstGuard, _ samples: [Int16], isSuspect: Bool = false, from source: SoundSource = .silk,
    payload: [UInt8] = []
  ) -> [Int16] {
    var samples = samples
    samples.withUnsafeMutableBufferPointer {
      guardian.admit($0, isSuspect: isSuspect, from: source, payload: payload.span)
    }
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
    let limited = guardian.limited
    let burst = admit(&guardian, noise(32_000), isSuspect: true)
    #expect(level(burst) <= level(quiet) + 0.2)
    #expect(burst.map { abs(Int($0)) }.max() ?? 0 <= quiet.map { abs(Int($0)) }.max() ?? 0)
    #expect(guardian.limited == limited + 1)
    _ = admit(&guardian, quiet)
    #expect(admit(&guardian, quiet) == quiet)
  }

  @Test(arguments: [G711.Law.mu, .a]) func `random octets as G711 are not heard above the speech before`(_ law: G711.Law) {
    var guardian = BurstGuard()
    var random = SplitMix64(seed: 4)
    let octets = (0..<1600).map { _ in UInt8(truncatingIfNeeded: random.next()) }
    var decoded = [Int16](repeating: 0, count: 1600)
    var span = decoded.mutableSpan
    _ = G711.decode(octets.span, law: law, into: &span)
    let speech = voice(1600, from: 0)
    _ = admit(&guardian, speech.map { $0 / 8 }, from: .g711)
    let before = level(speech.map { $0 / 8 })
    let burst = admit(&guardian, decoded, from: .g711)
    for start in stride(from: 0, to: 1600, by: 160) { #expect(level(Array(burst[start..<start + 160])) < before + 3) }
  }

  @Test func `a bit turned over in an octet of G711 is one sample, and that is put right`() {
    var guardian = BurstGuard()
    let speech = voice(3200, from: 0).map { $0 / 16 }
    _ = admit(&guardian, Array(speech[..<1600]), from: .g711)
    for start in stride(from: 1600, to: 3200, by: 160) {
      var damaged = Array(speech[start..<start + 160])
      for (place, wrong) in [(20, 30_000), (77, -16_000), (140, 8_000)] { damaged[place] = Int16(wrong) }
      let heard = admit(&guardian, damaged, from: .g711)
      #expect(heard.map { abs(Int($0)) }.max() ?? 0 <= 640)
      let rest: [Int16] = (0..<160).map { heard[$0] - speech[start + $0] }
      #expect(level(rest) < level(speech) - 10)
    }
    #expect(guardian.limited == 0)
  }

  /// Wrong octets do not make SILK noise, its range coder tells them (`OpusTests`); nor G.711, whose octets are a logarithm; G.722 is
  /// told by its octets.
  @Test(arguments: [SoundSource.hybrid, .celt])
  func `noise that begins with a packet is not heard above the voice before`(_ source: SoundSource) {
    var guardian = BurstGuard()
    let speech = voice(1600, from: 0).map { $0 / 16 }
    _ = admit(&guardian, speech, from: source)
    #expect(level(admit(&guardian, noise(12_000), from: source)) < level(speech) + 2)
    #expect(guardian.limited == 1)
  }

  @Test func `octets that no encoder of G722 made are not heard above the voice before`() {
    for seed in 1...20 as ClosedRange<UInt32> {
      var guardian = BurstGuard()
      let speech = voice(1600, from: 0).map { $0 / 16 }
      _ = admit(&guardian, speech, from: .g722)
      let octets = noise(127, seed: seed).map { UInt8(truncatingIfNeeded: $0) }
      var decoder = G722Decoder(sampleRateHz: 8000)
      var decoded = [Int16](repeating: 0, count: 160)
      var span = decoded.mutableSpan
      _ = decoder.decode(octets.span, into: &span)
      #expect(level(admit(&guardian, decoded, from: .g722, payload: octets)) < level(speech) + 2)
    }
  }

  @Test func `a tone may begin at full strength`() {
    var guardian = BurstGuard()
    _ = admit(&guardian, noise(50, 1600))
    let period: [Int16] = [0, 2500, 4700, 6500, 7600, 8000, 7600, 6500, 4700, 2500]
    let tone = (0..<160).map { index in index % 20 < 10 ? period[index % 10] : -period[index % 10] }
    #expect(admit(&guardian, tone, from: .celt) == tone)
  }
}
