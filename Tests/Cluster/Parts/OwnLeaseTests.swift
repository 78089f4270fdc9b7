import Testing
import TrunklineBytes

@testable import Cluster

@Suite struct OwnLeaseTests {
  /// With a lease from a renewal that was sent at 1 s.
  private func leased() -> (own: OwnLease, step: Step) {
    var (own, step) = (OwnLease(machineSettings()), Step.at(1))
    own.renew(isReaper: false, &step)
    #expect(own.granted(sent: seconds(1), &step) && own.update(&step) == .began)
    return (own, step)
  }

  @Test func `away, isolated and up follow connection and lease, and each change is reported once`() {
    var (own, step) = (OwnLease(machineSettings()), Step.at(1, connected: false))
    #expect(own.update(&step) == nil && step.actions.isEmpty)
    step.requests.connect()
    #expect(own.update(&step) == nil && own.state == .isolated)
    _ = own.granted(sent: seconds(1), &step)
    #expect(own.update(&step) == .began && own.update(&step) == nil && own.state == .up)
    step = Step.at(7, after: step)
    #expect(own.update(&step) == .ended && own.state == .isolated)
    step.requests.disconnect()
    #expect(own.update(&step) == nil && own.state == .away && step.others.count == 2)
  }

  @Test func `a lease counts from the sending; an older grant, or the same one again, does not shorten it`() {
    var (own, step) = leased()
    step = Step.at(3, after: step)
    #expect(
      !own.granted(sent: seconds(2), &step) && !own.granted(sent: seconds(2), &step) && !own.granted(sent: seconds(1), &step))
    #expect(own.isValid(at: seconds(7.9)) && !own.isValid(at: seconds(8)) && own.age(at: seconds(3)) == .seconds(1))
  }

  @Test func `a grant that arrives after its lease is over gives none`() {
    var (own, step) = (OwnLease(machineSettings()), Step.at(20))
    #expect(own.granted(sent: seconds(1), &step) && !own.isValid(at: step.now) && own.update(&step) == nil)
  }

  @Test func `another process of the name is probed once at a time; its answer, or 15 s, end this one`() {
    for isAnswered in [true, false] {
      var (own, step) = (OwnLease(machineSettings()), Step.at(1))
      var twin = lease(Incarnation(node: "n0", started: 9))
      twin.sip = "sip:elsewhere"
      for _ in 0..<2 { #expect(own.nameIsInUse(by: twin, &step) == .waiting) }
      #expect(step.others.count == 1 && own.namesake == twin)
      #expect(own.probed(.silent, &step) == .waiting && own.nameIsInUse(by: twin, &step) == .waiting && step.others.count == 2)
      step = Step.at(isAnswered ? 2 : 17, after: step)
      #expect((isAnswered ? own.probed(.answered, &step) : own.nameIsInUse(by: twin, &step)) == .waiting)
      #expect(step.requests.isClosed && step.others.count == 1)
      // closed: nothing follows
      #expect(own.nameIsInUse(by: twin, &step) == .waiting && own.probed(.answered, &step) == .waiting && step.others.count == 1)
    }
  }

  @Test func `a process at our own address is not probed: our own user agent would answer`() {
    var (own, step) = (OwnLease(machineSettings()), Step.at(1))
    #expect(own.nameIsInUse(by: lease(Incarnation(node: "n0", started: 9)), &step) == .waiting && step.others.isEmpty)
  }

  @Test func `a refused probe, the predecessor, and a ghost of an older incarnation are over`() {
    var (own, step) = (OwnLease(machineSettings(predecessor: Incarnation(node: "n0", started: 1))), Step.at(1))
    #expect(own.probed(.refused, &step) == .waiting)
    #expect(own.nameIsInUse(by: lease(Incarnation(node: "n0", started: 1)), &step) == .isOver)
    _ = own.nameIsInUse(by: lease(Incarnation(node: "n0", started: 9)), &step)
    #expect(own.probed(.refused, &step) == .isOver)
    own.nameIsFree()
    #expect(own.namesake == nil)
    var (late, next) = leased()
    #expect(late.nameIsInUse(by: lease(Incarnation(node: "n0", started: 2)), &next) == .isOver && late.isValid(at: next.now))
    #expect(late.nameIsInUse(by: lease(Incarnation(node: "n0", started: 9)), &next) == .lost && !late.isValid(at: next.now))
  }

  @Test func `news are renewed early, once, and only the first drain and changed troubles are news`() {
    var (own, step) = leased()
    step = Step.at(1.05, after: step)
    #expect(own.drain(&step) && !own.drain(&step) && !own.mayLead)
    #expect(step.timers.next == seconds(1.2))
    own.report(["carrier": "down"], &step)
    own.report(["carrier": "down"], &step)
    own.load(calls: 3, sessions: 4, refuses: true, &step)
    #expect(own.published.calls == 3 && own.published.refuses && own.published.troubles.count == 1)
    #expect(step.timers.next == seconds(1.2))
  }

  @Test func `after its stop a node renews nothing`() {
    var (own, step) = leased()
    own.stop(&step)
    step = Step.at(2, after: step)
    own.renew(isReaper: false, &step)
    #expect(step.sent.isEmpty && own.isStopping && own.update(&step) == .ended && !own.mayLead)
  }

  @Test func `the clock is reported first and when it has moved by a second; a nonsensical one never`() {
    var (own, step) = (OwnLease(machineSettings()), Step.at(1))
    for clock in [-1, 1 << 60, 50_000, 50_900, 49_200, 51_000, 51_000] as [Int64] { own.received(clock: clock, &step) }
    #expect(step.others.count == 2)
  }
}
