import Testing
import TrunklineBytes
import TrunklineJitterBuffer
import TrunklineRTP

/// What the buffer does on a network, tick by tick, without audio: packets of 8 octets, ticks that follow as the media threads' do, and
/// time-scale modification that always takes a whole period of 5 ms.
struct DryReplay {
  private(set) var hash: UInt64 = 0xcbf2_9ce4_8422_2325
  private(set) var ticks = 0
  private(set) var madeUpTicks = 0
  private(set) var numbers: [Int] = []
  private(set) var statistics = PlayoutStatistics()
  /// Play-out behind send, in milliseconds, of every packet handed out.
  private(set) var delays: [Double] = []
  private(set) var longestGap = 0
  private static let tick = 160

  private mutating func note(_ word: Int) { hash = (hash ^ UInt64(bitPattern: Int64(word))) &* 0x0000_0100_0000_01b3 }

  init(_ trace: NetworkTrace, firstSequence: Int = 65_000) {
    var buffer = PlayoutBuffer(clockRateHz: 8000, carriesRepair: false)
    let arrivals = trace.arrivals
    var (next, pending, gap) = (0, 0, 0)
    var now = (arrivals.first?.at ?? 0) + 7
    let payload = [UInt8](repeating: 1, count: 8)
    while now < (trace.packets.last?.sent ?? 0) + 50 {
      while next < arrivals.count, arrivals[next].at <= now {
        let (at, number) = arrivals[next]
        let header = RTPHeader(
          payloadType: 0, marker: false, sequence: SequenceNumber(raw: UInt16(truncatingIfNeeded: firstSequence + number)),
          timestamp: RTPTimestamp(raw: UInt32(truncatingIfNeeded: number * 160)), ssrc: SSRC(raw: 1))
        note(buffer.insert(header, payload: payload.span, duration: 160, at: Self.instant(at)) == .stored ? 1 : 2)
        next += 1
      }
      var isMadeUp = false
      while pending < Self.tick { fetch(&buffer, at: now, &pending, &isMadeUp) }
      pending -= Self.tick
      var shift = 0
      if !isMadeUp {
        let decision = buffer.decide(at: Self.instant(now), pending: pending, tick: Self.tick)
        switch decision.adjustment {
        case .none: break
        case .shrink(let units):
          note(30_000_000 + units)
          // A period can be cut where there is audio for it.
          while pending < min(units, Self.tick), buffer.nextIsReady { fetch(&buffer, at: now, &pending, &isMadeUp) }
          pending -= min(units, 40, pending)
        case .grow(let units):
          note(40_000_000 + units)
          pending += 40
        }
        shift = ticks % 10 == 0 ? Int(decision.tickShift.signum()) : 0
      }
      gap = isMadeUp ? gap + 1 : 0
      longestGap = max(longestGap, gap)
      madeUpTicks += isMadeUp ? 1 : 0
      ticks += 1
      now += 20 + Double(shift)
    }
    statistics = buffer.statistics
  }

  private mutating func fetch(_ buffer: inout PlayoutBuffer, at now: Double, _ pending: inout Int, _ isMadeUp: inout Bool) {
    switch buffer.fetch(at: Self.instant(now)) {
    case .packet(let packet):
      let number = Int(Int32(bitPattern: buffer.nextTimestamp.raw)) / 160 - 1
      numbers.append(number)
      delays.append(now - Double(number) * 20 + Double(pending) / 8)
      pending += packet.duration
      note(100 + number)
    case .repair(let lost, _), .lost(let lost):
      pending += lost
      isMadeUp = true
      note(10_000_000 + lost)
    case .pause, .empty:
      buffer.madeUp(max(0, Self.tick - pending))
      note(20_000_000 + pending)
      pending = max(pending, Self.tick)
      isMadeUp = true
    }
  }

  private static func instant(_ milliseconds: Double) -> Instant { Instant(nanoseconds: Int64(milliseconds * 1_000_000)) }
}

@Suite struct GoldenDecisionTests {
  /// A changed hash is a changed decision somewhere: look at `bench-jitter --kinds 8` before and after, then write the new one here.
  static let golden: [(kind: NetworkTrace.Kind, hash: UInt64)] = [
    (.quiet, 0x11f0b37c720bcfdd),
    (.drive, 0x392f26d0e2cae3d6),
    (.cellular, 0x843549a66971fd99),
    (.carrier, 0x922bc2391a8b3826),
    (.loss, 0x3fbf994377745dc7),
    (.burst, 0x6effaa1990f9ead3),
    (.spikes, 0x29808d4be09d3009),
    (.steps, 0x5048e0c662df1),
    (.stall, 0xedd78a279d28a156),
    (.skew, 0xa4f19736b3e86561),
  ]

  @Test(arguments: golden.indices) func `decisions on made networks are exactly these`(_ index: Int) {
    let (kind, hash) = Self.golden[index]
    let replay = DryReplay(.made(kind, seed: 1))
    #expect(replay.hash == hash, "\(kind): 0x\(String(replay.hash, radix: 16))")
  }

  @Test(arguments: NetworkTrace.Kind.allCases) func `on every kind order is kept, nothing is played twice, and delay is bounded`(
    _ kind: NetworkTrace.Kind
  ) {
    for seed in 2...4 as ClosedRange<UInt64> {
      let trace = NetworkTrace.made(kind, seed: seed)
      let replay = DryReplay(trace)
      #expect(zip(replay.numbers, replay.numbers.dropFirst()).allSatisfy { $0 < $1 })
      let counted = replay.statistics
      #expect(counted.inserted > 2000)
      #expect(counted.fetched + counted.late + counted.duplicate + counted.overflowed <= counted.inserted)
      let slowest = trace.packets.compactMap { packet in packet.arrived.map { $0 - packet.sent } }.max() ?? 0
      #expect((replay.delays.max() ?? 0) <= slowest + 120, "\(trace.name)")
    }
  }

  @Test func `late packets and delay on loss with reordering and spikes stay below the goal`() {
    for seed in 1...6 as ClosedRange<UInt64> {
      let trace = NetworkTrace.made(.spikes, seed: seed)
      let replay = DryReplay(trace)
      let late = 100 * Double(replay.statistics.late) / Double(trace.packets.count)
      #expect(late < 0.5, "\(trace.name): \(late) %")
    }
  }

  @Test func `a clock that runs 500 ppm off for 15 minutes is followed without an underrun`() {
    for rate in [500e-6, -500e-6] {
      let base = 40 + max(0, -rate * 900_000)
      let packets: [(sent: Double, arrived: Double?)] = (0..<45_000).map { number in
        let sent = Double(number * 20)
        return (sent, base + sent * (1 + rate))
      }
      let replay = DryReplay(NetworkTrace(name: "skew \(rate)", packets: packets))
      #expect(replay.madeUpTicks <= 2)
      // Delay behind the network's own: it drifts by less than 40 ms.
      var above: [Double] = []
      for (number, delay) in zip(replay.numbers, replay.delays) { above.append(delay - base - Double(number * 20) * rate) }
      let settled = above.dropFirst(500)
      #expect((settled.max() ?? 99) - (settled.min() ?? 0) < 40)
    }
  }

  @Test func `after a step of 200 ms the delay is what it was within 5 s`() {
    for step in [200.0, -200.0] {
      var packets: [(sent: Double, arrived: Double?)] = []
      for number in 0..<1500 {
        let delay: Double = 250 + Double(number % 3) + (number >= 750 ? step : 0)
        packets.append((Double(number * 20), Double(number * 20) + delay))
      }
      let replay = DryReplay(NetworkTrace(name: "step \(step)", packets: packets))
      let before = zip(replay.delays, replay.numbers).filter { 400..<740 ~= $1 }.map(\.0).max() ?? 0
      let after = zip(replay.delays, replay.numbers).filter { $1 >= 1000 }.map(\.0).max() ?? 999
      #expect(abs(after - before - step) <= 25, "\(before) → \(after)")
    }
  }

  @Test func `after a stall of 3 s audio is back within 500 ms and as before within 5 s`() {
    var packets: [(sent: Double, arrived: Double?)] = []
    for number in 0..<1500 {
      let sent = Double(number * 20)
      let leaves: Double = sent >= 10_000 && sent < 13_000 ? 13_000 : sent
      packets.append((sent, leaves + 40 + Double(number % 3)))
    }
    let replay = DryReplay(NetworkTrace(name: "stall", packets: packets))
    var plays: [(at: Double, delay: Double)] = []
    for (number, delay) in zip(replay.numbers, replay.delays) { plays.append((Double(number * 20) + delay, delay)) }
    let back = plays.first { $0.at > 13_000 }?.at ?? .infinity
    #expect(back < 13_540)
    #expect(plays.filter { $0.at > 18_000 }.allSatisfy { $0.delay < 90 })
    #expect(replay.longestGap <= 152)
  }
}
