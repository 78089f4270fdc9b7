import CallFlow
import Testing
import TrunklineAppProtocol
import TrunklineBytes

@testable import Cluster

@Suite struct UnconfirmedEndTests {
  private let stored = seconds(1)

  /// The lease has ended, and a call of it.
  private func open(_ calls: Int = 1) -> (ends: UnconfirmedEnds, step: Step) {
    var (ends, step) = (UnconfirmedEnds(us), Step.at(10))
    ends.leaseEnded(&step)
    for call in 0..<calls { #expect(ends.hold(callID(call), stored, nil, &step)) }
    return (ends, step)
  }
  private func page(_ calls: [Int], next: UInt64 = 0, dropped: Int = 0) -> Result<SharedStoreReply, SharedStoreFailure> {
    .success(.entries(calls.map { CallEntry(line($0), users: ["alice"]) }, next: next, dropped: dropped))
  }

  @Test func `a record waits only while others may have closed its call, and only if the call had an entry`() {
    var (ends, step) = (UnconfirmedEnds(us), Step.at(10))
    #expect(!ends.hold(callID(1), stored, nil, &step))
    ends.leaseEnded(&step)
    #expect(!ends.hold(callID(1), nil, nil, &step) && ends.hold(callID(2), stored, nil, &step))
    #expect(ends.count == 1 && step.due == [.unconfirmedEnds])
  }

  @Test func `entries are read twice, and the records are released when none is missing`() {
    var (ends, step) = open()
    step = Step.at(20, after: step)
    #expect(ends.leaseIsBack(hadNone: true, hasStoredCalls: false, &step).isEmpty)
    #expect(step.sent == [.entries(of: us, cursor: 0)])
    // two pages, then the second reading
    var found = ends.read(page([5], next: 7), sent: seconds(20), live: CallTable(), &step)
    #expect(found.missing.isEmpty && step.sent.last == .entries(of: us, cursor: 7))
    found = ends.read(page([0]), sent: seconds(20), live: CallTable(), &step)
    #expect(found.missing.isEmpty && found.released.isEmpty && step.due.first == .ownEntries)
    step = Step.at(23, after: step)
    ends.startReading(isSecond: true, &step)
    found = ends.read(page([0]), sent: seconds(23), live: CallTable(), &step)
    #expect(found.released.map(\.call) == [callID(0)] && ends.isEmpty)
    // once
    #expect(ends.end(&step).isEmpty && ends.settle(callID(0)).isEmpty)
  }

  @Test func `a missing entry is reported in each reading, of live and ended calls, in order`() {
    var (ends, step) = open(2)
    var live = CallTable()
    _ = live.start(line(7), ["alice"])
    live.confirm(callID(7), sent: stored)
    step = Step.at(20, after: step)
    _ = ends.leaseIsBack(hadNone: true, hasStoredCalls: true, &step)
    let found = ends.read(page([0]), sent: seconds(20), live: live, &step)
    #expect(found.missing == [callID(1), callID(7)] && found.released.isEmpty)
    ends.remove(callID(1))
    #expect(ends.settle(callID(1)).isEmpty && ends.settle(callID(0)).map(\.call) == [callID(0)])
  }

  @Test func `replies of an earlier reading, without a reading, and of a lost connection change nothing`() {
    var (ends, step) = open()
    #expect(ends.read(page([]), sent: seconds(10), live: CallTable(), &step).missing.isEmpty)
    step = Step.at(20, after: step)
    _ = ends.leaseIsBack(hadNone: true, hasStoredCalls: false, &step)
    #expect(ends.read(page([]), sent: seconds(19), live: CallTable(), &step).missing.isEmpty)
    ends.disconnected(&step)
    #expect(ends.read(page([]), sent: seconds(20), live: CallTable(), &step).missing.isEmpty && ends.count == 1)
  }

  @Test func `a failed reading is repeated; one that cannot be decoded, or a flush, proves nothing and releases all`() {
    for isFlush in [false, true] {
      var (ends, step) = open(3)
      step = Step.at(20, after: step)
      _ = ends.leaseIsBack(hadNone: true, hasStoredCalls: false, &step)
      #expect(ends.read(.failure(.timeout), sent: seconds(20), live: CallTable(), &step).released.isEmpty)
      #expect(step.due.contains(.ownEntries))
      ends.startReading(isSecond: true, &step)
      ends.startReading(isSecond: true, &step)
      #expect(step.sent.count == 2)
      let released =
        isFlush
        ? ends.flushed(&step) : ends.read(page([], dropped: 1), sent: seconds(20), live: CallTable(), &step).released
      #expect(released.map(\.call) == (0..<3).map(callID) && ends.isEmpty && ends.isOpen == isFlush)
    }
  }

  @Test func `with no further input each record is released when its time is over`() {
    var (ends, step) = open(2)
    step = Step.at(10 + Limits.confirmation.inSeconds, after: step)
    #expect(ends.due(&step).map(\.call) == [callID(0), callID(1)] && ends.due(&step).isEmpty)
  }

  @Test func `a lease that comes back without having ended releases all at once`() {
    var (ends, step) = open()
    #expect(ends.leaseIsBack(hadNone: false, hasStoredCalls: true, &step).count == 1 && step.sent.isEmpty && !ends.isOpen)
  }
}
