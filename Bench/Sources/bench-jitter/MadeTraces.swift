import BenchKit
import Foundation
import TrunklineBytes

/// What a made network does to packets.
struct Impairments {
  /// Share of packets lost.
  var loss = 0.0
  /// Mean of the exponential delay of each packet, in milliseconds.
  var jitter = 0.0
  /// Share of packets that come 25…65 ms later than they should, behind others.
  var reorder = 0.0
  /// On average every so many packets the network holds everything back for about so many milliseconds.
  var holdEvery = 0
  var hold = 0.0
}

extension Trace {
  /// Made from a fixed seed: the same for all.
  static func made(_ name: String, seconds: Int, _ network: Impairments, seed: UInt64) -> Trace {
    var random = SplitMix64(seed: seed)
    func unit() -> Double { Double(random.next() >> 11) / Double(1 << 53) }
    var heldUntil = -1.0
    let packets: [(sent: Double, arrived: Double?)] = (0..<seconds * 50).map { number in
      let sent = Double(number) * 20
      if network.holdEvery > 0, number > 50, unit() * Double(network.holdEvery) < 1, heldUntil < sent {
        heldUntil = sent + network.hold * (0.5 + unit())
      }
      var delay = -log(1 - unit() * 0.9999) * network.jitter
      if unit() < network.reorder { delay += 25 + 40 * unit() }
      return (sent, unit() < network.loss ? nil : 30 + max(sent + delay, heldUntil))
    }
    return Trace(name: name, packets: packets)
  }

  static func tradeOff(seconds: Int) -> Trace {
    made(
      "3 % loss, 2 % reorder, spikes", seconds: seconds,
      Impairments(loss: 0.03, jitter: 6, reorder: 0.02, holdEvery: 250, hold: 100), seed: 3)
  }
  /// The networks of the repository's tests, recorded and made; none where the sources are not at hand.
  static func recorded() -> [Trace] {
    var folder = #filePath.split(separator: "/", omittingEmptySubsequences: false)
    folder.removeLast(4)
    let path = folder.joined(separator: "/") + "/Tests/Vectors/jitter"
    let names = (try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []
    return names.filter { $0.hasSuffix(".csv") }.sorted().compactMap { try? Trace.read(path + "/" + $0) }
  }
}
