import Testing
import TrunklineBytes

@testable import Cluster

@Suite struct RequestTableTests {
  @Test func `no request is sent before the connection, after its loss, or once the name is used`() {
    var step = Step.at(1, connected: false)
    holds(!step.send(.resign(.reaper, us), .none))
    step.requests.connect()
    holds(step.send(.resign(.reaper, us), .none))
    step.requests.disconnect()
    holds(!step.send(.resign(.reaper, us), .none))
    step.requests.connect()
    step.requests.close()
    #expect(!step.send(.resign(.reaper, us), .none) && step.sent.count == 1)
  }

  @Test func `a reply is removed once, in any order, and one that no request waits for never`() {
    var table = RequestTable()
    table.connect()
    let ids = (1...2).compactMap { table.add(.renewal, at: seconds(Double($0))) }
    #expect(table.remove(ids[1])?.sent == seconds(2) && table.remove(ids[1]) == nil)
    #expect(table.remove(ids[0])?.sent == seconds(1) && table.remove(SharedStoreRequestID(99)) == nil)
  }

  @Test func `requests without a reply are overdue, oldest first; those that were answered are not`() {
    var table = RequestTable()
    table.connect()
    let ids = (0..<4).compactMap { table.add(.renewal, at: seconds(Double($0))) }
    _ = table.remove(ids[1])
    #expect(table.popOverdue(at: seconds(10)) == nil)
    #expect(table.popOverdue(at: seconds(12.5)) == ids[0])
    #expect(table.popOverdue(at: seconds(12.5)) == ids[2])
    #expect(table.popOverdue(at: seconds(12.5)) == nil)
    // it still is to be removed, once
    #expect(table.remove(ids[0]) != nil && table.remove(ids[0]) == nil)
  }

  @Test func `requests beyond the limit are refused, and numbers are never used twice`() {
    var table = RequestTable()
    table.connect()
    let ids = (0..<Limits.requests).compactMap { _ in table.add(.none, at: .zero) }
    #expect(Set(ids).count == Limits.requests && table.add(.none, at: .zero) == nil)
    _ = table.remove(ids[7])
    #expect(table.add(.none, at: .zero).map { !ids.contains($0) } == true)
  }
}
