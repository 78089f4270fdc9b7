import Glibc
import TrunklineBytes

/// The effect of a network on a stream of 20 ms packets: the delay of each in milliseconds, nil for a lost one.
struct Impairment {
  var name: String
  /// The loss that the receiver's reports let an encoder expect, in per cent.
  var expectedLossPercent: Int
  var delays: @Sendable (_ packets: Int, _ seed: UInt64) -> [Double?]
  /// How often it is played to each voice; twice as often with jitter, which differs more between seeds.
  var seeds: UInt64 = 2

  static func loss(_ percent: Int) -> Impairment {
    Impairment(
      name: "\(percent) % loss", expectedLossPercent: percent,
      delays: { packets, seed in
        var random = SplitMix64(seed: seed &* 7919 &+ UInt64(percent))
        return (0..<packets).map { _ in unit(&random) * 100 < Double(percent) ? nil : 0 }
      })
  }

  /// Gilbert: lost packets come in runs of `mean` packets on average.
  static func bursts(_ percent: Int, mean: Double) -> Impairment {
    Impairment(
      name: "\(percent) % loss in runs of \(Int(mean))", expectedLossPercent: percent,
      delays: { packets, seed in
        var random = SplitMix64(seed: seed &* 104_729 &+ UInt64(percent))
        let leave = 1 / mean
        let enter = leave * Double(percent) / Double(100 - percent)
        var isBad = false
        return (0..<packets).map { _ in
          isBad = isBad ? unit(&random) >= leave : unit(&random) < enter
          return isBad ? nil : 0
        }
      })
  }

  /// Exponential delay of the given mean, and loss.
  static func jitter(_ mean: Double, lossPercent: Int) -> Impairment {
    Impairment(
      name: "jitter \(Int(mean)) ms and \(lossPercent) % loss", expectedLossPercent: lossPercent,
      delays: { packets, seed in
        var random = SplitMix64(seed: seed &* 15_485_863 &+ UInt64(mean))
        return (0..<packets).map { _ in
          unit(&random) * 100 < Double(lossPercent) ? nil : -log(1 - unit(&random) * 0.9999) * mean
        }
      }, seeds: 4)
  }

  /// A part of a recorded network, chosen by the seed.
  static func trace(_ name: String, _ delays: [Double?]) -> Impairment {
    let lost = delays.count { $0 == nil }
    return Impairment(
      name: name, expectedLossPercent: (100 * lost + delays.count / 2) / max(1, delays.count),
      delays: { packets, seed in
        guard delays.count > packets else { return delays }
        let start = Int(seed &* 2_654_435_761 % UInt64(delays.count - packets))
        return Array(delays[start..<start + packets])
      })
  }

  private static func unit(_ random: inout SplitMix64) -> Double { Double(random.next() >> 11) / Double(1 << 53) }

  static let standard: [Impairment] =
    [0, 1, 3, 5, 10, 20].map { .loss($0) }
    + [.bursts(5, mean: 3), .bursts(10, mean: 4), .jitter(10, lossPercent: 1), .jitter(30, lossPercent: 0)]
}

enum TraceFile {
  /// Delays of a file with lines `send_ms,arrival_ms` or `send_ms,lost`.
  static func delays(_ path: String) throws -> [Double?] {
    guard let file = fopen(path, "r") else { throw WAVFile.Failure(description: "\(path): cannot be opened") }
    defer { fclose(file) }
    var line = [CChar](repeating: 0, count: 256)
    var out: [Double?] = []
    while fgets(&line, 256, file) != nil {
      let text = String(decoding: line.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
      let fields = text.split { $0 == "," || $0.isWhitespace }
      guard fields.count == 2, let sent = Double(fields[0]) else { continue }
      out.append(Double(fields[1]).map { $0 - sent })
    }
    return out
  }
}
