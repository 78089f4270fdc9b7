import BenchKit
import TrunklineAudioCodecs
import TrunklineBytes

/// `bench-quality --pauses`: whether a talkspurt begins worse after packets of silence that were sent over and over (`CodedSilence`) than
/// after silence that was encoded: PESQ of passages in which nothing differs but the first 100 ms of talkspurts, and the spectral distance
/// of these, the encoder reset there or not. Differences are of pairs, with 95 % of Student's distribution.
struct PauseTable {
  private enum Way: String, CaseIterable { case encoded, kept, keptAndReset = "kept, reset" }
  private static let beginning = 800
  /// libopus' look-ahead: 6.5 ms.
  private static let delay = 52
  private let bench: Bench
  private let passages: [Passage]
  private let folder: String

  init(_ bench: Bench, passages: [Passage], folder: String) {
    (self.bench, self.passages, self.folder) = (bench, passages, folder)
  }

  /// How many files are left in the folder.
  func run() throws -> Int {
    var (pairs, ways): ([(reference: String, heard: String)], [Way]) = ([], [])
    var distances: [Way: [Double]] = [:]
    for (index, passage) in passages.enumerated() {
      let (samples, starts) = spread(passage.samples)
      let reference = "reference-\(index).wav"
      try WAVFile.write(samples, to: "\(folder)/\(reference)")
      let whole = try code(samples, .encoded)
      for way in Way.allCases {
        let coded = try code(samples, way)
        var heard = whole
        for start in starts {
          for sample in start..<min(heard.count, start + Self.beginning) { heard[sample] = coded[sample] }
          let end = start + Self.beginning
          guard end + Self.delay <= heard.count else { continue }
          distances[way, default: []].append(
            SpectralDistance.between(samples[start..<end], coded[start + Self.delay..<end + Self.delay]))
        }
        let file = "\(pairs.count).wav"
        try WAVFile.write(heard, to: "\(folder)/\(file)")
        pairs.append((reference, file))
        ways.append(way)
      }
    }
    if let scores = Scorer.scores(pairs, in: folder) {
      var own: [Way: [Double]] = [:]
      for (way, score) in zip(ways, scores) { own[way, default: []].append(score) }
      report("talkspurts after silence", "MOS", "passages", own)
    }
    report("their first 100 ms, spectral distance", "dB", "talkspurts", distances)
    return pairs.count
  }

  private func report(_ name: String, _ unit: String, _ items: String, _ values: [Way: [Double]]) {
    guard let encoded = values[.encoded], encoded.count > 1 else { return }
    for way in Way.allCases {
      guard let own = values[way] else { continue }
      let differences = zip(own, encoded).map { $0 - $1 }
      let mean = differences.reduce(0, +) / Double(differences.count)
      let spread = differences.reduce(0) { $0 + ($1 - mean) * ($1 - mean) } / Double(differences.count - 1)
      // Student's t of ten values or more.
      let interval = (differences.count > 30 ? 2 : 2.26) * (spread / Double(differences.count)).squareRoot()
      let text = [mean, interval].map { "\(($0 * 10_000).rounded() / 10_000)" }
      bench.add(
        BenchRow(
          "\(name): \(way.rawValue)", unit: unit, ours: BenchFigure("ours", own.reduce(0, +) / Double(own.count)), peers: [],
          note: "\(own.count) \(items); by \(text[0]) ± \(text[1]) of encoded silence"))
    }
  }

  /// The passage with a second of faint noise in each of its pauses, and where talk begins.
  private func spread(_ samples: [Int16]) -> ([Int16], [Int]) {
    var (detector, random) = (SilenceDetector(), SplitMix64(seed: 4))
    var (out, starts, wasSilent): ([Int16], [Int], Bool) = ([], [], false)
    func noise(_ count: Int) -> [Int16] { (0..<count).map { _ in Int16(Int(random.next() % 33) - 16) } }
    for start in stride(from: 0, to: samples.count - 159, by: 160) {
      let tick = zip(samples[start..<start + 160], noise(160)).map { $0 &+ $1 }
      let isSilent = detector.isSilence(tick.span)
      if wasSilent, !isSilent {
        out += noise(8_000)
        starts.append(out.count)
      }
      out += tick
      wasSilent = isSilent
    }
    return (out, starts)
  }

  private func code(_ samples: [Int16], _ way: Way) throws -> [Int16] {
    var encoder = try OpusEncoder(bitrate: EncoderControl.plainBitrate, expectedLossPercent: 0)
    encoder.setRepair(false)
    var decoder = try OpusDecoder()
    var silence = CodedSilence()
    var detector = SilenceDetector()
    var (heard, payload, wasKept): ([Int16], [UInt8], Bool) = ([], [UInt8](repeating: 0, count: 1_275), false)
    for start in stride(from: 0, to: samples.count - 159, by: 160) {
      let tick = Array(samples[start..<start + 160])
      let isSilent = detector.isSilence(tick.span)
      if !isSilent, !detector.isLingering {
        silence.removeAll()
        if wasKept, way == .keptAndReset { encoder.reset() }
        wasKept = false
      }
      var packet: [UInt8]
      if isSilent, way != .encoded, let kept = silence.next() {
        (packet, wasKept) = (Array(kept), true)
      } else {
        var span = payload.mutableSpan
        packet = try Array(payload[..<encoder.encode(tick.span, into: &span)])
        if isSilent || detector.isLingering { silence.keep(packet.span) }
      }
      var out = [Int16](repeating: 0, count: 160)
      var span = out.mutableSpan
      _ = try decoder.decode(packet.span, into: &span)
      heard += out
    }
    return heard
  }
}
