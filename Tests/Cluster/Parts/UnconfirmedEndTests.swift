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
    for call in 0..<calls { #expect(ends.hold(callID(call), putSent: stored, tombstone: nil, &step)) }
    return (ends, step)
  }
  private func page(_ calls: [Int], next: UInt64 = 0, dropped: Int = 0) -> Result<SharedStoreReply, SharedStoreFailure> {
    .success(.entries(calls.map { CallEntry(line($0), users: ["alice"]) }, next: next, dropped: dropped))
  }

  @Test func `a record waits only while others may have closed its call, and only if the call had an entry`() {
    var (ends, step) = (UnconfirmedEnds(us), Step.at(10))
    #expect(!ends.hold(callID(1), putSent: stored, tombstone: nil, &step))
    ends.leaseEnded(&step)
    #expect(
      !ends.hold(callID(1), putSent: nil, tombstone: nil, &step) && ends.hold(callID(2), putSent: stored, tombstone: nil, &step))
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

  @Test func `many records are released in steps, and those that are left wait again if the lease ends before`() {
    let most = Limits.releasesPerStep
    var (ends, step) = open(2 * most + 1)
    #expect(ends.leaseIsBack(hadNone: false, hasStoredCalls: true, &step).count == most && ends.count == most + 1)
    #expect(step.timers.next == step.now + Limits.restoreStep)
    step = Step.at(10.02, after: step)
    #expect(ends.due(&step).map(\.call) == (most..<2 * most).map(callID))
    ends.leaseEnded(&step)
    holds(ends.hold(callID(9_999), putSent: stored, tombstone: nil, &step))
    step = Step.at(10.04, after: step)
    #expect(ends.due(&step).isEmpty && ends.count == 2 && ends.has(callID(2 * most)))
    #expect(ends.end(&step).map(\.call) == [callID(2 * most), callID(9_999)] && step.due.isEmpty)
  }

  @Test func `records that began to wait after a release do not end with it`() {
    var (ends, step) = open(Limits.releasesPerStep + 1)
    _ = ends.flushed(&step)
    holds(ends.hold(callID(9_999), putSent: stored, tombstone: nil, &step))
    step = Step.at(10.02, after: step)
    #expect(ends.due(&step).map(\.call) == [callID(Limits.releasesPerStep)] && ends.count == 1)
    #expect(ends.due(&step).isEmpty && step.timers.next == seconds(10) + Limits.confirmation)
  }

  @Test func `a process that ends releases all at once`() {
    var (ends, step) = open(2 * Limits.releasesPerStep)
    #expect(ends.stop(&step).count == 2 * Limits.releasesPerStep && ends.isEmpty && step.due.isEmpty)
    #expect(ends.stop(&step).isEmpty)
  }

  @Test func `a reading reports so many missing entries that their claims are sent in one step; the next one reports the others`()
  {
    var (ends, step) = (UnconfirmedEnds(us), Step.at(10))
    var live = CallTable()
    for call in 0..<Limits.claimsPerReading + 7 {
      _ = live.start(line(call), ["alice"])
      live.confirm(callID(call), sent: stored)
    }
    ends.leaseEnded(&step)
    _ = ends.leaseIsBack(hadNone: true, hasStoredCalls: true, &step)
    #expect(ends.read(page([]), sent: seconds(10), live: live, &step).missing == (0..<Limits.claimsPerReading).map(callID))
    for call in 0..<Limits.claimsPerReading { live.unconfirm(callID(call)) }
    step = Step.at(13, after: step)
    ends.startReading(isSecond: true, &step)
    #expect(ends.read(page([]), sent: seconds(13), live: live, &step).missing.count == 7)
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
