import AudioCodecs
import DemoSpeech
import Glibc

/// What is spoken: 8 kHz samples, about 8 s each.
struct Passage {
  var name: String
  var samples: [Int16]
}

enum Passages {
  /// Two texts in two voices from `DemoSpeech`, and the same spoken lower and higher: periods of 20 to 110 samples.
  static func own() -> [Passage] {
    let (telephone, app) = (decoded(DemoSpeech.telephone), decoded(DemoSpeech.app))
    return [
      Passage(name: "telephone", samples: telephone), Passage(name: "app", samples: app),
      Passage(name: "telephone-low", samples: resampled(telephone, speed: 0.8)),
      Passage(name: "app-high", samples: resampled(app, speed: 1.25)),
    ]
  }

  private static func decoded(_ octets: [UInt8]) -> [Int16] {
    var samples = [Int16](repeating: 0, count: octets.count)
    var span = samples.mutableSpan
    _ = G711.decode(octets.span, law: .mu, into: &span)
    return samples
  }

  /// Band-limited interpolation with 32 taps of a windowed sine over its argument.
  static func resampled(_ samples: [Int16], speed: Double) -> [Int16] {
    let cut = min(1, 1 / speed)
    return (0..<Int(Double(samples.count) / speed)).map { index in
      let centre = Double(index) * speed
      let first = Int(centre) - 15
      var sum = 0.0
      for tap in max(0, first)..<min(samples.count, first + 32) where tap >= 0 {
        let x = Double(tap) - centre
        let lobe = x == 0 ? cut : sin(.pi * x * cut) / (.pi * x)
        sum += Double(samples[tap]) * lobe * (0.5 + 0.5 * cos(.pi * x / 16.5))
      }
      return Int16(clamping: Int(sum.rounded()))
    }
  }
}

/// RIFF WAVE, 16 bit mono.
enum WAVFile {
  struct Failure: Error, CustomStringConvertible { var description: String }

  static func write(_ samples: [Int16], to path: String) throws {
    guard let file = fopen(path, "wb") else { throw Failure(description: "\(path): cannot be written") }
    defer { fclose(file) }
    var header = [UInt8]()
    func word(_ value: Int, _ bytes: Int) {
      for byte in 0..<bytes { header.append(UInt8(truncatingIfNeeded: value >> (8 * byte))) }
    }
    header += Array("RIFF".utf8)
    word(36 + 2 * samples.count, 4)
    header += Array("WAVEfmt ".utf8)
    for (value, bytes) in [(16, 4), (1, 2), (1, 2), (8000, 4), (16_000, 4), (2, 2), (16, 2)] { word(value, bytes) }
    header += Array("data".utf8)
    word(2 * samples.count, 4)
    fwrite(header, 1, header.count, file)
    samples.withUnsafeBytes { _ = fwrite($0.baseAddress, 1, $0.count, file) }
  }

  /// Samples of a file at 8 kHz, or at a multiple of it, which is brought down.
  static func read(_ path: String) throws -> [Int16] {
    guard let file = fopen(path, "rb") else { throw Failure(description: "\(path): cannot be opened") }
    defer { fclose(file) }
    var bytes = [UInt8](repeating: 0, count: 1 << 24)
    bytes.removeLast(bytes.count - fread(&bytes, 1, bytes.count, file))
    func word(_ offset: Int, _ count: Int) -> Int {
      (0..<count).reduce(0) { $0 | (offset + $1 < bytes.count ? Int(bytes[offset + $1]) : 0) << (8 * $1) }
    }
    var offset = 12
    var rate = 0
    while offset + 8 <= bytes.count {
      let (name, length) = (Array(bytes[offset..<offset + 4]), word(offset + 4, 4))
      if name == Array("fmt ".utf8) {
        guard word(offset + 8, 2) == 1, word(offset + 10, 2) == 1, word(offset + 22, 2) == 16 else { break }
        rate = word(offset + 12, 4)
      } else if name == Array("data".utf8), rate > 0 {
        let end = min(bytes.count, offset + 8 + length)
        let samples = stride(from: offset + 8, to: end - 1, by: 2).map { Int16(truncatingIfNeeded: word($0, 2)) }
        return rate == 8000 ? samples : Passages.resampled(samples, speed: Double(rate) / 8000)
      }
      offset += 8 + length + length & 1
    }
    throw Failure(description: "\(path): not a 16 bit mono WAV file")
  }
}
