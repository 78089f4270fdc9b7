import Testing
import TrunklineAudioCodecs
import TrunklineBytes

@Suite struct ReceivedNoiseTests {
  func played(_ payload: [UInt8], _ count: Int = 8000) -> [Int16] {
    var noise = ReceivedNoise()
    noise.describe(payload.span)
    var samples = [Int16](repeating: 0, count: count)
    samples.withUnsafeMutableBufferPointer { noise.fill($0) }
    return samples
  }

  @Test(arguments: [40, 55, 70] as [UInt8]) func `noise has the level that was told`(_ level: UInt8) {
    #expect(abs(AudioCodecsTests.level(played([level])) + Double(level)) < 1)
    // The same with a spectrum: its strength is taken out.
    #expect(abs(AudioCodecsTests.level(played([level, 10, 200, 90])) + Double(level)) < 1.5)
  }

  @Test func `a spectrum is heard: a negative first reflection coefficient is noise of low frequency`() {
    let (low, high) = (played([40, 20]), played([40, 230]))
    func neighbours(_ samples: [Int16]) -> Double {
      let energy = samples.reduce(0.0) { $0 + Double($1) * Double($1) }
      return zip(samples, samples.dropFirst()).reduce(0.0) { $0 + Double($1.0) * Double($1.1) } / energy
    }
    #expect(neighbours(low) > 0.5)
    #expect(neighbours(high) < -0.5)
  }

  @Test(arguments: [0, 1, 14] as [UInt8]) func `a level that nobody means is not played as loud as speech`(_ level: UInt8) {
    #expect(AudioCodecsTests.level(played([level])) < -55)
  }

  @Test func `any payload gives bounded noise`() {
    var random = SplitMix64(seed: 5)
    for _ in 0..<300 {
      let payload = (0..<Int(random.next() % 20)).map { _ in UInt8(truncatingIfNeeded: random.next()) }
      #expect(level(played(payload, 1600)) < -24)
    }
  }
}
