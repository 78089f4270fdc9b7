import Bytes
import Glibc

/// Honest sounds that are no voice, 8 s at 8 kHz, each out of digital silence again and again: they are to be heard in full.
enum Sound: String, CaseIterable {
  case ringBack, digits, music, fax, modem, claps, hiss, rush

  var samples: [Int16] {
    var random = SplitMix64(seed: 7)
    func uniform() -> Double { Double(random.next() >> 11) / 9_007_199_254_740_992 }
    func noise() -> Double { uniform() + uniform() + uniform() - 1.5 }
    var samples = [Double](repeating: 0, count: 64_000)
    func put(_ start: Int, _ count: Int, _ level: Double, _ value: (Int) -> Double) {
      for index in 0..<min(count, samples.count - start) { samples[start + index] += 32_768 * pow(10, level / 20) * value(index) }
    }
    func sine(_ hertz: Double, _ index: Int) -> Double { sin(2 * .pi * hertz * Double(index) / 8_000) }
    switch self {
    case .ringBack:
      for start in stride(from: 3_215, to: 64_000, by: 16_000) { put(start, 8_000, -18) { sine(440, $0) + sine(480, $0) } }
    case .digits:
      for (number, start) in stride(from: 3_215, to: 64_000, by: 1_715).enumerated() {
        let (row, column) = ([697.0, 770, 852, 941][number % 4], [1209.0, 1336, 1477, 1633][number / 4 % 4])
        put(start, 800, -12) { sine(row, $0) + sine(column, $0) }
      }
    case .music:
      for (number, start) in stride(from: 3_215, to: 64_000, by: 2_517).enumerated() {
        let root = 147 * pow(2, Double([0, 4, 7, 12, 9, 5, 2][number % 7]) / 12)
        for ratio in number % 2 == 0 ? [1, 1.26, 1.5] : [1, 2.0] {
          for partial in 1...6 where root * ratio * Double(partial) < 3_500 {
            put(start, 3_000, -20 - 4 * Double(partial)) {
              sine(root * ratio * Double(partial), $0) * exp(-Double($0) / 2_500) * min(1, Double($0) / 40)
            }
          }
        }
        if number % 2 == 0 { put(start, 700, -16) { _ in noise() } }
      }
    case .fax:
      // V.21: 300 bit/s of 1650 and 1850 Hz.
      var phase = 0.0
      var bit = 0.0
      for start in stride(from: 3_215, to: 64_000, by: 12_000) {
        put(start, 6_000, -15) { index in
          if index % 27 == 0 { bit = Double(random.next() % 2) }
          phase += 2 * .pi * (1_650 + 200 * bit) / 8_000
          return sin(phase)
        }
      }
    case .modem:
      // V.29's kind: 2400 symbols a second of four phases and two levels at 1700 Hz.
      var (angle, size) = (0.0, 1.0)
      for start in stride(from: 3_215, to: 64_000, by: 12_000) {
        put(start, 6_000, -17) { index in
          if index % 3 == 0 { (angle, size) = (Double(random.next() % 4) * .pi / 2, random.next() % 2 == 0 ? 0.6 : 1.2) }
          return size * sin(2 * .pi * 1_700 * Double(index) / 8_000 + angle)
        }
      }
    case .claps:
      for (number, start) in stride(from: 3_215, to: 64_000, by: 4_321).enumerated() {
        var last = 0.0
        put(start, 2_000, -8) { index in
          last = 0.4 * last + noise()
          return last * exp(-Double(index) / Double(100 + 60 * (number % 5)))
        }
      }
    case .hiss: for start in stride(from: 3_215, to: 64_000, by: 16_000) { put(start, 8_000, -28) { _ in noise() } }
    case .rush: for start in stride(from: 3_215, to: 64_000, by: 16_000) { put(start, 8_000, -15) { _ in noise() } }
    }
    return samples.map { Int16(max(-32_768, min(32_767, $0))) }
  }
}
