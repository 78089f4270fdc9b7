import Testing
import TrunklineAppProtocol

@testable import CallFlow
@testable import CallModel

@Suite struct TransferPartTests {
  private let ours = CallRecord.Transfer(by: .app, number: "+1")

  @Test func `our REFER: each NOTIFY until the end, and nothing after it`() {
    for (code, isFinal, expected) in [
      (100, false, .trying), (180, false, .ringing), (nil, false, .trying), (200, true, .done), (486, true, .failed),
      (100, true, .failed),
      (nil, true, .failed),
    ] as [(Int?, Bool, CallTransferred.Status)] {
      var transfers = Transfers()
      transfers.ask(ours)
      #expect(transfers.answered(202) == .trying)
      #expect(transfers.reported(code, isFinal: isFinal) == expected, "\(code ?? 0) \(isFinal)")
      #expect(transfers.isAsked != isFinal)
      #expect(transfers.made.last?.sip == (isFinal && (code ?? 0) >= 200 ? code : nil))
      if isFinal { #expect(transfers.reported(200, isFinal: true) == nil && transfers.answered(202) == nil, "a repeat") }
    }
  }

  @Test func `a refused REFER ends the request; without one every report is another's`() {
    var transfers = Transfers()
    #expect(transfers.answered(202) == nil && transfers.reported(200, isFinal: true) == nil && transfers.made.isEmpty)
    transfers.ask(ours)
    #expect(transfers.answered(603) == .failed && !transfers.isAsked && transfers.made.last?.sip == 603)
    #expect(transfers.reported(200, isFinal: true) == nil && transfers.made.last?.sip == 603, "the first end counts")
  }

  @Test func `each transfer that is followed is a hop, and Max-Forwards only decreases`() {
    var transfers = Transfers(maxForwards: 10, followed: Limits.diversions - 1)
    #expect(transfers.mayFollow)
    transfers.follow(.init(by: .trunk), maxForwards: 20)
    #expect(!transfers.mayFollow && !transfers.mayBeReplaced && transfers.maxForwards == 10)
    transfers.follow(.init(by: .trunk), maxForwards: 1)
    #expect(!transfers.hasForwards)
    #expect(!Transfers(maxForwards: 1).mayFollow && Transfers(maxForwards: 1).mayBeReplaced)
  }

  @Test func `the record has the latest transfers; a leg or an end of none is ignored`() {
    var transfers = Transfers()
    transfers.invited(over: "a", sipCallID: "x")
    transfers.end(200)
    #expect(transfers.made.isEmpty)
    for number in 0...Limits.recordedTransfers { transfers.follow(.init(by: .trunk, number: "\(number)")) }
    transfers.invited(over: "a", sipCallID: "x")
    #expect(
      transfers.made.count == Limits.recordedTransfers && transfers.made[0].number == "1" && transfers.made.last?.trunk == "a")
  }
}
