import Testing
import TrunklineBytes
import TrunklineRTP

@testable import TrunklineMediaSession

private func seconds(_ count: Double) -> Instant { .zero + .nanoseconds(Int64(count * 1e9)) }

@Suite struct ReportScheduleTests {
  @Test func `quality is due every five seconds from the start on, and one that was missed is made up`() {
    var schedule = ReportSchedule(seed: 1, cname: "us")
    let before = schedule.qualityIsDue(at: seconds(1_000))
    schedule.start(at: seconds(10))
    let due = [12, 15, 15.1, 26, 26, 26].map { schedule.qualityIsDue(at: seconds($0)) }
    #expect(!before && due == [false, true, false, true, true, false])
    schedule.start(at: seconds(30))
    let again = [34.9, 35].map { schedule.qualityIsDue(at: seconds($0)) }
    #expect(again == [false, true])
  }

  @Test func `reports of two legs are due at times of their own, and never before half an interval`() {
    var schedule = ReportSchedule(seed: 7, cname: "us")
    var (one, two) = (ReportState(interval: .seconds(5)), ReportState(interval: .seconds(5)))
    var (first, second): ([Double], [Double]) = ([], [])
    for tick in 0..<3_000 {
      let now = Double(tick) * 0.02
      if schedule.isDue(&one, at: seconds(now)) { first.append(now) }
      if schedule.isDue(&two, at: seconds(now)) { second.append(now) }
    }
    #expect(first != second && first.count > 5 && second.count > 5)
    #expect(zip(first, first.dropFirst()).allSatisfy { $1 - $0 >= 2.48 && $1 - $0 <= 7.52 })
  }
}

@Suite struct LivenessTests {
  @Test func `a peer that never sent cannot come back, and a restart does not invent a packet`() {
    var liveness = Liveness()
    liveness.restart(at: seconds(5))
    #expect(liveness.last == nil && !liveness.isSilent)
  }

  @Test func `the first packet after the silence reports the return, once`() {
    var liveness = Liveness()
    var returns = [liveness.received(at: seconds(1))]
    liveness.fellSilent()
    liveness.fellSilent()
    returns += [liveness.received(at: seconds(20)), liveness.received(at: seconds(21))]
    #expect(returns == [false, true, false] && liveness.last == seconds(21))
    liveness.fellSilent()
    liveness.restart(at: seconds(30))
    #expect(liveness.isSilent && liveness.last == seconds(30))
  }

  @Test func `silence counts from the last packet, or from the end of an interruption`() {
    var watch = SilenceWatch()
    #expect(watch.length(since: .zero, at: seconds(4)) == .seconds(4))
    watch.check(at: seconds(100))
    watch.check(at: seconds(102))
    #expect(watch.length(since: seconds(90), at: seconds(102)) == .seconds(12))
    watch.check(at: seconds(105))
    watch.check(at: seconds(105))
    #expect(watch.length(since: seconds(90), at: seconds(107)) == .seconds(2))
    #expect(watch.length(since: seconds(106), at: seconds(107)) == .seconds(1))
  }
}

@Suite struct PacketCountTests {
  @Test func `a run of an unknown type is reported once; audio ends the replaced stream, a refused packet was not played`() {
    var unheard = UnheardPackets()
    var reports = 0
    for number in 0..<200 where unheard.unknownCame(96, at: seconds(Double(number) * 0.02)) { reports += 1 }
    #expect(reports == 1 && unheard.unknown == 200 && unheard.streamed == 200 && unheard.payloadType == 96)
    unheard.audioReceived()
    unheard.audioReceived()
    unheard.audioRefused()
    _ = unheard.unknownCame(96, at: seconds(9))
    #expect(unheard.played == 1 && unheard.streamed == 200 && unheard.unknown == 201)
  }

  @Test func `rare packets of an unknown type are keep-alives`() {
    var unheard = UnheardPackets()
    var reports = 0
    for number in 0..<200 {
      unheard.audioReceived()
      if unheard.unknownCame(96, at: seconds(Double(number) * 15)) { reports += 1 }
    }
    #expect(reports == 0 && unheard.streamed == 0)
  }

  @Test func `an event ends the report of tones, in any order`() {
    var unheard = UnheardPackets()
    unheard.eventCame()
    let tones = (0..<Limits.unannouncedTones).map { _ in unheard.toneCame() }
    unheard.eventCame()
    #expect(!unheard.mayNameTones && tones.last == true && tones.first == false)
  }

  @Test func `octets, the last duration and refused packets are counted apart`() {
    var totals = ReceivedTotals()
    #expect(totals.payloadBytes == 0 && totals.dropped == 0 && totals.packetMilliseconds == 20)
    totals.received(payloadBytes: 160)
    totals.received(payloadBytes: 80)
    totals.packetDropped()
    totals.audioReceived(milliseconds: 10)
    #expect(totals.payloadBytes == 240 && totals.dropped == 1 && totals.packetMilliseconds == 10)
  }
}
