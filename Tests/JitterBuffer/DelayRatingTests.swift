import Testing
import TrunklineBytes
import TrunklineJitterBuffer
import TrunklineRTP

/// The delay that costs a conversation least by G.107, on paths of any length.
@Suite struct DelayRatingTests {
  /// When the slowest of the middle packets is played, in milliseconds after it was sent. One packet in a hundred arrives `late`
  /// milliseconds later than the others.
  private static func delay(path: Double, late: Double, policy: DelayPolicy = DelayPolicy()) -> Double {
    var buffer = PlayoutBuffer(clockRateHz: 8000, carriesRepair: false, policy: policy)
    buffer.setPath(milliseconds: path)
    let payload = [UInt8](repeating: 1, count: 8)
    var (next, pending, sum, count) = (0, 0, 0.0, 0)
    func arrival(_ number: Int) -> Double { Double(number * 20) + 40 + (number % 100 == 99 ? late : 0) }
    let order = (0..<3000).sorted { (arrival($0), $0) < (arrival($1), $1) }
    var now = 47.0
    while now < 59_000 {
      while next < order.count, arrival(order[next]) <= now {
        let number = order[next]
        let header = RTPHeader(
          payloadType: 0, marker: false, sequence: SequenceNumber(raw: UInt16(number)),
          timestamp: RTPTimestamp(raw: UInt32(number * 160)), ssrc: SSRC(raw: 1))
        _ = buffer.insert(header, payload: payload.span, duration: 160, at: Instant(nanoseconds: Int64(arrival(number) * 1e6)))
        next += 1
      }
      let instant = Instant(nanoseconds: Int64(now * 1e6))
      while pending < 160 {
        switch buffer.fetch(at: instant) {
        case .packet(let packet):
          if now > 40_000 {
            sum += now - Double(Int32(bitPattern: buffer.nextTimestamp.raw) / 160 - 1) * 20
            count += 1
          }
          pending += packet.duration
        case .repair(let lost, _), .lost(let lost): pending += lost
        case .pause, .empty:
          buffer.madeUp(160 - pending)
          pending = 160
        }
      }
      pending -= 160
      let decision = buffer.decide(at: instant, pending: pending, tick: 160)
      if case .shrink(let units) = decision.adjustment { pending -= min(units, 40, pending) }
      if case .grow = decision.adjustment { pending += 40 }
      now += 20 + Double(decision.tickShift.signum())
    }
    return sum / Double(max(1, count))
  }

  @Test func `on a short path rare late packets are waited for, on a long one they are not`() {
    let late = 80.0
    #expect(Self.delay(path: 50, late: late) > 40 + late - 5)
    #expect(Self.delay(path: 400, late: late) < 40 + 30)
  }

  @Test func `a codec that loss hurts more is given more delay`() {
    var robust = DelayPolicy()
    robust.codec = CodecImpairment(base: 0, lossRobustness: 500)
    #expect(Self.delay(path: 80, late: 80, policy: robust) < 70)
    #expect(Self.delay(path: 80, late: 80) > 110)
  }

  /// BBR empties the queue of its link now and then. A transit that returns to its old length is not jitter, but a buffer that
  /// had shortened its delay waits.
  @Test func `a route that is faster for a moment now and then is waited for once or twice, not each time`() {
    let packets: [(sent: Double, arrived: Double?)] = (0..<5000).map { number in
      let sent = Double(number * 20)
      return (sent, sent + (number % 500 >= 480 ? 30 : 50))
    }
    let replay = DryReplay(NetworkTrace(name: "moments", packets: packets))
    #expect(replay.madeUpTicks <= 4, "\(replay.madeUpTicks)")
    #expect(replay.delays.suffix(100).allSatisfy { $0 < 50 + 45 })
  }

  @Test(arguments: [-1e9, -1, 0, 1e300, .infinity, -.infinity, .nan] as [Double])
  func `an impossible round trip is read as the nearest possible one`(_ roundTrip: Double) {
    let path = DelayPolicy.path(roundTrips: roundTrip, nil)
    #expect(path >= 76.5 && path <= 1_076.5)
    var buffer = PlayoutBuffer(clockRateHz: 8000, carriesRepair: false)
    buffer.setPath(milliseconds: roundTrip)
    #expect(Self.delay(path: roundTrip, late: 80) > 40)
    #expect(buffer.depth == 0)
  }
}
