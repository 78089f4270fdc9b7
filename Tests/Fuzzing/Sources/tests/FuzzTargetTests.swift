import Foundation
import Testing
import TrunklineBytes

/// Every fuzz target takes its corpus, the RFCs' samples and many inputs made of them by a seed: what `make fuzz` does with coverage and for
/// minutes, in seconds and without a build of its own. A trap ends the process, and so does an input that takes a minute of processor time; the
/// input is then in `trunkline-fuzz-TARGET` of the folder for temporary files.
@Suite struct FuzzTargetTests {
  private static let seed = ProcessInfo.processInfo.environment["TRUNKLINE_SEED"].flatMap(UInt64.init) ?? 1
  private static let inputs = 10_000
  private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("../../../..")
    .standardized
  private static let vectors = ["sip": "sip-rfc4475", "sip-agent": "sip-rfc4475", "sdp": "sdp", "stun": "stun-rfc5769"]

  @Test(arguments: targets.keys.sorted()) func `takes its corpus and what is made of it`(name: String) throws {
    let target = try #require(targets[name])
    var folders = [Self.root.appendingPathComponent("Tests/Fuzzing/corpus/\(name)")]
    if let vectors = Self.vectors[name] { folders.append(Self.root.appendingPathComponent("Tests/Vectors/\(vectors)")) }
    let seeds = try folders.flatMap { folder -> [[UInt8]] in
      guard FileManager.default.fileExists(atPath: folder.path) else { return [] }
      let files = try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)
      return try files.sorted { $0.path < $1.path }.map { [UInt8](try Data(contentsOf: $0)) }
    }
    let last = FileManager.default.temporaryDirectory.appendingPathComponent("trunkline-fuzz-\(name)")
    let file = open(last.path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
    try #require(file >= 0, "cannot write \(last.path)")
    defer { close(file) }
    // Processor time: the machine may be busy with other things.
    func limit(seconds: Int) {
      var value = itimerval(it_interval: timeval(), it_value: timeval(tv_sec: seconds, tv_usec: 0))
      setitimer(__itimer_which_t(ITIMER_PROF.rawValue), &value, nil)
    }
    func run(_ input: [UInt8]) {
      _ = input.withUnsafeBytes { pwrite(file, $0.baseAddress, $0.count, 0) }
      ftruncate(file, off_t(input.count))
      limit(seconds: 60)
      target(input)
      limit(seconds: 0)
    }
    run([])
    for seed in seeds { run(seed) }
    var mutator = Mutator(seeds, seed: Self.seed)
    for _ in 0..<Self.inputs { run(mutator.next()) }
    try FileManager.default.removeItem(at: last)
  }
}

/// Inputs from good ones: bits and octets changed, parts taken out, doubled, moved and put in from another, numbers replaced by those at limits.
struct Mutator {
  private static let longest = 8_192
  private static let octets: [UInt8] = [0, 1, 0x7f, 0x80, 0xff] + Array("\r\n\t :;,=<>()[]{}\"'\\/@%.-+0aA".utf8)
  private static let numbers = [
    "0", "-1", "1", "255", "256", "65535", "65536", "2147483647", "2147483648", "4294967295", "4294967296", "9223372036854775807",
    "18446744073709551616", "1e309", "00", "",
  ].map { Array($0.utf8) }

  private var random: SplitMix64
  private let seeds: [[UInt8]]

  init(_ seeds: [[UInt8]], seed: UInt64) {
    random = SplitMix64(seed: seed)
    self.seeds = seeds.isEmpty ? [[]] : seeds
  }

  mutating func next() -> [UInt8] {
    var bytes = seeds.randomElement(using: &random)!
    for _ in 0..<Int.random(in: 1...6, using: &random) { change(&bytes) }
    return bytes.count <= Self.longest ? bytes : Array(bytes[..<Self.longest])
  }

  private mutating func change(_ bytes: inout [UInt8]) {
    let (part, offset) = (range(of: bytes), Int.random(in: 0...bytes.count, using: &random))
    switch Int.random(in: 0..<10, using: &random) {
    case 0 where !bytes.isEmpty: bytes[min(offset, bytes.count - 1)] ^= 1 << UInt8.random(in: 0..<8, using: &random)
    case 1 where !bytes.isEmpty: bytes[min(offset, bytes.count - 1)] = Self.octets.randomElement(using: &random)!
    case 2: bytes.removeSubrange(part)
    case 3: bytes.insert(contentsOf: bytes[part], at: offset)
    case 4:
      let moved = Array(bytes[part])
      bytes.removeSubrange(part)
      bytes.insert(contentsOf: moved, at: min(offset, bytes.count))
    case 5: bytes.removeSubrange(offset...)
    case 6:
      let other = seeds.randomElement(using: &random)!
      bytes.insert(contentsOf: other[range(of: other)], at: offset)
    case 7:
      let isDigit = { (byte: UInt8) in (48...57).contains(byte) }
      guard let first = bytes[offset...].firstIndex(where: isDigit) else { return }
      let end = bytes[first...].firstIndex { !isDigit($0) } ?? bytes.count
      bytes.replaceSubrange(first..<end, with: Self.numbers.randomElement(using: &random)!)
    case 8:
      bytes.insert(
        contentsOf: (0..<Int.random(in: 1...16, using: &random)).map { _ in .random(in: 0...255, using: &random) }, at: offset)
    default: bytes.insert(Self.octets.randomElement(using: &random)!, at: offset)
    }
  }

  /// Mostly short, sometimes all.
  private mutating func range(of bytes: [UInt8]) -> Range<Int> {
    let start = Int.random(in: 0...bytes.count, using: &random)
    let most = bytes.count - start
    let length = Int.random(in: 0...min(most, Bool.random(using: &random) ? 8 : 1_024), using: &random)
    return start..<(start + length)
  }
}
