import AppSessions
import CallModel
import Testing
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineMediaSession
import TrunklineSIPDialogs

@testable import CallFlow

private let phone = Surroundings.phone

@Suite struct CallRegistryTests {
  private func registry(_ calls: Call...) -> CallRegistry {
    var registry = CallRegistry()
    for call in calls { registry.insert(call) }
    return registry
  }

  private func walk(_ calls: CallRegistry, after last: CallNumber? = nil) -> [CallID] {
    var (walk, out) = (calls.walk(after: last), [CallID]())
    while let number = walk.next() { out.append(number.call) }
    return out
  }

  @Test func `a call is found by its leg, session, user and age, and by nothing once it is removed`() {
    var calls = registry(makeCall(2, [alice, "bob"]), makeCall(1))
    #expect(calls.count == 2 && calls[callID(2)]?.users.ringing == [alice, "bob"])
    #expect(calls.id(of: LegID.inbound(2)) == callID(2) && calls.id(of: MediaSessionID(raw: 1)) == callID(1))
    #expect(calls.ids(of: alice) == [callID(2), callID(1)] && calls.count(of: "bob") == 1)
    #expect(walk(calls) == [callID(1), callID(2)] && walk(calls, after: CallNumber(makeCall(1))) == [callID(2)])
    #expect(calls.remove(callID(2))?.id == callID(2) && calls.remove(callID(2))?.id == nil)
    #expect(calls.ids(of: alice) == [callID(1)] && calls.ids(of: "bob").isEmpty && calls.id(of: MediaSessionID(raw: 2)) == nil)
    #expect(walk(calls) == [callID(1)])
  }

  @Test func `a leg leads to its call before it exists and after it was removed, until it is detached`() {
    var calls = CallRegistry()
    calls.attach(LegID.inbound(1), to: callID(1))
    #expect(calls.id(of: LegID.inbound(1)) == callID(1) && calls[callID(1)]?.id == nil && calls.isEmpty)
    calls.insert(makeCall(1))
    _ = calls.remove(callID(1))
    #expect(calls.isEmpty && calls.legs == [.inbound(1)])
    calls.detach(LegID.inbound(1))
    calls.detach(LegID.inbound(1))
    #expect(calls.legs.isEmpty)
  }

  @Test func `a second insert changes nothing, and a user gets a call once`() {
    var calls = registry(makeCall(1))
    calls.change(callID(1)) { $0.ringClock.ring(until: seconds(9)) }
    calls.insert(makeCall(1))
    calls.add(alice, to: callID(1))
    calls.add("bob", to: callID(1))
    calls.add("bob", to: callID(1))
    #expect(
      calls[callID(1)]?.ringClock.until == seconds(9) && calls.ids(of: alice) == [callID(1)]
        && calls.ids(of: "bob") == [callID(1)])
  }

  @Test func `a user that is added and rings is forgotten with the call, and so are the users before`() {
    var calls = registry(makeCall(1))
    calls.add("bob", to: callID(1))
    calls.change(callID(1)) { $0.users.ring(for: ["bob"]) }
    _ = calls.remove(callID(1))
    #expect(calls.isEmpty)
  }

  @Test func `inputs of an unknown call, leg or session have no effect`() {
    var calls = registry(makeCall(1))
    calls.add("bob", to: callID(2))
    #expect(calls.change(callID(2)) { $0.winner } == nil && calls.read(callID(2)) { $0.winner } == nil)
    #expect(calls.change(LegID.inbound(2)) { $0.holdSlot(true) } == nil)
    #expect(calls.popDueTimer(of: callID(2), at: seconds(9)) == nil && calls.popDue(at: seconds(9)) == nil)
    #expect(calls.count(of: "bob") == 0 && calls.id(of: MediaSessionID(raw: 9)) == nil && calls.nextDeadline == nil)
  }

  @Test func `a leg is changed where it is; one that its call no longer has is not`() {
    var calls = registry(makeCall(1))
    #expect(calls.change(LegID.inbound(1)) { $0.holdSlot(true) } != nil && calls[callID(1)]?.trunkLeg.holdsSlot == true)
    calls.attach(LegID.outbound(7), to: callID(1))
    #expect(calls.change(LegID.outbound(7)) { $0.holdSlot(true) } == nil)
  }

  @Test func `the deadline of a call is that of its next timer, after each change`() {
    var calls = registry(makeCall(1), makeCall(2))
    calls.change(callID(1)) { $0.ringClock.ring(until: seconds(45), unreached: seconds(3)) }
    calls.change(callID(2)) { $0.ringClock.ring(until: seconds(4)) }
    #expect(calls.nextDeadline == seconds(3) && calls.popDue(at: seconds(2)) == nil)
    calls.change(callID(1)) { $0.ringClock.deviceRang() }
    #expect(calls.nextDeadline == seconds(4))
    _ = calls.remove(callID(2))
    #expect(calls.nextDeadline == seconds(45))
  }

  @Test func `the timers of a due call are returned one by one, then its next one is its deadline`() {
    var calls = registry(makeCall(1))
    calls.change(callID(1)) {
      $0.ringClock.ring(until: seconds(45), unreached: seconds(3))
      $0.ringClock.checkReconnect(at: seconds(2))
    }
    #expect(calls.popDue(at: seconds(5)) == callID(1) && calls.popDue(at: seconds(5)) == nil)
    #expect(calls.popDueTimer(of: callID(1), at: seconds(5)) == .vanished)
    #expect(calls.popDueTimer(of: callID(1), at: seconds(5)) == .unreached)
    #expect(calls.popDueTimer(of: callID(1), at: seconds(5)) == nil && calls.nextDeadline == seconds(45))
    holds(calls.popDue(at: seconds(45)) == callID(1))
    _ = calls.remove(callID(1))
    #expect(calls.popDueTimer(of: callID(1), at: seconds(45)) == nil && calls.nextDeadline == nil)
  }

  @Test func `a read changes no deadline, and a copy of the registry is not changed by the original`() {
    var calls = registry(makeCall(1))
    calls.change(callID(1)) { $0.ringClock.ring(until: seconds(45)) }
    let copy = calls
    #expect(calls.read(callID(1)) { $0.nextDeadline } == seconds(45))
    calls.change(callID(1)) { $0.ringClock.close() }
    #expect(calls.nextDeadline == nil && copy.nextDeadline == seconds(45) && copy[callID(1)]?.ringClock.until == seconds(45))
  }
}
