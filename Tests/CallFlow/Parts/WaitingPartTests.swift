import AppSessions
import Testing
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineSDP
import TrunklineSIPDialogs

@testable import CallFlow
@testable import CallModel

private let phone = Surroundings.phone
private let bob = DeviceKey(user: "bob", device: "desk")

@Suite struct PendingCallTests {
  private func isIncoming(_ reservation: PendingCalls.Reservation?) -> Bool {
    if case .incoming? = reservation { true } else { false }
  }

  @Test func `each wait ends with its own answer, once; another kind of answer leaves it`() throws {
    var pending = PendingCalls()
    pending.waitForMedia(callID(1), then: .incoming(makeCall(1)))
    pending.waitForLocation(.init(call: makeCall(2), user: alice, toward: .loopback))
    pending.waitForClaim(callID(3), then: .originated(makeCall(3), QuestionID(7)))
    holds(pending.popClaim(callID(1)) == nil && pending.popLocating(callID(1)) == nil)
    holds(pending.popReservation(callID(2)) == nil && pending.popClaim(callID(2)) == nil)
    holds(pending.popReservation(callID(3)) == nil && pending.popLocating(callID(3)) == nil)
    #expect((1...3).allSatisfy { pending.has(callID($0)) })
    holds(isIncoming(pending.popReservation(callID(1))) && pending.popReservation(callID(1)) == nil)
    let located = pending.popLocating(callID(2))
    #expect(located?.user == alice && located?.call.id == callID(2) && pending.popLocating(callID(2)) == nil)
    guard case .originated(let made, QuestionID(7))? = pending.popClaim(callID(3)) else {
      Issue.record("the claim was lost")
      return
    }
    #expect(made.id == callID(3) && pending.popClaim(callID(3)) == nil && pending.isEmpty)
  }

  @Test func `a call waits for one answer at a time`() {
    var pending = PendingCalls()
    pending.waitForLocation(.init(call: makeCall(1), user: alice, toward: .loopback))
    pending.waitForMedia(callID(1), then: .incoming(makeCall(1)))
    #expect(pending.popLocating(callID(1)) == nil && isIncoming(pending.popReservation(callID(1))) && pending.isEmpty)
  }

  @Test func `an answer without a question has no effect`() {
    var pending = PendingCalls()
    #expect(
      pending.popReservation(callID(1)) == nil && pending.popLocating(callID(1)) == nil && pending.popClaim(callID(1)) == nil)
    #expect(!pending.has(callID(1)) && pending.isEmpty)
  }
}

@Suite struct SlotRequestTests {
  private func transfer(_ leg: UInt64) -> CallMachine.SlotRequest {
    .transfer(
      .inbound(leg),
      TransferTarget(
        number: nil, uri: nil, referral: Referral(target: .init(number: "+3"), uri: "sip:+3@x", replaces: nil, referredBy: nil)),
      [makeTrunk()])
  }

  @Test func `a call has one request, the last one, and it is answered once`() {
    var slots = SlotRequests()
    slots.wait(transfer(1), of: callID(1))
    slots.wait(transfer(2), of: callID(1))
    guard case .transfer(.inbound(2), _, _)? = slots.remove(callID(1)) else {
      Issue.record("the last request was lost")
      return
    }
    #expect(!slots.isWaiting(callID(1)) && slots.remove(callID(1)) == nil && slots.remove(callID(2)) == nil)
  }
}

@Suite struct TombstoneQueryTests {
  @Test func `the first reader asks, the others wait with it, and all get the answer once in their order`() {
    var queries = TombstoneQueries()
    #expect(queries.wait(.session(phone), for: callID(1)) == .ask)
    #expect(queries.wait(.session(bob), for: callID(1)) == .wait && queries.wait(.session(bob), for: callID(2)) == .ask)
    let devices = queries.remove(callID(1)).map { if case .session(let key) = $0 { key } else { bob } }
    #expect(devices == [phone, bob] && queries.remove(callID(1)).isEmpty)
    #expect(queries.wait(.session(phone), for: callID(1)) == .ask)
  }

  @Test func `an answer without a query has no reader`() {
    var queries = TombstoneQueries()
    #expect(queries.remove(callID(1)).isEmpty)
  }

  @Test func `queries and the readers of one have limits`() {
    var queries = TombstoneQueries()
    for reader in 0..<Limits.tombstoneReaders {
      holds(queries.wait(.session(phone), for: callID(0)) != .full, "reader \(reader)")
    }
    #expect(queries.wait(.session(phone), for: callID(0)) == .full)
    for call in 1..<Limits.askedTombstones { holds(queries.wait(.session(phone), for: callID(call)) == .ask) }
    #expect(queries.wait(.session(phone), for: callID(-1 & 0xffff_ffff)) == .full)
    _ = queries.remove(callID(0))
    #expect(queries.wait(.session(phone), for: callID(0)) == .ask)
  }
}

@Suite struct SharedGrantStateTests {
  @Test func `grants may be missing until all were read, and while it is uncertain`() {
    var state = SharedGrantState()
    #expect(state.mayLackGrants && !state.wasRead)
    state.setUncertain(false)
    #expect(state.mayLackGrants)
    state.read()
    state.read()
    #expect(!state.mayLackGrants && state.wasRead)
    state.setUncertain(true)
    state.setUncertain(true)
    #expect(state.mayLackGrants && state.wasRead)
    state.setUncertain(false)
    #expect(!state.mayLackGrants)
  }

  @Test func `a digest is reported when it changes; none at first`() {
    var state = SharedGrantState()
    #expect([0, 5, 5, 0, 0, 5].map { state.report($0) } == [false, true, false, true, false, true])
  }
}
