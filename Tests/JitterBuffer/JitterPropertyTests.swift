import Testing
import TrunklineBytes
import TrunklineJitterBuffer
import TrunklineRTP

@Suite struct JitterPropertyTests {
  /// Random loss, delay, duplication and stalls: seeds print themselves as the test's argument.
  @Test(arguments: 0..<40 as Range<UInt64>)
  func `on any network no packet is played twice, order is kept and delay is bounded`(_ seed: UInt64) {
    var random = SplitMix64(seed: seed)
    let milliseconds = [10, 20, 20, 30, 40, 60][Int(seed % 6)]
    let buffer = Buffer(
      clockRateHz: seed % 2 == 0 ? 8000 : 48_000, packetMilliseconds: milliseconds, carriesRepair: seed % 2 == 1)
    var arrivals: [(at: Int, number: Int)] = []
    let (loss, spread, duplicates) = (random.next() % 20, random.next() % 200 + 1, random.next() % 10)
    var stall = 0
    for number in 0..<1500 {
      if random.next() % 500 == 0 { stall = number * milliseconds + Int(random.next() % 3000) }
      guard random.next() % 100 >= loss else { continue }
      for _ in 0...(random.next() % 100 < duplicates ? 1 : 0) {
        arrivals.append((max(stall, number * milliseconds + Int(random.next() % spread)), number))
      }
    }
    arrivals.sort { ($0.at, $0.number) < ($1.at, $1.number) }
    var next = 0
    let units = buffer.packetUnits / milliseconds * 20
    var decoded = 0
    for tick in 0..<(1500 * milliseconds / 20 + 200) {
      let now = tick * 20 + 7
      while next < arrivals.count, arrivals[next].at <= now {
        buffer.insert(arrivals[next].number, at: arrivals[next].at, repair: random.next() % 3 > 0)
        next += 1
      }
      var pieces = 0
      while decoded < units, pieces < 200 {
        pieces += 1
        switch buffer.fetch(at: now) {
        case .packet: decoded += buffer.packetUnits
        case .repair(let lost, _), .lost(let lost):
          #expect(lost > 0)
          decoded += lost
        case .pause, .empty: decoded += units
        }
      }
      #expect(pieces < 200)
      decoded = max(0, decoded - units)
      _ = buffer.buffer.decide(at: .zero + .milliseconds(now), pending: decoded, tick: units)
      #expect(buffer.buffer.depth <= TrunklineJitterBuffer.Limits.packets)
    }
    #expect(zip(buffer.fetched, buffer.fetched.dropFirst()).allSatisfy { $0 < $1 })
    let statistics = buffer.statistics
    #expect(statistics.inserted == UInt64(arrivals.count))
    let accounted =
      statistics.fetched + statistics.late + statistics.duplicate + statistics.refused + statistics.outOfRange
      + statistics.overflowed
    #expect(accounted + UInt64(buffer.buffer.depth) == statistics.inserted)
    #expect(!buffer.fetched.isEmpty)
  }

  @Test func `random headers, times and calls never trap and never exceed the memory`() {
    var random = SplitMix64(seed: 99)
    var buffer = PlayoutBuffer(clockRateHz: 0, carriesRepair: true)
    let payload = [UInt8](repeating: 1, count: 2000)
    var base = 0
    for _ in 0..<200_000 {
      if random.next() % 1000 == 0 { base = Int(random.next() % 65_536) }
      let header = RTPHeader(
        payloadType: 0, marker: false, sequence: SequenceNumber(raw: UInt16(truncatingIfNeeded: base + Int(random.next() % 130))),
        timestamp: RTPTimestamp(raw: UInt32(truncatingIfNeeded: random.next() % 3 == 0 ? random.next() : UInt64(base * 160))),
        ssrc: SSRC(raw: UInt32(random.next() % 40 == 0 ? 2 : 1)))
      let now = Instant(
        nanoseconds: random.next() % 50 == 0 ? Int64(bitPattern: random.next()) : Int64(random.next() % 1_000_000_000_000))
      let length = Int(random.next() % 2000)
      let duration = Int(random.next() % 5000) - 100
      switch random.next() % 4 {
      case 0: _ = buffer.fetch(at: now)
      case 1: _ = buffer.decide(at: now, pending: Int(random.next() % 2000), tick: 160)
      default:
        _ = buffer.insert(
          header, payload: payload.span.extracting(0..<length), duration: duration, carriesRepair: random.next() % 2 == 0, at: now
        )
      }
      if random.next() % 10_000 == 0 { buffer.madeUp(Int(random.next() % 10_000)) }
      let depth = buffer.depth
      #expect(depth >= 0 && depth <= TrunklineJitterBuffer.Limits.packets)
    }
  }
}
