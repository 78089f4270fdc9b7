import AppSessions
import CallFlow
import Devices
import Testing
import TrunklineAppProtocol
import TrunklineBytes

@testable import Cluster

@Suite struct CallTableTests {
  @Test func `a call is entered once for each user, and ends once`() {
    var calls = CallTable()
    #expect(calls.enter(callID(1), ["alice", "bob"], .incoming) == ["alice", "bob"])
    #expect(calls.enter(callID(1), ["bob", "carol"], .outgoing) == ["carol"] && calls.direction(of: callID(1)) == .incoming)
    let first = calls.start(line(1), ["alice"])
    let again = calls.start(line(1), ["alice"])
    #expect(first.newUsers.isEmpty && first.hasChanged && !again.hasChanged)
    #expect(calls.end(callID(1))?.users == ["alice", "bob", "carol"] && calls.end(callID(1)) == nil && calls.isEmpty)
  }

  @Test func `inputs of an unknown call change nothing`() {
    var calls = CallTable()
    calls.leave(callID(1), user: "alice")
    calls.confirm(callID(1), sent: .zero)
    calls.unconfirm(callID(1))
    calls.dropIfEmpty(callID(1))
    #expect(!calls.uncount(callID(1), trunk: "carrier") && calls.end(callID(1)) == nil && calls.isEmpty)
  }

  @Test func `a call counts for a trunk as often as it uses it, until it ends`() {
    var calls = CallTable()
    calls.count(callID(1), trunk: "carrier")
    calls.count(callID(1), trunk: "carrier")
    calls.sharedStoreLost()
    #expect(calls.count(of: "carrier") == 2 && calls.uncount(callID(1), trunk: "carrier"))
    #expect(calls.share(of: "carrier") == 1 && calls.sharesSent(of: "carrier") == 1 && calls.countAtLoss(of: "carrier") == 2)
    _ = calls.end(callID(1))
    #expect(calls.count(of: "carrier") == 0 && calls.sharedTrunks == ["carrier"] && calls.limitedTrunks == ["carrier"])
  }

  @Test func `a call without users, trunks and entry is dropped, any other stays`() {
    var calls = CallTable()
    _ = calls.enter(callID(1), ["alice"], .incoming)
    calls.dropIfEmpty(callID(1))
    #expect(calls.has(callID(1)))
    calls.leave(callID(1), user: "alice")
    calls.leave(callID(1), user: "alice")
    calls.dropIfEmpty(callID(1))
    #expect(calls.isEmpty && calls.calls(of: "alice").isEmpty)
  }

  @Test func `an entry is missing if its first confirmed put was sent before, and the store does not have it`() {
    var calls = CallTable()
    for call in 1...3 { _ = calls.start(line(call), ["alice"]) }
    _ = calls.enter(callID(4), ["alice"], .incoming)
    calls.confirm(callID(1), sent: seconds(1))
    calls.confirm(callID(1), sent: seconds(9))
    calls.confirm(callID(2), sent: seconds(5))
    calls.confirm(callID(4), sent: seconds(1))
    #expect(calls.missing(from: [], storedBefore: seconds(5), most: 9) == [callID(1)] && calls.hasStored)
    #expect(calls.missing(from: [callID(1)], storedBefore: seconds(6), most: 9) == [callID(2)])
    #expect(calls.missing(from: [], storedBefore: seconds(6), most: 1) == [callID(1)])
    calls.unconfirmAll()
    #expect(calls.missing(from: [], storedBefore: seconds(9), most: 9).isEmpty && !calls.hasStored)
  }

  @Test func `what was confirmed before the store lost its data does not count, whatever the order of inputs`() {
    var calls = CallTable()
    for call in 1...3 { _ = calls.start(line(call), ["alice"]) }
    calls.confirm(callID(1), sent: seconds(1))
    calls.confirm(callID(2), sent: seconds(1))
    calls.unconfirmAll()
    calls.unconfirm(callID(1))
    #expect(!calls.hasStored && calls.end(callID(2))?.putSent == nil && !calls.isStored(callID(1)))
    calls.confirm(callID(1), sent: seconds(5))
    calls.confirm(callID(1), sent: seconds(7))
    #expect(calls.hasStored && calls.isStored(callID(1)) && calls.end(callID(1))?.putSent == seconds(5) && !calls.hasStored)
    calls.confirm(callID(3), sent: seconds(8))
    calls.unconfirm(callID(3))
    calls.unconfirm(callID(3))
    #expect(!calls.hasStored)
    calls.unconfirmAll()
    calls.confirm(callID(3), sent: seconds(9))
    #expect(calls.hasStored)
  }

  @Test func `calls with an entry and calls without one are read in pages, each call in one of the two`() {
    var calls = CallTable()
    for call in [4, 2, 3, 1] { _ = calls.enter(callID(call), ["alice"], .incoming) }
    calls.count(callID(5), trunk: "carrier")
    _ = calls.start(line(3), ["alice"])
    _ = calls.start(line(3), ["alice"])
    #expect(calls.entered(after: nil, most: 9) == [callID(3)])
    #expect(calls.unstarted(after: nil, most: 2) == [callID(1), callID(2)])
    #expect(calls.unstarted(after: callID(2), most: 9) == [callID(4), callID(5)])
    _ = calls.end(callID(3))
    _ = calls.end(callID(1))
    calls.leave(callID(2), user: "alice")
    calls.dropIfEmpty(callID(2))
    calls.dropIfEmpty(callID(4))
    #expect(calls.entered(after: nil, most: 9).isEmpty && calls.unstarted(after: nil, most: 9) == [callID(4), callID(5)])
  }

  @Test func `entries are read in pages, in the order of their ids`() {
    var calls = CallTable()
    for call in [3, 1, 2] { _ = calls.start(line(call), ["alice"]) }
    #expect(calls.entries(after: nil, most: 2).map(\.line.call) == [callID(1), callID(2)])
    #expect(calls.entries(after: callID(2), most: 2).map(\.line.call) == [callID(3)])
  }
}

@Suite struct DeviceTableTests {
  private func location(_ session: String, _ state: AppState = .fg) -> Whereabouts {
    Whereabouts(key("alice"), at: us, session: SessionID(session), state: state)
  }

  @Test func `a new session replaces the old one; the same one keeps its time and is to be entered again`() throws {
    var devices = DeviceTable()
    devices.connect(location("s1"), at: seconds(1))
    devices.entered(key("alice"), since: 77)
    devices.connect(location("s1", .bg), at: seconds(2))
    var device = try #require(devices[key("alice")])
    #expect(device.came == seconds(1) && device.since == 77 && !device.isEntered && device.number == 1)
    devices.connect(location("s2"), at: seconds(3))
    device = try #require(devices[key("alice")])
    #expect(device.came == seconds(3) && device.since == nil && device.number == 1)
  }

  @Test func `the end of another session, or a second one, changes nothing`() {
    var devices = DeviceTable()
    holds(!devices.disconnect(key("alice"), SessionID("s1")))
    devices.connect(location("s2"), at: .zero)
    #expect(!devices.disconnect(key("alice"), SessionID("s1")) && devices.hasAny(of: "alice"))
    #expect(devices.disconnect(key("alice"), SessionID("s2")) && !devices.disconnect(key("alice"), SessionID("s2")))
    devices.entered(key("alice"), since: 1)
    devices.unenter(key("alice"))
    #expect(!devices.hasAny(of: "alice") && !devices.has(key("alice")) && devices.page(after: 0, most: 9).isEmpty)
  }

  @Test func `devices are read in pages in the order of their connecting, and one of each user is its first`() {
    var devices = DeviceTable()
    for (user, device) in [("bob", "tablet"), ("alice", "phone"), ("bob", "phone"), ("carol", "phone")] {
      devices.connect(Whereabouts(key(user, device), at: us, session: SessionID("s1"), state: .fg), at: .zero)
    }
    let first = devices.page(after: 0, most: 3)
    #expect(first.map(\.whereabouts.device) == [key("bob", "tablet"), key("alice"), key("bob")])
    #expect(first.map { devices.isFirstOfUser($0) } == [true, true, false])
    holds(devices.disconnect(key("bob", "tablet"), SessionID("s1")))
    holds(devices.disconnect(key("alice"), SessionID("s1")))
    #expect(devices.page(after: 0, most: 1).map { devices.isFirstOfUser($0) } == [true])
    #expect(devices.page(after: first[2].number, most: 9).map(\.whereabouts.device) == [key("carol")])
    #expect(devices.page(after: 99, most: 9).isEmpty)
  }

  @Test func `what was entered before the store lost its data does not count`() {
    var devices = DeviceTable()
    devices.connect(location("s1"), at: .zero)
    devices.entered(key("alice"), since: 7)
    devices.unenterAll()
    #expect(devices[key("alice")]?.isEntered == false && devices.devices(of: "alice").first?.isEntered == false)
    devices.entered(key("alice"), since: 8)
    #expect(devices[key("alice")]?.isEntered == true && devices[key("alice")]?.since == 8)
    devices.unenter(key("alice"))
    devices.unenterAll()
    #expect(devices.page(after: 0, most: 1).first?.isEntered == false)
  }
}

@Suite struct UserMemoryTests {
  @Test func `a revocation lasts until the store has the device again without one`() {
    var memory = UserMemory()
    memory.revoke(key("alice"), at: .zero)
    #expect(memory.isRevoked(key("alice"), nil) && memory.devices(of: "alice") == nil)
    memory.remember(device("alice"), at: .zero)
    #expect(
      !memory.isRevoked(key("alice"), memory.device(key("alice"))) && memory.devices(of: "alice")?.first?.bindings.count == 1)
    memory.revoke(key("alice"), at: .zero)
    memory.revoke(key("alice"), at: .zero)
    #expect(memory.devices(of: "alice")?.first?.bindings.isEmpty == true)
  }

  @Test func `a user without devices is not begun, but a known one loses them`() {
    var memory = UserMemory()
    var located = LocatedUser("alice")
    memory.remember(located, at: .zero)
    #expect(!memory.has("alice"))
    located.devices = [device("alice"), device("bob")]
    memory.remember(located, at: .zero)
    #expect(memory.devices(of: "alice")?.map(\.key) == [key("alice")])
    memory.forget(key("bob"))
    memory.forget(key("alice"))
    memory.forget(key("alice"))
    #expect(memory.devices(of: "alice") == [] && Array(memory.page(below: nil, most: 9).users) == ["alice"])
  }
}

@Suite struct QuestionTableTests {
  @Test func `a question is removed once, keeps its first deadline, and waits for leases once`() {
    var table = QuestionTable(wait: .milliseconds(100))
    var step = Step.at(1)
    let question = table.new(.tombstone(callID(1)))
    #expect(table.remove(question.number) == nil)
    table.put(question, &step)
    step = Step.at(1.05, after: step)
    table.put(question, &step)
    #expect(step.timers.next == seconds(1.1))
    #expect(table.remove(question.number) != nil && table.remove(question.number) == nil)
    table.waitForLeases(question)
    table.settle(question.number, &step)
    #expect(step.due.count == 1 && table.dequeueLeaseWaiters() == [question.number] && table.dequeueLeaseWaiters() == [])
    _ = table.remove(question.number)
    table.settle(question.number, &step)
    #expect(step.due.isEmpty && table.new(.tombstone(callID(1))).number != question.number)
  }
}
