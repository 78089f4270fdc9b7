import PushPolicy
import Testing
import TrunklineAppProtocol
import TrunklineBytes

@testable import CallFlow
@testable import CallModel

/// The parts of a call that wait: journal, ring, gate, webhook, end.
@Suite struct CallClockTests {
  @Test func `timers are due in their order, and at one instant in that of their kinds`() {
    let (late, early) = (DueTimer(.journal, seconds(2)), DueTimer(.gate, seconds(1)))
    #expect(DueTimer.earliest(late, nil, early) == early && DueTimer.earliest(nil, nil) == nil)
    #expect(DueTimer.earliest(DueTimer(.gate, seconds(1)), DueTimer(.ring, seconds(1)))?.timer == .ring)
  }

  @Test func `a journal entry is requested once and confirmed once, in any order`() {
    var journal = CallJournal()
    #expect(!journal.hasEntry && journal.request(until: seconds(1)) && journal.hasEntry && !journal.isOnDisk)
    #expect(!journal.request(until: seconds(9)) && journal.next == DueTimer(.journal, seconds(1)))
    #expect(journal.confirmed() && !journal.confirmed() && journal.isOnDisk && journal.next == nil)
    holds(!journal.request(until: seconds(9)))
    journal.close()
    #expect(journal.isOnDisk, "it is to be removed")
    var early = CallJournal()
    #expect(early.confirmed() && !early.request(until: seconds(1)))
  }

  @Test func `a call that ends before its entry is on disk waits for none`() {
    var journal = CallJournal()
    _ = journal.request(until: seconds(1))
    for _ in 0..<2 { journal.close() }
    #expect(!journal.hasEntry && journal.next == nil)
  }

  @Test func `a ring waits for its window, a ringing device, reconnects and the verifier, and closed for nothing`() {
    var ring = RingClock()
    #expect(ring.next == nil && ring.until == nil)
    ring.ring(until: seconds(45), unreached: seconds(10))
    #expect(ring.next == DueTimer(.unreached, seconds(10)))
    ring.deviceRang()
    ring.deviceRang()
    #expect(ring.next == DueTimer(.ring, seconds(45)))
    ring.awaitReconnect(until: seconds(6))
    ring.awaitReconnect(until: seconds(5))
    #expect(ring.next == DueTimer(.vanished, seconds(6)), "the last device counts")
    ring.checkReconnect(at: seconds(3))
    ring.verify(until: seconds(2))
    #expect(ring.isVerifying && ring.next == DueTimer(.verification, seconds(2)))
    ring.stop(.verification)
    #expect(ring.isVerifying && ring.next == DueTimer(.vanished, seconds(3)), "until the fallback is applied")
    ring.verified()
    ring.stop(.vanished)
    #expect(!ring.isVerifying && ring.next == DueTimer(.ring, seconds(45)))
    ring.close()
    ring.verified()
    #expect(ring.next == nil && ring.until == nil)
  }

  @Test func `the gate's deadline counts from the tap, with limits, and never exceeds the device's own`() {
    let step = Step.at(100)
    let timers = step.configuration.timers
    for (answer, isWarm, due) in [
      (CallAnswer(), true, timers.mediaGateWarm), (CallAnswer(), false, timers.mediaGateCold),
    ] {
      var gate = MediaGate()
      #expect(gate.tapped(answer, isWarm: isWarm, step) == step.now && gate.next == DueTimer(.gate, step.now + due))
    }
    var (answer, gate) = (CallAnswer(), MediaGate())
    answer.ageMs = .max
    let tap = gate.tapped(answer, isWarm: true, step)
    #expect(
      tap == step.now - .milliseconds(Limits.answerAgeMilliseconds.upperBound) && gate.next.map { $0.at >= step.now } == true)
    answer.ageMs = -5
    #expect(gate.tapped(answer, isWarm: true, step) <= step.now, "a tap is never later")
    answer.timeoutMs = Limits.answerTimeoutMilliseconds.lowerBound
    _ = gate.tapped(answer, isWarm: false, step)
    #expect(gate.next.map { $0.at < step.now + timers.mediaGateCold } == true)
  }

  @Test func `a failed handshake waits 3 s for a restart; an open or closed gate waits for nothing`() {
    var gate = MediaGate()
    gate.restarted()
    gate.opened()
    #expect(gate.next == nil)
    gate.wait(until: seconds(20))
    gate.handshakeFailed(at: seconds(1))
    #expect(gate.next == DueTimer(.restart, seconds(4)))
    gate.restarted()
    #expect(gate.next == DueTimer(.gate, seconds(20)))
    gate.handshakeFailed(at: seconds(1))
    gate.opened()
    #expect(gate.next == nil)
    gate.keepFirstWords(until: seconds(30))
    gate.opened()
    #expect(gate.next == DueTimer(.mediaActive, seconds(30)))
    gate.playing()
    gate.playing()
    #expect(gate.next == nil)
    gate.wait(until: seconds(40))
    gate.close()
    #expect(gate.next == nil)
  }

  private func query(_ fallback: Routing.Hook.Fallback = .users) -> RouteQuery {
    let hook = Routing.Hook(Webhook(url: "http://127.0.0.1/", key: Redacted([])), fallback: fallback)
    return RouteQuery(hook: hook, toward: .loopback, diversions: Diversions())
  }

  @Test func `the first end of a webhook's query counts`() {
    var route = PendingRoute()
    #expect(route.end() == nil && !route.isPending)
    route.ask(query(), until: seconds(1))
    #expect(route.next == DueTimer(.route, seconds(1)))
    route.expired()
    #expect(route.next == nil && route.isPending, "the fallback follows")
    #expect(route.end() != nil && route.end() == nil)
  }

  @Test func `an answer in time ends the query with its deadline, and the next query has a deadline of its own`() {
    var route = PendingRoute()
    route.expired()
    #expect(!route.isPending && route.next == nil, "none was pending")
    route.ask(query(), until: seconds(1))
    #expect(route.end()?.hook.fallback == .users && !route.isPending && route.next == nil)
    route.ask(query(.code(486)), until: seconds(9))
    #expect(route.isPending && route.next == DueTimer(.route, seconds(9)))
    route.ask(query(.user("bob")), until: seconds(8))
    #expect(route.next == DueTimer(.route, seconds(8)) && route.end()?.hook.fallback == .user("bob"), "a later query replaces it")
  }

  @Test func `the first end counts, and ends the longest call's deadline; the record waits for the statistics`() {
    var conclusion = CallConclusion()
    conclusion.limit(until: seconds(100))
    #expect(conclusion.next == DueTimer(.longestCall, seconds(100)))
    for (reason, deadline) in [(EndReason.busy, 5.0), (.server, 9)] {
      conclusion.end(CallRecord.End(reason, by: .app), others: .busyElsewhere, statisticsUntil: seconds(deadline))
    }
    conclusion.limit(until: seconds(1))
    #expect(conclusion.end?.reason == .busy && conclusion.reasonForOthers == .busyElsewhere)
    #expect(conclusion.next == DueTimer(.finalStatistics, seconds(5)) && !conclusion.isDisowned)
    conclusion.stop(.finalStatistics)
    conclusion.disown()
    #expect(conclusion.next == nil && conclusion.isDisowned)
  }

  @Test func `a live call's limit moves, and each timer stops alone and once`() {
    var conclusion = CallConclusion()
    for _ in 0..<2 { conclusion.stop(.longestCall) }
    #expect(conclusion.next == nil && conclusion.end == nil, "none was set")
    for deadline in [100.0, 50] { conclusion.limit(until: seconds(deadline)) }
    conclusion.stop(.finalStatistics)
    #expect(conclusion.next == DueTimer(.longestCall, seconds(50)))
    conclusion.stop(.longestCall)
    #expect(conclusion.next == nil)
    conclusion.end(CallRecord.End(.busy, by: .app), others: .busyElsewhere, statisticsUntil: seconds(60))
    conclusion.stop(.longestCall)
    #expect(conclusion.next == DueTimer(.finalStatistics, seconds(60)))
  }

  @Test func `a call that another node has recorded still ends, once`() {
    var conclusion = CallConclusion()
    for _ in 0..<2 { conclusion.disown() }
    #expect(conclusion.isDisowned && conclusion.end == nil && conclusion.reasonForOthers == nil)
    conclusion.end(CallRecord.End(.server, by: .gateway), others: .server, statisticsUntil: seconds(5))
    conclusion.disown()
    #expect(conclusion.isDisowned && conclusion.end?.reason == .server && conclusion.next?.timer == .finalStatistics)
  }
}
