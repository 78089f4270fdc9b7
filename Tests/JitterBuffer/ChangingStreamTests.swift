import Testing
import TrunklineBytes
import TrunklineJitterBuffer
import TrunklineRTP

/// A sender whose packets' length, source and timestamps change while it is played in ticks of 20 ms.
@Suite struct ChangingStreamTests {
  /// Sends `packets`, ticks 7 ms after each 20 ms, and returns the fetched frames with their times, and the ticks with concealed
  /// audio.
  private func play(_ packets: [(at: Int, sequence: Int, timestamp: Int, units: Int, ssrc: UInt32)], until end: Int) -> (
    fetched: [(at: Int, timestamp: Int)], madeUp: [Int], statistics: PlayoutStatistics
  ) {
    var buffer = PlayoutBuffer(clockRateHz: 8000, carriesRepair: false)
    let payload = [UInt8](repeating: 0, count: 480)
    var (next, pending, fetched, madeUp) = (0, 0, [(at: Int, timestamp: Int)](), [Int]())
    for now in stride(from: 7, to: end, by: 20) {
      while next < packets.count, packets[next].at <= now {
        let packet = packets[next]
        let header = RTPHeader(
          payloadType: 0, marker: false, sequence: SequenceNumber(raw: UInt16(truncatingIfNeeded: packet.sequence)),
          timestamp: RTPTimestamp(raw: UInt32(truncatingIfNeeded: packet.timestamp)), ssrc: SSRC(raw: packet.ssrc))
        _ = buffer.insert(
          header, payload: payload.span.extracting(0..<packet.units), duration: packet.units, at: .zero + .milliseconds(packet.at)
        )
        next += 1
      }
      while pending < 160 {
        switch buffer.fetch(at: .zero + .milliseconds(now)) {
        case .packet(let packet):
          fetched.append((now, Int(buffer.nextTimestamp.raw) - packet.duration))
          pending += packet.duration
        case .repair(let units, _), .lost(let units):
          pending += units
          madeUp.append(now)
        case .pause, .empty:
          buffer.madeUp(160 - pending)
          pending = 160
          madeUp.append(now)
        }
      }
      pending -= 160
      if case .shrink(let units) = buffer.decide(at: .zero + .milliseconds(now), pending: pending, tick: 160).adjustment {
        pending -= min(pending, units)
      }
    }
    return (fetched, madeUp, buffer.statistics)
  }

  @Test(arguments: [10, 20, 30, 40, 60], [10, 20, 30, 40, 60])
  func `packets that become longer or shorter are all played, with at most a packet made up`(_ before: Int, _ after: Int) {
    var (packets, time) = ([(at: Int, sequence: Int, timestamp: Int, units: Int, ssrc: UInt32)](), 0)
    while time < 6000 {
      let length = time < 3000 ? before : after
      packets.append((time + length, 65_500 + packets.count, 0x1000 + time * 8, length * 8, 1))
      time += length
    }
    let result = play(packets, until: 6300)
    #expect(result.fetched.map(\.timestamp) == packets.map(\.timestamp))
    #expect(result.statistics.late == 0 && result.statistics.missing == 0 && result.statistics.resynchronised == 0)
    let inTheMiddle = result.madeUp.filter { 200..<6000 ~= $0 }
    #expect(inTheMiddle.count <= 4, "\(inTheMiddle)")
  }

  @Test(arguments: [(2, 0, 0), (1, 0, 40_000_000), (1, 20_000, 0), (7, 999, 77_777_777), (1, 0, -40_000)])
  func `another source, sequence or timeline is played again within 200 ms`(_ change: (ssrc: Int, sequence: Int, timestamp: Int))
  {
    let packets = (0..<200).map { number -> (at: Int, sequence: Int, timestamp: Int, units: Int, ssrc: UInt32) in
      let isChanged = number >= 100
      return (
        number * 20, number + (isChanged ? change.sequence : 0), 50_000_000 + number * 160 + (isChanged ? change.timestamp : 0),
        160,
        isChanged ? UInt32(change.ssrc) : 1
      )
    }
    let result = play(packets, until: 4100)
    let first = result.fetched.first { $0.timestamp >= packets[100].timestamp && $0.at >= 2000 }
    #expect((first?.at ?? .max) <= 2200)
    #expect(result.madeUp.count { $0 >= 2200 && $0 < 3990 } == 0)
    #expect(result.fetched.count >= 195)
  }

  @Test func `a talker's pauses are no losses, and each spurt begins when it is due`() {
    var packets: [(at: Int, sequence: Int, timestamp: Int, units: Int, ssrc: UInt32)] = []
    for spurt in 0..<10 {
      for number in 0..<25 {
        let time = spurt * 1500 + number * 20
        packets.append((time, packets.count, time * 8, 160, 1))
      }
    }
    let result = play(packets, until: 15_000)
    #expect(result.fetched.count == packets.count)
    #expect(result.statistics.missing == 0 && result.statistics.late == 0)
    for (played, sent) in zip(result.fetched, packets) { #expect(played.at - sent.at <= 60) }
  }
}
