import CallFlow
import Devices
import Testing
import TrunklineBytes

@testable import Cluster

@Suite struct DeferredWriteTests {
  private func writes() -> DeferredWrites { DeferredWrites(spread: .seconds(5), at: .zero) }
  private func all(_ writes: inout DeferredWrites, at now: Instant) -> [ClusterMachine.WriteKey] {
    var out: [ClusterMachine.WriteKey] = []
    while case .write(let key) = writes.next(at: now) { out.append(key) }
    return out
  }

  @Test func `a write is queued once, calls precede devices, and each is in the order of its arrival`() {
    var (writes, step) = (writes(), Step.at(1))
    writes.hold(.device(key("alice")), &step)
    writes.hold(.entry(callID(2)), &step)
    writes.hold(.entry(callID(1)), &step)
    writes.hold(.entry(callID(2)), &step)
    #expect(writes.count == 3 && step.due == [.restore])
    #expect(all(&writes, at: step.now) == [.entry(callID(2)), .entry(callID(1)), .device(key("alice"))])
    writes.hold(.entry(callID(2)), &step)
    #expect(writes.count == 1)
  }

  @Test func `without a connection nothing is due; the first lease makes it due`() {
    var (writes, step) = (writes(), Step.at(1, connected: false))
    writes.leaseRenewed(&step)
    writes.hold(.entry(callID(1)), &step)
    #expect(step.due.isEmpty)
    writes.leaseRenewed(&step)
    #expect(step.due == [.restore])
  }

  @Test func `each connection is reviewed once, a flush is known until the review ends, and its time afterwards`() {
    var (writes, step) = (writes(), Step.at(1))
    holds(!writes.beginReview())
    writes.flushed(at: step.now)
    writes.connected(&step)
    writes.connected(&step)
    #expect(writes.wasFlushed && writes.beginReview() && !writes.beginReview() && writes.wasFlushed)
    writes.endReview()
    #expect(!writes.wasFlushed && writes.wasFlushed(after: .zero) && !writes.wasFlushed(after: seconds(1)))
  }

  @Test func `removals of the last minute are written again, older ones are not`() {
    var (writes, step) = (writes(), Step.at(100))
    writes.removed(.entry(callID(1)), at: seconds(30))
    writes.removed(.entry(callID(2)), at: seconds(50))
    writes.holdRecent(&step)
    #expect(all(&writes, at: step.now) == [.entry(callID(2))])
  }

  @Test func `a registration stays a minute after it is stored, and is then forgotten`() {
    var writes = writes()
    writes.registered(key("alice"), at: .zero)
    writes.register(.stored(device("alice")), at: .zero)
    writes.registered(key("alice"), at: seconds(1))
    writes.registered(key("alice"), at: seconds(50))
    writes.register(.removed(key("bob")), at: seconds(60))
    #expect(writes.registration(of: key("alice")) != nil)
    writes.register(.removed(key("bob")), at: seconds(62))
    #expect(writes.registration(of: key("alice")) == nil && writes.registration(of: key("bob")) != nil)
  }

  @Test func `devices wait when the rate is used up, calls do not`() {
    var (writes, step) = (writes(), Step.at(1))
    while writes.consume(at: step.now) {}
    writes.hold(.device(key("alice")), &step)
    guard case .later = writes.next(at: step.now) else { Issue.record("a device does not wait"); return }
    writes.hold(.entry(callID(1)), &step)
    guard case .write(.entry) = writes.next(at: step.now) else { Issue.record("a call waits"); return }
    #expect(all(&writes, at: seconds(3)) == [.device(key("alice"))])
  }
}
