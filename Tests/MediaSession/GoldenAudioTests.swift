import Foundation
import SpeechScore
import Testing
import TrunklineAudioCodecs
import TrunklineBytes
import TrunklineMediaSession
import TrunklineRTP

/// What play-out sounds like on nine networks, two of them at 16 kHz, against what it sounded like when the golden file was made: three levels of
/// each tick, in half decibels. A change that is heard (another concealment, a splice that clicks, a merge that is late) moves
/// them by more than the tolerance: 0.5 dB on the mean over all, or 6 dB in more than 1 % of the ticks; differences below −60
/// dBov do not count. Rounding of another machine's libopus stays far below it.
///
/// After a change that is meant: listen (`bench-quality --keep FOLDER`), look at the scores, then
/// `TRUNKLINE_GOLDEN=write swift test --filter GoldenAudioTests`.
@Suite struct GoldenAudioTests {
  enum Network: String, CaseIterable {
    case loss, lossWithFEC, jitter, pauses, stall, skew, steps, wideLoss, wideJitter
    var band: AudioBand { self == .wideLoss || self == .wideJitter ? .wideband : .narrowband }
  }
  private static let file = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent().appending(
    path: "Vectors/audio/golden.txt")

  private static let speech: [Int16] = {
    let octets = DemoSpeech.telephone
    var samples = [Int16](repeating: 0, count: octets.count)
    var span = samples.mutableSpan
    _ = G711.decode(octets.span, law: .mu, into: &span)
    return samples
  }()

  /// The same at 16 kHz, with its mirror image above 4 kHz, 12 dB weaker: sibilants of a sort.
  private static let wide: [Int16] = {
    let narrow = Recording(speech).samples(.wideband)
    return narrow.indices.map { Int16(Int(narrow[$0]) * ($0 % 2 == 0 ? 5 : 3) / 5) }
  }()

  /// When the packet of a number comes, in milliseconds; nil: never.
  private static func arrival(_ number: Int, _ network: Network, _ random: inout SplitMix64) -> Double? {
    let (sent, draw) = (Double(number * 20), Double(random.next() % 1000) / 1000)
    switch network {
    case .loss, .lossWithFEC, .wideLoss: return draw < 0.05 ? nil : sent
    case .jitter, .wideJitter: return sent + draw * draw * draw * 120
    case .pauses: return sent
    case .stall: return max(sent, (3000..<3600).contains(sent) ? 3600 : 0) + draw * 4
    case .skew: return sent * 1.004
    case .steps: return sent + (number / 100 % 2 == 1 ? 90 : 0) + draw * 3
    }
  }

  /// What is heard, and the ticks that are made up.
  private static func play(_ network: Network) throws -> (heard: [Int16], madeUp: [Int]) {
    let encoding: Encoding =
      switch network {
      case .lossWithFEC, .pauses: .opus
      case .wideLoss, .wideJitter: .g722
      default: .pcmu
      }
    let band = network.band
    let (speech, frame) = (band == .wideband ? wide : speech, band.samplesPerTick)
    var receiver = try AudioReceiver(encoding: encoding, band: band)
    var encoder = try AudioEncoder(
      encoding: encoding, band: band, control: EncoderControl(repairBitrate: 24_000, expectedLossPercent: 10))
    var random = SplitMix64(seed: 11)
    let units = Int(encoding.clockRateHz) / 50
    var packets: [(at: Double, number: Int, payload: [UInt8])] = []
    for number in 0..<speech.count / frame {
      let samples = Array(speech[number * frame..<number * frame + frame])
      var payload = [UInt8](repeating: 0, count: 1275)
      var room = payload.mutableSpan
      payload.removeLast(1275 - (try encoder.encode(samples.span, into: &room)))
      let isPause = network == .pauses && LevelMeter.decibels(LevelMeter.meanSquare(samples.span)) < -45
      // A pause is an empty packet, and then nothing for a while.
      if isPause, number % 8 != 0 { continue }
      if isPause { payload = [payload[0]] }
      if let at = arrival(number, network, &random) { packets.append((at, number, payload)) }
    }
    packets.sort { ($0.at, $0.number) < ($1.at, $1.number) }
    var (heard, madeUp, next): ([Int16], [Int], Int) = ([], [], 0)
    for tick in 0..<speech.count / frame {
      let now = Double(tick * 20 + 7)
      while next < packets.count, packets[next].at <= now {
        let packet = packets[next]
        let header = RTPHeader(
          payloadType: 0, marker: false, sequence: SequenceNumber(raw: UInt16(truncatingIfNeeded: packet.number)),
          timestamp: RTPTimestamp(raw: UInt32(packet.number * units)), ssrc: SSRC(raw: 1))
        _ = receiver.insert(header, payload: packet.payload.span, at: Instant(nanoseconds: Int64(packet.at * 1e6)))
        next += 1
      }
      var samples = [Int16](repeating: 0, count: frame)
      var span = samples.mutableSpan
      if receiver.pull(into: &span, at: Instant(nanoseconds: Int64(now * 1e6))) == .concealed { madeUp.append(tick) }
      heard += samples
    }
    return (heard, madeUp)
  }

  /// By tick: the level of the low half of the band, of the high half, and of the second 10 ms; −60 dBov is 0.
  private static func levels(_ heard: [Int16], _ band: AudioBand = .narrowband) -> [UInt8] {
    let frame = band.samplesPerTick
    func level(_ power: Double) -> UInt8 { UInt8(max(0, 2 * (LevelMeter.decibels(power / 1_073_741_824) + 60)).rounded()) }
    return stride(from: 0, to: heard.count - frame + 1, by: frame).flatMap { start in
      var (low, high, late) = (0.0, 0.0, 0.0)
      for index in start + 1..<start + frame {
        let (value, before) = (Double(heard[index]), Double(heard[index - 1]))
        low += (value + before) * (value + before) / Double(4 * frame)
        high += (value - before) * (value - before) / Double(4 * frame)
        if index >= start + frame / 2 { late += value * value / Double(frame / 2) }
      }
      return [level(low), level(high), level(late)]
    }
  }

  /// Mean difference in decibels, and the share of ticks with one of more than 6.
  private static func difference(_ a: [UInt8], _ b: [UInt8]) -> (mean: Double, far: Double) {
    guard a.count == b.count, !a.isEmpty else { return (.infinity, 1) }
    var (sum, far) = (0.0, 0)
    for start in stride(from: 0, to: a.count - 2, by: 3) {
      let differences = (start..<start + 3).map { abs(Double(a[$0]) - Double(b[$0])) / 2 }
      sum += differences.reduce(0, +)
      if differences.contains(where: { $0 > 6 }) { far += 1 }
    }
    return (sum / Double(a.count), Double(far * 3) / Double(a.count))
  }
  private static func isSame(_ a: [UInt8], _ b: [UInt8]) -> Bool {
    let (mean, far) = difference(a, b)
    return mean <= 0.5 && far <= 0.01
  }

  private static func golden(_ network: Network) throws -> [UInt8] {
    let lines = try String(contentsOf: file, encoding: .utf8).split(whereSeparator: \.isNewline)
    let line = try #require(lines.first { $0.hasPrefix(network.rawValue + " ") })
    let digits = Array(line.utf8.drop { $0 != UInt8(ascii: " ") }.dropFirst())
    return stride(from: 0, to: digits.count - 1, by: 2).compactMap {
      UInt8(String(decoding: digits[$0...$0 + 1], as: UTF8.self), radix: 16)
    }
  }

  @Test func `a network sounds as it did`() throws {
    var lines = ""
    for network in Network.allCases {
      let now = Self.levels(try Self.play(network).heard, network.band)
      lines += network.rawValue + " " + now.map { String(format: "%02x", $0) }.joined() + "\n"
      guard ProcessInfo.processInfo.environment["TRUNKLINE_GOLDEN"] != "write" else { continue }
      let (mean, far) = Self.difference(now, try Self.golden(network))
      #expect(mean <= 0.5 && far <= 0.01, "\(network): \(mean) dB on the mean, \(far * 100) % of the ticks by more than 6 dB")
    }
    guard ProcessInfo.processInfo.environment["TRUNKLINE_GOLDEN"] == "write" else { return }
    try lines.write(to: Self.file, atomically: true, encoding: .utf8)
    Issue.record("the golden file was written anew")
  }

  @Test func `silence for concealment, a click at every splice and 5 ms too late are noticed`() throws {
    let (heard, madeUp) = try Self.play(.loss)
    let golden = Self.levels(heard)
    #expect(Self.isSame(golden, golden) && madeUp.count > 10)
    var silenced = heard
    for tick in madeUp { for index in tick * 160..<tick * 160 + 160 { silenced[index] = 0 } }
    #expect(!Self.isSame(Self.levels(silenced), golden))
    var clicking = heard
    for tick in madeUp { clicking[tick * 160 + 20] = 30_000 }
    #expect(!Self.isSame(Self.levels(clicking), golden))
    #expect(!Self.isSame(Self.levels([Int16](repeating: 0, count: 40) + heard.dropLast(40)), golden))
    // What another machine's rounding does.
    #expect(Self.isSame(Self.levels(heard.map { $0 / 2 * 2 }), golden))
  }
}
