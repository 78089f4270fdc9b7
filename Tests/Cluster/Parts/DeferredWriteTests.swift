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
    writes.leaseRenewed(isReviewing: false, &step)
    writes.hold(.entry(callID(1)), &step)
    #expect(step.due.isEmpty)
    writes.leaseRenewed(isReviewing: false, &step)
    #expect(step.due == [.restore])
  }

  @Test func `a review that goes on is due with the lease, though nothing waits`() {
    var (writes, step) = (writes(), Step.at(1, connected: false))
    writes.leaseRenewed(isReviewing: true, &step)
    #expect(step.due == [.restore])
  }

  @Test func `a review begins when its random time is over, and not before`() {
    var writes = writes()
    var step = Step(now: seconds(1), random: RandomSource { 2_000_000_000 })
    writes.connected(&step)
    holds(!writes.beginReview(at: seconds(2.9)))
    holds(writes.beginReview(at: seconds(3)))
    holds(!writes.beginReview(at: seconds(9)))
  }

  @Test func `the queue of devices has no room for a review that is too far ahead; calls do not wait for devices`() {
    var (writes, step) = (writes(), Step.at(1))
    for user in 0..<Limits.reviewAhead {
      #expect(writes.hasRoomForReview(ofCalls: false))
      writes.hold(.device(key("u\(user)")), &step)
    }
    #expect(!writes.hasRoomForReview(ofCalls: false) && writes.hasRoomForReview(ofCalls: true))
    for call in 0..<Limits.reviewAhead { writes.hold(.entry(callID(call)), &step) }
    #expect(!writes.hasRoomForReview(ofCalls: true))
  }

  @Test func `a flush during a review is known until the next review ends`() {
    var (writes, step) = (writes(), Step.at(1))
    writes.connected(&step)
    holds(writes.beginReview(at: step.now))
    writes.flushed(at: step.now)
    writes.connected(&step)
    writes.endReview()
    #expect(writes.wasFlushed)
    holds(writes.beginReview(at: step.now))
    writes.endReview()
    #expect(!writes.wasFlushed)
  }

  @Test func `each connection is reviewed once, a flush is known until the review ends, and its time afterwards`() {
    var (writes, step) = (writes(), Step.at(1))
    holds(!writes.beginReview(at: step.now))
    writes.flushed(at: step.now)
    writes.connected(&step)
    writes.connected(&step)
    #expect(writes.wasFlushed && writes.beginReview(at: step.now) && !writes.beginReview(at: step.now) && writes.wasFlushed)
    writes.endReview()
    #expect(!writes.wasFlushed && writes.wasFlushed(after: .zero) && !writes.wasFlushed(after: seconds(1)))
  }

  @Test func `removals of the last minute are written again, older ones are not`() {
    var (writes, step) = (writes(), Step.at(100))
    writes.removed(.entry(callID(1)), at: seconds(30))
    writes.removed(.entry(callID(2)), at: seconds(50))
    #expect(writes.holdRecent(from: 0, most: 10, &step) == nil)
    #expect(all(&writes, at: step.now) == [.entry(callID(2))])
  }

  @Test func `removals are written again a page at a time, also when older ones are forgotten meanwhile`() throws {
    var (writes, step) = (writes(), Step.at(100))
    for call in 0..<5 { writes.removed(.entry(callID(call)), at: seconds(call < 3 ? 45 : 99)) }
    let next = try #require(writes.holdRecent(from: 0, most: 2, &step))
    #expect(all(&writes, at: step.now) == [.entry(callID(0)), .entry(callID(1))])
    // the first three are more than a minute old by now
    step = Step.at(106, after: step)
    writes.removed(.entry(callID(5)), at: step.now)
    #expect(writes.holdRecent(from: next, most: 9, &step) == nil)
    #expect(all(&writes, at: step.now) == [3, 4, 5].map { .entry(callID($0)) })
    #expect(writes.holdRecent(from: 99, most: 9, &step) == nil && writes.count == 0)
  }

  @Test func `a registration stays a minute after it is stored, and is then forgotten, whatever else happens`() {
    var writes = writes()
    writes.registered(key("alice"), at: .zero)
    writes.register(.stored(device("alice")), at: .zero)
    writes.registered(key("alice"), at: seconds(1))
    writes.registered(key("alice"), at: seconds(50))
    #expect(writes.registration(of: key("alice"), at: seconds(60)) != nil)
    #expect(writes.registration(of: key("alice"), at: seconds(61)) == nil)
    writes.register(.removed(key("bob")), at: seconds(60))
    #expect(writes.registration(of: key("bob"), at: seconds(6_000)) != nil)
    writes.register(.removed(key("bob")), at: seconds(62))
    #expect(writes.registration(of: key("alice"), at: seconds(62)) == nil)
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
