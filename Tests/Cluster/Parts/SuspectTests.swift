import CallFlow
import Testing
import TrunklineAppProtocol
import TrunklineBytes

@testable import Cluster

@Suite struct SuspectTests {
  private let reaper = Suspects.Authority(isUp: true, isReaper: true)

  /// A node whose lease ended at 100 s.
  private func missing() -> (suspects: Suspects, step: Step) {
    var (suspects, step) = (Suspects(machineSettings()), Step.at(100))
    suspects.lost(lease(other), &step)
    return (suspects, step)
  }
  /// A node that another incarnation of its name proved dead, with a scan that waits for its first page.
  private func dead() -> (suspects: Suspects, step: Step) {
    var (suspects, step) = missing()
    suspects.proveDead(other, &step)
    suspects.due(other, reaper, &step)
    #expect(step.sent == [.entries(of: other, cursor: 0)])
    return (suspects, step)
  }
  private func page(_ calls: Range<Int>, next: UInt64 = 0) -> Result<SharedStoreReply, SharedStoreFailure> {
    .success(.entries(calls.map { CallEntry(line($0), users: ["alice"]) }, next: next))
  }

  @Test func `inputs about a node that is not suspected change nothing`() {
    var (suspects, step) = (Suspects(machineSettings()), Step.at(100))
    suspects.proveDead(other, &step)
    suspects.probed(other, .refused, &step)
    suspects.due(other, reaper, &step)
    suspects.forget("n1", &step)
    suspects.returned(other, &step)
    let progress = suspects.read(other, page(0..<3), room: 9, &step)
    let item = ReapItem(entry: CallEntry(line(1), users: []), incarnation: other, scan: 1)
    #expect(progress.items.isEmpty && !suspects.isDue(item, reaper, step.now))
    #expect(suspects.done(item, isSkipped: false, &step).finished == nil)
    #expect(step.actions.isEmpty && step.due.isEmpty && !suspects.has(other) && suspects.seen.isEmpty)
  }

  @Test func `silence closes ringing calls after 4 s and all after 30 s, an answer none`() {
    for isAnswered in [true, false] {
      var (suspects, step) = missing()
      suspects.due(other, reaper, &step)
      suspects.due(other, reaper, &step)
      #expect(step.others.count == 1, "one probe at a time")
      step = Step.at(101, after: step)
      suspects.probed(other, isAnswered ? .answered : .silent, &step)
      for time in [102.0, 104, 120, 131] {
        step = Step.at(time, after: step)
        suspects.due(other, reaper, &step)
        #expect(step.sent.isEmpty == (isAnswered || time < 104 || time == 120), "\(time)")
        if !step.sent.isEmpty { _ = suspects.read(other, page(0..<0), room: 9, &step) }
      }
      #expect(suspects.isDeparted(other) == !isAnswered)
    }
  }

  @Test func `only the reaper with a lease acts, after the calm; an hour later the others forget the node`() {
    var (suspects, step) = missing()
    suspects.due(other, Suspects.Authority(isUp: true, isReaper: false), &step)
    suspects.due(other, Suspects.Authority(isUp: false, isReaper: true), &step)
    suspects.calm(&step)
    suspects.due(other, reaper, &step)
    #expect(step.actions.isEmpty && step.timers.next == seconds(110))
    step = Step.at(3_701, after: step)
    suspects.due(other, Suspects.Authority(isUp: true, isReaper: false), &step)
    #expect(!suspects.isUnderSuspicion(other) && suspects.isDeparted(other) && step.due.isEmpty)
  }

  @Test func `a node that returns is living, its items are dropped, and a later loss begins anew`() {
    var (suspects, step) = dead()
    let items = suspects.read(other, page(0..<2), room: 9, &step).items
    #expect(items.count == 2 && suspects.isDue(items[0], reaper, step.now))
    suspects.returned(other, &step)
    suspects.returned(other, &step)
    #expect(!suspects.isDue(items[0], reaper, step.now) && !suspects.has(other) && step.due.isEmpty)
    #expect(suspects.done(items[0], isSkipped: false, &step).finished == nil)
    suspects.lost(lease(other), &step)
    suspects.lost(lease(other), &step)
    #expect(suspects[other]?.verdict == .missing && suspects.count == 1)
  }

  @Test func `pages are read one at a time, and the node departs when a scan finds nothing`() {
    var (suspects, step) = dead()
    suspects.due(other, reaper, &step)
    #expect(step.sent.count == 1)
    var progress = suspects.read(other, page(0..<1, next: 7), room: 9, &step)
    // few items wait: the next page
    #expect(progress.items.count == 1 && step.sent.last == .entries(of: other, cursor: 7))
    #expect(suspects.read(other, page(1..<1), room: 9, &step).finished == nil)
    #expect(suspects.done(progress.items[0], isSkipped: false, &step).finished == nil && step.sent.count == 2)
    step = Step.at(102, after: step)
    suspects.due(other, reaper, &step)
    // an item of the older scan
    #expect(!suspects.isDue(progress.items[0], reaper, step.now))
    progress = suspects.read(other, page(0..<0), room: 9, &step)
    #expect(progress.finished == other && progress.trunks == ["carrier"] && suspects.isDeparted(other))
    #expect(step.sent.last == .broadcast(.dead(other)) && suspects.seen.map(\.liveness) == [.dead])
    #expect(suspects.read(other, page(0..<3), room: 9, &step).items.isEmpty)
  }

  @Test func `a failed page ends the scan, which begins again; a full queue takes no more than it has room for`() {
    var (suspects, step) = dead()
    _ = suspects.read(other, .failure(.timeout), room: 9, &step)
    step = Step.at(102, after: step)
    suspects.due(other, reaper, &step)
    #expect(step.sent == [.entries(of: other, cursor: 0)])
    #expect(suspects.read(other, page(0..<5), room: 2, &step).items.count == 2)
  }

  @Test func `of nodes that vanish together by more than half none is closed, until most are back`() {
    var (suspects, step) = (Suspects(machineSettings()), Step.at(100))
    suspects.lost(lease(other), &step)
    suspects.lost(lease(third), &step)
    suspects.vanished(2, of: 3, &step)
    #expect(suspects.heldCount == 2 && !suspects.isGone(other) && Set(suspects.seen.map(\.liveness)) == [.held])
    suspects.probed(other, .refused, &step)
    suspects.due(other, reaper, &step)
    #expect(step.actions.isEmpty)
    step = Step.at(107, after: step)
    suspects.returned(third, &step)
    suspects.vanished(0, of: 2, &step)
    suspects.liftHold(nodes: 2, &step)
    #expect(suspects.heldCount == 0 && suspects.isGone(other) && suspects[other]?.silentSince == seconds(107))
  }

  @Test func `an operator's command, or another incarnation of its name, proves a node dead that is held`() {
    for isForgotten in [true, false] {
      var (suspects, step) = missing()
      suspects.vanished(1, of: 1, &step)
      #expect(suspects.heldCount == 1)
      suspects.forget("n2", &step)
      suspects.proveReplaced(isReplaced: { $0 == third }, &step)
      #expect(suspects.heldCount == 1)
      if isForgotten { suspects.forget("n1", &step) } else { suspects.proveReplaced(isReplaced: { $0 == other }, &step) }
      #expect(suspects[other]?.verdict == .dead && suspects.heldCount == 0)
      // who got the command reads its calls, reaper or not
      suspects.due(other, Suspects.Authority(isUp: true, isReaper: false), &step)
      #expect(step.sent.isEmpty == !isForgotten)
    }
  }

  @Test func `a node that is held for an hour is forgotten, with its calls`() {
    var (suspects, step) = missing()
    suspects.vanished(1, of: 1, &step)
    step = Step.at(3_701, after: step)
    suspects.liftHold(nodes: 1, &step)
    #expect(!suspects.isUnderSuspicion(other) && suspects.isDeparted(other) && step.sent.isEmpty)
  }

  @Test func `what other reapers report is shown, and is not evidence`() {
    var (suspects, step) = missing()
    suspects.reportedDead(other, at: step.now)
    suspects.reportedDead(third, at: step.now)
    #expect(suspects.seen.map(\.liveness) == [.dead] && suspects[other]?.verdict == .missing)
    suspects.due(other, reaper, &step)
    #expect(step.sent.isEmpty)
  }
}

@Suite struct ReapQueueTests {
  private func item(_ call: Int) -> ReapItem { ReapItem(entry: CallEntry(line(call), users: []), incarnation: other, scan: 1) }

  @Test func `items leave in their order, and stay until they are removed`() {
    var (queue, step) = (ReapQueue(), Step.at(1))
    queue.append([], &step)
    queue.removeFirst()
    #expect(queue.isEmpty && queue.first == nil && step.due.isEmpty)
    queue.append([item(2), item(1)], &step)
    #expect(queue.first == item(2) && queue.first == item(2) && step.due == [.reap] && queue.room == Limits.reapQueue - 2)
    queue.removeFirst()
    #expect(queue.first == item(1))
    queue.removeFirst()
    #expect(queue.isEmpty && queue.room == Limits.reapQueue)
  }

  @Test func `a call is closed once within an hour`() {
    var queue = ReapQueue()
    #expect(queue.close(callID(1), at: .zero) && !queue.close(callID(1), at: seconds(1)) && queue.isClosed(callID(1)))
    #expect(queue.close(callID(2), at: seconds(3_601)) && !queue.isClosed(callID(1)))
  }
}

@Suite struct InheritedCallTests {
  private let entries = (1...3).map { CallEntry(line($0), users: ["alice"]) }

  @Test func `each call is claimed once, again after a failure, and removed once`() {
    var (calls, step) = (InheritedCalls(), Step.at(1))
    calls.add(entries, of: other, &step)
    calls.add(entries, of: third, &step)
    #expect(calls.due(by: us, &step).isEmpty && calls.due(by: us, &step).isEmpty && step.sent.count == 3)
    calls.failed(callID(2))
    calls.failed(callID(9))
    _ = calls.due(by: us, &step)
    #expect(step.sent.count == 4 && step.sent.last == .claimReaping(callID(2), of: other, by: us))
    #expect(calls.remove(callID(2))?.isLast == false && calls.remove(callID(2)) == nil && calls.remove(callID(9)) == nil)
    #expect(calls.remove(callID(1))?.isLast == false && calls.remove(callID(3))?.isLast == true)
  }

  @Test func `with no answer at all, and without the shared store, each call is ours after 3 s`() {
    for isConnected in [true, false] {
      var (calls, step) = (InheritedCalls(), Step.at(1, connected: isConnected))
      calls.add(entries, of: other, &step)
      #expect(calls.due(by: us, &step).isEmpty)
      step = Step.at(4, after: step, connected: isConnected)
      #expect(calls.due(by: us, &step) == (1...3).map(callID) && calls.due(by: us, &step).isEmpty)
    }
  }
}
