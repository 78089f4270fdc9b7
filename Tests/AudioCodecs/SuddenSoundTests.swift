import Testing

@testable import AudioCodecs

/// What `SuddenSound` and `SuddenAudio` find by vectors, held against the sums written out: the network's weights are fitted to these
/// values.
@Suite struct SuddenSoundTests {
  /// Sounds of all kinds: noise, tones, what is clipped, what is of one sign, and silence; 160 samples of the past, then the samples.
  static let sounds: [(past: [Int16], samples: [Int16])] = (0..<60).map { kind in
    var state = UInt64(kind + 1) &* 0x9e37_79b9_7f4a_7c15
    func random() -> Double {
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return Double(state >> 11) / Double(1 << 53) - 0.5
    }
    let (gain, step, offset) = (1000 * Double(1 + kind * kind % 61), 0.05 + 0.03 * Double(kind % 17), kind % 6 == 5 ? 9000.0 : 0)
    var phase = 0.0
    func sample(_ kind: Int) -> Int16 {
      phase += step
      let value =
        switch kind % 4 {
        case 0: random() * gain
        case 1: gain * (1 - abs(phase.truncatingRemainder(dividingBy: 4) - 2)) + 50 * random()
        case 2: phase.truncatingRemainder(dividingBy: 2) < 1 ? -99_000 : gain
        default: kind % 3 == 0 ? 0 : random() * random() * gain
        }
      return Int16(max(-32_768, min(32_767, value + offset)))
    }
    let count = kind % 5 == 0 ? 80 + kind : 160
    return ((0..<160).map { _ in sample(kind / 2) / Int16(1 + kind % 9) }, (0..<count).map { _ in sample(kind) })
  }

  private func correlation(_ a: ArraySlice<Int16>, _ b: ArraySlice<Int16>) -> Double {
    func product(_ a: ArraySlice<Int16>, _ b: ArraySlice<Int16>) -> Double {
      zip(a, b).reduce(0) { $0 + Double($1.0) * Double($1.1) }
    }
    let value = product(a, b)
    return value > 0 ? value / (product(a, a) * product(b, b)).squareRoot() : 0
  }

  private func values(_ sound: (past: [Int16], samples: [Int16]), loudest: Float, every steps: [Int] = [1]) -> SuddenSound {
    var (past, samples) = sound
    return samples.withUnsafeMutableBufferPointer { samples in
      past.withUnsafeMutableBufferPointer { past in
        var sound = SuddenSound(samples, past: past.baseAddress!, loudest: loudest, payload: Span(), .g711)
        for step in steps { sound.compare(samples, past: past.baseAddress!, every: step) }
        return sound
      }
    }
  }

  @Test(arguments: SuddenSoundTests.sounds.indices)
  func `likeness with other periods is the highest correlation of all`(_ index: Int) {
    let (past, samples) = Self.sounds[index]
    let (all, sound) = (past + samples, values((past, samples), loudest: 2000))
    let count = samples.count
    let within = (20...100 * count / 160).map { correlation(samples[..<(count - $0)], samples[$0...]) }
    let back = (20...120).map { correlation(all[160..<240], all[160 - $0..<240 - $0]) }
    #expect(abs(Double(sound.values[4]) - (within.max() ?? 0)) < 0.002)
    #expect(abs(Double(sound.values[5]) - (back.max() ?? 0)) < 0.002)
    #expect(sound.pitch == sound.values[4])
  }

  @Test(arguments: SuddenSoundTests.sounds.indices)
  func `levels, tilts and shapes are those of the sums`(_ index: Int) {
    let (past, samples) = Self.sounds[index]
    let sound = values((past, samples), loudest: 5000)
    let wanted = written(past.map(Double.init), samples.map(Double.init), 5000)
    for (place, value) in wanted { #expect(abs(Double(sound.values[place]) - value) < 0.003, "value \(place)") }
    #expect(wanted.count == 32)
  }

  /// All values but the two correlations.
  private func written(_ past: [Double], _ now: [Double], _ loudest: Double) -> [Int: Double] {
    func energy(_ x: ArraySlice<Double>) -> Double { x.reduce(0) { $0 + $1 * $1 } }
    func level(_ power: Double) -> Double { 10 * logarithm(power) }
    func floored(_ power: Double) -> Double { level(max(1074, power)) }
    func tilt(_ x: [Double], _ range: Range<Int>) -> Double {
      let steps = range.dropFirst(range.lowerBound == 0 ? 1 : 0).map { x[$0] - x[$0 - 1] }
      return level((1 + energy(steps[...])) / Double(range.count))
    }
    let (count, quarter) = (now.count, now.count / 4)
    let power = (1 + energy(now[...])) / Double(count)
    let quarters = (0..<4).map { floored(energy(now[$0 * quarter..<($0 + 1) * quarter]) / Double(quarter)) }
    let highest = quarters.max() ?? 0
    var out: [Int: Double] = [
      0: floored(power) - floored(loudest), 1: quarters[0] - floored(energy(past[120...]) / 40),
      2: highest - (quarters.min() ?? 0), 3: quarters[0] - highest,
      6: zip(now, now[1...]).reduce(0) { $0 + $1.0 * $1.1 } / (power * Double(count)),
      7: zip(now, now[2...]).reduce(0) { $0 + $1.0 * $1.1 } / (power * Double(count)),
      8: min(4, abs(now[0] - 2 * past[159] + past[158]) / (power.squareRoot() + 1)), 9: floored(power),
      10: min(30, now.reduce(0) { $0 + $1 * $1 * $1 * $1 } / Double(count) / (power * power)),
      11: abs(now.reduce(0, +) / Double(count)) / power.squareRoot(), 12: (now.map(abs).max() ?? 0) / power.squareRoot(),
      13: quarters[3] - highest,
    ]
    for part in 0..<4 {
      let range = part * quarter..<(part + 1) * quarter
      let own = level((1 + energy(now[range])) / Double(quarter))
      out[14 + part] = own - floored(loudest)
      out[18 + part] = tilt(now, range) - own
      out[22 + part] = 2 * level((now[range].map(abs).max() ?? 0) + 1) - own
      let before = level((1 + energy(past[40 * part..<40 * part + 40])) / 40)
      out[26 + part] = before - floored(loudest)
      out[30 + part] = tilt(past, 40 * part..<40 * part + 40) - before
    }
    return out
  }

  /// To the base of 10, without a library: halved until it is near 1, then the series of (x − 1) / (x + 1).
  private func logarithm(_ value: Double) -> Double {
    let mantissa = value.significand
    let ratio = (mantissa - 1) / (mantissa + 1)
    var (sum, power) = (0.0, ratio)
    for term in 0..<40 {
      sum += power / Double(2 * term + 1)
      power *= ratio * ratio
    }
    return (Double(value.exponent) * 0.693_147_180_559_945_3 + 2 * sum) / 2.302_585_092_994_046
  }

  @Test(arguments: [SoundSource.g711, .g722, .silk, .hybrid, .celt])
  func `evidence is the network's`(_ source: SoundSource) {
    for sound in Self.sounds {
      let sound = values(sound, loudest: 2000)
      let (inputs, nodes) = (SuddenSoundWeights.inputs, SuddenSoundWeights.nodes)
      let first = Int(source.rawValue) * SuddenSoundWeights.count
      func weight(_ index: Int) -> Double { Double(SuddenSoundWeights.all[first + index]) }
      var wanted = weight(inputs * nodes + 2 * nodes)
      for node in 0..<nodes {
        let value = (0..<inputs).reduce(weight(inputs * nodes + node)) {
          $0 + weight(node * inputs + $1) * Double(sound.values[$1])
        }
        wanted += max(0, value) * weight((inputs + 1) * nodes + node)
      }
      #expect(abs(Double(sound.evidence(source)) - wanted) < 0.001)
    }
    #expect(values(Self.sounds[0], loudest: 2000).evidence(.madeUp) < -1)
  }

  @Test(arguments: [SoundSource.g711, .g722, .silk, .hybrid, .celt])
  func `before all periods are compared, evidence is no less than it comes to be`(_ source: SoundSource) {
    for sound in Self.sounds {
      let all = [[], [4], [4, 1]].map { values(sound, loudest: 2000, every: $0) }
      #expect(all[0].pitch == 0)
      #expect(all[1].pitch <= all[2].pitch)
      #expect(all[0].evidence(source) > all[1].evidence(source) - 0.001)
      #expect(all[1].evidence(source) > all[2].evidence(source) - 0.001)
    }
  }

  @Test func `what audio is like is told as by the sums around the mean`() {
    var found: Set<String> = []
    for (_, samples) in Self.sounds {
      var samples = samples
      let count = Float(samples.count)
      let power = samples.reduce(0) { $0 + Float($1) * Float($1) } / count
      let mean = Float(samples.reduce(0) { $0 + Int($1) }) / count
      let highest = samples.map { abs(Int($0)) }.max() ?? 0
      let wanted = likeness(samples.map { Double($0) - Double(mean) }, samples.map(Int.init), Double(power), Double(mean))
      let likeness = samples.withUnsafeMutableBufferPointer {
        SuddenAudio.likeness($0, power: power, mean: mean, highest: Float(highest))
      }
      #expect("\(likeness)" == wanted)
      found.insert(wanted)
    }
    #expect(found == ["speech", "noise", "octets"])
  }

  /// Prompts that were never on a line are so: half their energy is below 20 Hz.
  @Test func `hiss on rumble is no octets, octets of one sign are`() {
    var state: UInt32 = 1
    func random(_ range: Int) -> Int {
      state = state &* 1_664_525 &+ 1_013_904_223
      return Int(state >> 8) % (2 * range + 1) - range
    }
    for (rumble, hiss, wanted) in [(-900, 1500, SuddenAudio.Likeness.speech), (900, 1500, .speech), (-3000, 2500, .octets)] {
      var samples = (0..<160).map { Int16(rumble + $0 + random(hiss)) }
      let power = samples.reduce(0) { $0 + Float($1) * Float($1) } / 160
      let mean = Float(samples.reduce(0) { $0 + Int($1) }) / 160
      let highest = Float(samples.map { abs(Int($0)) }.max() ?? 0)
      let found = samples.withUnsafeMutableBufferPointer { SuddenAudio.likeness($0, power: power, mean: mean, highest: highest) }
      #expect(found == wanted, "\(rumble), \(hiss)")
    }
  }

  private func likeness(_ x: [Double], _ samples: [Int], _ power: Double, _ mean: Double) -> String {
    let count = Double(x.count)
    let highest = samples.map(abs).max() ?? 0
    let place = samples.firstIndex { abs($0) == highest } ?? 0
    if place > 0, place + 1 < x.count, max(abs(samples[place - 1]), abs(samples[place + 1])) < highest / 4,
      Double(highest * highest) > 25 * power
    {
      return "octets"
    }
    let energy = 1 + x.reduce(0) { $0 + $1 * $1 }
    let likeness = abs(zip(x, x[1...]).reduce(0) { $0 + $1.0 * $1.1 }) / energy
    let share = mean * mean / max(1, power)
    guard likeness < 0.4 else { return share > 0.9 ? "octets" : "speech" }
    let ofOneSign = samples.filter { mean < 0 ? $0 < 0 : $0 > 0 }.count
    if share > 0.15, Double(ofOneSign) > 0.95 * count { return "octets" }
    guard power > 4_300_000 else { return "speech" }
    let length = x.count / 4
    let small = stride(from: 0, to: x.count, by: length).reduce(0.0) { sum, start in
      let part = x[start..<min(x.count, start + length)]
      let limit = part.reduce(0) { $0 + $1 * $1 } / Double(64 * part.count)
      return sum + Double(part.filter { $0 * $0 < limit }.count)
    }
    if small > 0.25 * count { return "octets" }
    return likeness < 0.25 ? "noise" : "speech"
  }
}
