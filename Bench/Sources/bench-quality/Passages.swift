import Glibc
import SpeechScore
import TrunklineAudioCodecs
import TrunklineRTP

/// A spoken passage, 8 to 10 s.
struct Passage {
  /// It names the voice, too: a person may read two passages.
  var name: String
  var samples: [Int16]
  var band = AudioBand.narrowband
  var speaker: String { String(name.prefix { $0 != "-" }) }

  /// Played before the passage and not scored, while receivers adapt (NetEQ: for a second): the passage's own last seconds, then
  /// half a second of silence, in which the recording is cut. It is a little longer for each seed, so that packets begin
  /// elsewhere in words.
  func lead(_ seed: UInt64) -> [Int16] {
    let scale = band.sampleRateHz / 8_000
    let spoken = scale * (36_000 + Int(seed * 53 % 160))
    let tail = Array(samples.suffix(spoken))
    return [Int16](repeating: 0, count: spoken - tail.count) + tail + [Int16](repeating: 0, count: scale * 4_000)
  }
}

enum Passages {
  private static let mostSeconds = 10

  /// The recordings of people that `voices.py` puts into Bench/.voices with the demo's two, or the demo's alone: two texts in two
  /// voices of `DemoSpeech`, and the same at lower and higher pitch, with periods of 20 to 110 samples.
  static func all() throws -> [Passage] {
    let recordings = try recordings(in: Scorer.folder + "/.voices", .narrowband)
    return recordings.isEmpty ? own() : Array(own().prefix(2)) + recordings
  }

  /// The 16 kHz recordings in Bench/.voices/wide, or the demo's, whose band ends at 4 kHz.
  static func wide() throws -> [Passage] {
    let recordings = try recordings(in: Scorer.folder + "/.voices/wide", .wideband)
    return recordings.isEmpty ? ownWide() : recordings
  }

  private static func recordings(in folder: String, _ band: AudioBand) throws -> [Passage] {
    try files(in: folder).map { name in
      let samples = try WAVFile.read("\(folder)/\(name)", band).prefix(mostSeconds * band.sampleRateHz)
      return Passage(name: String(name.dropLast(4)), samples: levelled(Array(samples)), band: band)
    }
  }

  static func ownWide() -> [Passage] {
    own().prefix(2).map { Passage(name: $0.name, samples: resampled($0.samples, speed: 0.5), band: .wideband) }
  }

  static func own() -> [Passage] {
    let (telephone, app) = (decoded(DemoSpeech.telephone), decoded(DemoSpeech.app))
    return [
      Passage(name: "telephone", samples: telephone), Passage(name: "app", samples: app),
      Passage(name: "telephone-low", samples: resampled(telephone, speed: 0.8)),
      Passage(name: "app-high", samples: resampled(app, speed: 1.25)),
    ]
  }

  private static func files(in folder: String) -> [String] {
    guard let directory = opendir(folder) else { return [] }
    defer { closedir(directory) }
    var names: [String] = []
    while let entry = readdir(directory) {
      let name = withUnsafeBytes(of: entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
      if name.hasSuffix(".wav") { names.append(name) }
    }
    return names.sorted()
  }

  /// Normalises to −22 dB of full scale during speech, as `bench-ears` does.
  private static func levelled(_ samples: [Int16]) -> [Int16] {
    let spoken = samples.filter { $0.magnitude > 300 }
    let power = spoken.reduce(0.0) { $0 + Double($1) * Double($1) } / Double(max(1, spoken.count))
    let gain = power > 0 ? 2_600 / power.squareRoot() : 1
    return samples.map { Int16(clamping: Int((Double($0) * gain).rounded())) }
  }

  private static func decoded(_ octets: [UInt8]) -> [Int16] {
    var samples = [Int16](repeating: 0, count: octets.count)
    var span = samples.mutableSpan
    _ = G711.decode(octets.span, law: .mu, into: &span)
    return samples
  }

  /// Band-limited interpolation with a windowed sinc over 32 zero crossings, of the narrower band if the number of samples
  /// decreases.
  static func resampled(_ samples: [Int16], speed: Double) -> [Int16] {
    let cut = min(1, 1 / speed)
    let reach = Int((16 / cut).rounded(.up))
    func weights(_ fraction: Double) -> [Double] {
      (0..<2 * reach).map { tap in
        let x = Double(tap - reach + 1) - fraction
        let lobe = x == 0 ? cut : sin(.pi * x * cut) / (.pi * x)
        return lobe * (0.5 + 0.5 * cos(.pi * x / (Double(reach) + 0.5)))
      }
    }
    // From 48 or 16 kHz all samples have the same weights.
    let same = speed == speed.rounded() ? weights(0) : nil
    return (0..<Int(Double(samples.count) / speed)).map { index in
      let centre = Double(index) * speed
      let first = Int(centre) - reach + 1
      let weights = same ?? weights(centre - centre.rounded(.down))
      var sum = 0.0
      for tap in max(0, first)..<max(0, min(samples.count, first + 2 * reach)) {
        sum += Double(samples[tap]) * weights[tap - first]
      }
      return Int16(clamping: Int(sum.rounded()))
    }
  }
}

/// RIFF WAVE, 16 bit mono.
enum WAVFile {
  struct Failure: Error, CustomStringConvertible { var description: String }

  static func write(_ samples: [Int16], _ band: AudioBand = .narrowband, to path: String) throws {
    guard let file = fopen(path, "wb") else { throw Failure(description: "\(path): cannot be written") }
    defer { fclose(file) }
    let rate = band.sampleRateHz
    var header = [UInt8]()
    func word(_ value: Int, _ bytes: Int) {
      for byte in 0..<bytes { header.append(UInt8(truncatingIfNeeded: value >> (8 * byte))) }
    }
    header += Array("RIFF".utf8)
    word(36 + 2 * samples.count, 4)
    header += Array("WAVEfmt ".utf8)
    for (value, bytes) in [(16, 4), (1, 2), (1, 2), (rate, 4), (2 * rate, 4), (2, 2), (16, 2)] { word(value, bytes) }
    header += Array("data".utf8)
    word(2 * samples.count, 4)
    fwrite(header, 1, header.count, file)
    samples.withUnsafeBytes { _ = fwrite($0.baseAddress, 1, $0.count, file) }
  }

  /// Samples of a file at the band's rate, or at a multiple of it, which is resampled.
  static func read(_ path: String, _ band: AudioBand = .narrowband) throws -> [Int16] {
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
        let wanted = band.sampleRateHz
        return rate == wanted ? samples : Passages.resampled(samples, speed: Double(rate) / Double(wanted))
      }
      offset += 8 + length + length & 1
    }
    throw Failure(description: "\(path): not a 16 bit mono WAV file")
  }
}
