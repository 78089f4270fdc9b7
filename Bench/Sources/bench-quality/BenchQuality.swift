import AudioCodecs
import BenchKit
import Glibc

/// `bench-quality --out FOLDER [--small] [--seeds N] [--speech FILE.wav]… [--trace FILE.csv]…`: speech through impaired networks
/// and the real receivers, as WAV files, and `runs.tsv` that says what each is: path, impairment, passage, seed, who, reference,
/// file. `Bench/score.py FOLDER` scores them.
@main struct BenchQuality {
  nonisolated static func main() throws {
    let arguments = Array(CommandLine.arguments.dropFirst())
    func values(_ name: String) -> [String] {
      arguments.indices.filter { arguments[$0] == name && $0 + 1 < arguments.count }.map { arguments[$0 + 1] }
    }
    guard let folder = values("--out").last else { throw WAVFile.Failure(description: "--out FOLDER is missing") }
    mkdir(folder, 0o755)
    let isSmall = arguments.contains("--small")
    var passages = Passages.own()
    for file in values("--speech") { passages.append(Passage(name: baseName(file), samples: try WAVFile.read(file))) }
    var impairments = Impairment.standard
    for file in values("--trace") { impairments.append(.trace(baseName(file), try Trace.delays(file))) }
    if isSmall { (passages, impairments) = (Array(passages.prefix(1)), [.loss(0), .loss(5)]) }
    if let only = values("--only").last { impairments = impairments.filter { only.split(separator: ",").contains(Substring($0.name)) } }
    let seeds = isSmall ? 1 : values("--seeds").last.flatMap { UInt64($0) } ?? 3
    var lines: [String] = []
    for (index, passage) in passages.enumerated() {
      let reference = "reference-\(index).wav"
      try WAVFile.write(passage.samples, to: folder + "/" + reference)
      for impairment in impairments {
        for seed in 1...(impairment.isRandom ? seeds : 1) {
          for path in Path.allCases {
            let payloads = try Stream.encode(passage.samples, path.encoding, expectedLossPercent: max(5, impairment.expectedLossPercent))
            let delays = impairment.delays(payloads.count, seed)
            let ours = try path.outward(Stream.play(payloads, path.encoding, delays).heard)
            let file = "\(lines.count).wav"
            try WAVFile.write(ours, to: folder + "/" + file)
            lines.append([path.rawValue, impairment.name, passage.name, "\(seed)", "ours", reference, file].joined(separator: "\t"))
          }
        }
      }
    }
    guard let list = fopen(folder + "/runs.tsv", "w") else { throw WAVFile.Failure(description: "\(folder): cannot be written") }
    fputs(lines.joined(separator: "\n") + "\n", list)
    fclose(list)
  }

  private static func baseName(_ path: String) -> String { path.split(separator: "/").last.map(String.init) ?? path }
}

enum Trace {
  /// Delays of a file with lines `send_ms,arrival_ms` or `send_ms,lost`.
  static func delays(_ path: String) throws -> [Double?] {
    guard let file = fopen(path, "r") else { throw WAVFile.Failure(description: "\(path): cannot be opened") }
    defer { fclose(file) }
    var line = [CChar](repeating: 0, count: 256)
    var out: [Double?] = []
    while fgets(&line, 256, file) != nil {
      let fields = String(decoding: line.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self).split { $0 == "," || $0.isWhitespace }
      guard fields.count == 2, let sent = Double(fields[0]) else { continue }
      out.append(Double(fields[1]).map { $0 - sent })
    }
    return out
  }
}
