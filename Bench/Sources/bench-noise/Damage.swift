import Bytes

/// What happens to a packet.
enum Damage: String, CaseIterable {
  case randomSame, randomLength, keepFirst, keepFirstLength, flip, flips, manyFlips, constant, text, otherCodec, truncated, tail,
    swapped,
    empty, timestamps, everything

  /// Its audio may be played later than it came: the line gets longer.
  var moves: Bool { [.timestamps, .everything, .randomLength, .keepFirstLength, .truncated].contains(self) }

  func apply(_ payload: [UInt8], other: [UInt8], earlier: [UInt8], _ random: inout SplitMix64) -> [UInt8] {
    func octets(_ count: Int) -> [UInt8] { (0..<max(0, count)).map { _ in UInt8(truncatingIfNeeded: random.next()) } }
    func below(_ bound: Int) -> Int { Int(random.next() % UInt64(max(1, bound))) }
    func turned(_ count: Int) -> [UInt8] {
      var copy = payload
      for _ in 0..<count where !copy.isEmpty { copy[below(copy.count)] ^= 1 << UInt8(below(8)) }
      return copy
    }
    switch self {
    case .randomSame: return octets(payload.count)
    case .randomLength: return octets(below(1400))
    case .keepFirst: return payload.prefix(1) + octets(payload.count - 1)
    case .keepFirstLength: return payload.prefix(1) + octets(below(400))
    case .flip: return turned(1)
    case .flips: return turned(1 + below(8))
    case .manyFlips: return turned(8 + below(40))
    case .constant: return [UInt8](repeating: UInt8(truncatingIfNeeded: random.next()), count: payload.count)
    case .text: return payload.map { _ in UInt8(32 + below(95)) }
    case .otherCodec: return other
    case .truncated: return Array(payload.prefix(max(1, below(payload.count))))
    case .tail: return payload.prefix(payload.count / 2) + octets(payload.count - payload.count / 2)
    case .swapped: return earlier
    case .empty: return []
    case .timestamps: return payload
    case .everything:
      let all: [Damage] = [.randomSame, .randomLength, .empty, .text, .constant]
      return all[below(5)].apply(payload, other: other, earlier: earlier, &random)
    }
  }
}

/// Which packets it happens to, from one second on: one here and there, many, runs, every other one of a run, all from two seconds on.
enum Pattern: String, CaseIterable {
  case single, dense, runs, alternating, always, never

  func hits(_ tick: Int, _ random: inout SplitMix64, _ left: inout Int) -> Bool {
    guard tick > 50 else { return false }
    switch self {
    case .single: return random.next() % 40 == 0
    case .dense: return random.next() % 8 == 0
    case .runs, .alternating:
      if left == 0, random.next() % 50 == 0 { left = 20 }
      left = max(0, left - 1)
      return left > 0 && (self == .runs || left % 2 == 0)
    case .always: return tick > 100
    case .never: return false
    }
  }
}
