import BenchKit
import TrunklineAudioCodecs
import TrunklineBytes

/// Speech in which every stretch of 3 ms occurs once, so that received audio can be found in the source: the demo sentences,
/// repeated with a different, slowly wandering level each time, and faint noise in the pauses.
struct TracedSpeech {
  /// What a perfect receiver plays: decoded µ-law at 8 kHz.
  let samples: [Int16]
  /// One per sample.
  let octets: [UInt8]
  private let samplesPerPacket: Int

  init(packets: Int, samplesPerPacket: Int) {
    self.samplesPerPacket = samplesPerPacket
    let speech = Speech.samples()
    var random = SplitMix64(seed: 0x7ace)
    var (gain, target) = (0.8, 0.8)
    let count = packets * samplesPerPacket
    var said = [Int16](repeating: 0, count: count)
    for index in 0..<count {
      if index % 400 == 0 { target = 0.5 + 0.5 * Double(random.next() % 1000) / 1000 }
      gain += (target - gain) * 0.005
      let noise = Double(random.next() % 49) - 24
      said[index] = Int16(max(-32_000, min(32_000, Double(speech[index % speech.count]) * gain + noise)))
    }
    var octets = [UInt8](repeating: 0, count: count)
    var samples = [Int16](repeating: 0, count: count)
    var octetSpan = octets.mutableSpan
    _ = G711.encode(said.span, law: .mu, into: &octetSpan)
    var sampleSpan = samples.mutableSpan
    _ = G711.decode(octets.span, law: .mu, into: &sampleSpan)
    (self.samples, self.octets) = (samples, octets)
  }

  func payload(_ number: Int) -> [UInt8] {
    Array(octets[number * samplesPerPacket..<(number + 1) * samplesPerPacket])
  }
}
