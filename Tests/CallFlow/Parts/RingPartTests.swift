import AppSessions
import Testing
import TrunklineAppProtocol
import TrunklineBytes

@testable import CallFlow
@testable import CallModel

private let phone = Surroundings.phone
private let tablet = Surroundings.tablet

@Suite struct RingPartTests {
  private let over = CallOver(.callerCancelled, by: .trunk, at: 1)

  @Test func `a call is over once for each device`() {
    var terminals = Terminals()
    holds(terminals.end(phone, Terminal(over: over, isByDevice: false, isUnseen: false)))
    holds(!terminals.end(phone, Terminal(over: CallOver(.busy, by: .app, at: 2), isByDevice: true, isUnseen: true)))
    #expect(terminals[phone]?.over.reason == .callerCancelled && terminals[tablet] == nil && terminals.popUnseen(phone) == nil)
    // a device that was never notified
    terminals.acked(tablet)
    terminals.socketLost(tablet)
    terminals.resumed(tablet)
    terminals.pushRefused(tablet)
    #expect(terminals.popUnseen(tablet) == nil && terminals.all.count == 1)
  }

  @Test func `a message whose socket broke before its ack is sent again, once`() {
    for (isAcked, resumes) in [(false, false), (true, false), (false, true)] {
      var terminals = Terminals()
      terminals.end(phone, Terminal(over: over, isByDevice: false, isUnseen: false))
      if isAcked { terminals.acked(phone) }
      terminals.socketLost(phone)
      if resumes { terminals.resumed(phone) }
      #expect((terminals.popUnseen(phone) != nil) == (!isAcked && !resumes) && terminals.popUnseen(phone) == nil)
    }
  }

  @Test func `a device that was only pushed to gets the end whatever resumes, unless the push was refused`() {
    for isRefused in [true, false] {
      var terminals = Terminals()
      terminals.end(phone, Terminal(over: over, isByDevice: false, isUnseen: true, isOfPushOnly: true))
      terminals.resumed(phone)
      if isRefused { terminals.pushRefused(phone) }
      #expect((terminals.popUnseen(phone) != nil) == !isRefused)
    }
  }

  @Test func `a device that ended the call itself gets no message`() {
    var terminals = Terminals()
    terminals.end(phone, Terminal(over: over, isByDevice: true, isUnseen: false))
    terminals.socketLost(phone)
    #expect(terminals.popUnseen(phone) == nil)
  }

  @Test func `refusals decide the end, whatever their order`() {
    let rows: [([CallReject.Reason], blocked: Int, filtered: Int, unusable: Int, EndReason?, DiversionTrigger?)] = [
      ([], 0, 0, 0, nil, nil), ([.busy], 0, 1, 0, .busy, .busy), ([.busy, .declined], 0, 0, 0, .declined, .declined),
      ([.mediaFailed], 1, 0, 1, .mediaFailed, .mediaFailed), ([], 1, 0, 1, .codec, nil), ([], 2, 0, 0, .blocked, nil),
      ([], 1, 1, 0, .dnd, .unreached),
    ]
    for (rejects, blocked, filtered, unusable, reason, trigger) in rows {
      for rejects in [rejects, rejects.reversed()] {
        var report = RingReport()
        for reject in rejects { report.rejected(reject) }
        for _ in 0..<blocked { report.unavailable(isBlocked: true) }
        for _ in 0..<filtered { report.unavailable(isBlocked: false) }
        for _ in 0..<unusable { report.describedUnusably() }
        #expect(report.ending?.ending.reason == reason && report.ending?.trigger == trigger, "\(rejects) \(blocked) \(filtered)")
        report.offered(2)
        report.removeRefusals()
        report.removeRefusals()
        #expect(report.ending == nil && report.offeredDevices == 2, "the next user's devices decide")
      }
    }
  }

  @Test func `offers and rings are no refusal, and refusals of the next user's devices count alone`() {
    var report = RingReport()
    report.removeRefusals()
    for count in [2, 0, 3] { report.offered(count) }
    report.rang(CallRecord.Ring(phone, CallRinging()))
    #expect(report.ending == nil && report.offeredDevices == 5)
    report.rejected(.declined)
    report.removeRefusals()
    for _ in 0..<2 { report.rejected(.busy) }
    #expect(report.ending?.ending.reason == .busy && report.firstRing?.device == phone.device, "the record keeps the first ring")
  }

  @Test func `the record has what the first device measured`() {
    var report = RingReport()
    for (key, milliseconds) in [(phone, 10), (tablet, 20)] {
      report.rang(CallRecord.Ring(key, CallRinging(pushMs: milliseconds)))
    }
    #expect(report.firstRing?.device == phone.device && report.firstRing?.pushMs == 10)
  }
}
