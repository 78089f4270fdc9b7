import AppSessions
import CallFlow
import CallModel
import Control
import Glibc
import Synchronization
import Testing
import TrunklineBytes
import TrunklineMediaSession

@Suite struct ControlTests {
  let alice = DeviceKey(user: "alice", device: "phone")

  func connect(_ surroundings: Surroundings) {
    surroundings.inbox.post(.app(.connected(alice, SessionID("s"), DeviceInfo(), resumed: false)))
  }

  @Test func `an INVITE for an unknown number leaves one 404 and one record`() throws {
    let surroundings = try Surroundings()
    surroundings.receive(Surroundings.invite(to: "+19990000000"))
    #expect(surroundings.eventually { $0.records.count == 1 })
    surroundings.stop()
    let seen = surroundings.seen
    #expect(seen.sip.map { $0.prefix(11) } == ["SIP/2.0 100", "SIP/2.0 404"])
    #expect(seen.records.map(\.end.reason) == [.notFound])
    #expect(surroundings.metrics.liveCalls == 0)
  }

  @Test func `an INVITE is offered to the device, journalled and parked, and can be seen and ended by an operator`() throws {
    let surroundings = try Surroundings()
    connect(surroundings)
    surroundings.receive(Surroundings.invite(to: "+15551230001"))
    #expect(surroundings.eventually { $0.lines.count == 1 && $0.app.contains { if case .send = $0 { true } else { false } } })
    guard case .calls(let page)? = surroundings.ask(.calls(after: nil), 1) else {
      Issue.record("no answer")
      return
    }
    let call = try #require(page.rows.first?.summary)
    #expect(call.state == .parked && page.rows.count == 1 && page.next == nil)
    surroundings.inbox.post(.hangUp(call.call))
    #expect(surroundings.eventually { $0.sip.contains { $0.hasPrefix("SIP/2.0 5") || $0.hasPrefix("SIP/2.0 4") } })
    surroundings.inbox.post(.media(.closed(MediaSessionID(raw: 1), MediaStatistics())))
    #expect(surroundings.eventually { $0.records.count == 1 })
    surroundings.stop()
    #expect(surroundings.seen.records.first?.end.by == .gateway)
  }

  @Test func `calls follow the machine's addresses a few in a turn, each once`() throws {
    let surroundings = try Surroundings(calls: 40)
    connect(surroundings)
    for number in 0..<40 { surroundings.receive(Surroundings.invite(to: "+15551230001", call: "c\(number)")) }
    #expect(surroundings.eventually { $0.lines.count == 40 })
    let (asked, first) = (Counter(), Counter())
    surroundings.moveCalls { _, _ in
      asked.add(1)
      return nil
    } then: {
      first.add(asked.value)
    }
    #expect(surroundings.eventually { _ in asked.value >= 40 })
    surroundings.stop()
    #expect(first.value == 16 && asked.value == 40)
  }

  private final class Counter: Sendable {
    private let count = Atomic<Int>(0)
    var value: Int { count.load(ordering: .acquiring) }
    func add(_ number: Int) { count.add(number, ordering: .acquiringAndReleasing) }
  }

  @Test func `without a free port the call is refused with 503, and it is no call`() throws {
    let surroundings = try Surroundings(hasPorts: false)
    connect(surroundings)
    surroundings.receive(Surroundings.invite(to: "+15551230001"))
    #expect(surroundings.eventually { $0.sip.contains { $0.hasPrefix("SIP/2.0 503") } })
    surroundings.stop()
    #expect(surroundings.seen.lines.isEmpty && surroundings.seen.media.isEmpty)
  }

  @Test func `a media thread that loses a command ends the call, once`() throws {
    let surroundings = try Surroundings(losesMedia: true)
    connect(surroundings)
    surroundings.receive(Surroundings.invite(to: "+15551230001"))
    #expect(surroundings.eventually { $0.records.count == 1 })
    surroundings.stop()
    let seen = surroundings.seen
    #expect(seen.records.map(\.end.reason) == [.server])
    #expect(seen.sip.filter { $0.hasPrefix("SIP/2.0 5") || $0.hasPrefix("SIP/2.0 4") }.count == 1)
  }

  @Test func `a drain refuses new calls and tells when the last one is over`() throws {
    let surroundings = try Surroundings()
    connect(surroundings)
    surroundings.receive(Surroundings.invite(to: "+15551230001"))
    #expect(surroundings.eventually { $0.lines.count == 1 })
    surroundings.inbox.drain()
    // The next INVITE takes another way in.
    #expect(surroundings.eventually { $0.app.contains { if case .drain = $0 { true } else { false } } })
    surroundings.receive(Surroundings.invite(to: "+15551230001", call: "b"))
    #expect(surroundings.eventually { $0.sip.contains { $0.hasPrefix("SIP/2.0 503") } })
    #expect(surroundings.seen.drained == 0)
    surroundings.inbox.hangUpAll()
    surroundings.inbox.post(.media(.closed(MediaSessionID(raw: 1), MediaStatistics())))
    #expect(surroundings.eventually { $0.drained == 1 })
    surroundings.stop()
    #expect(surroundings.seen.records.count == 1)
    #expect(surroundings.seen.app.contains { if case .drain = $0 { true } else { false } })
  }

  /// A sample's value by its family and labels.
  private func value(_ surroundings: Surroundings, _ name: String, _ labels: String...) -> Int64? {
    let samples = surroundings.metrics.families.first { $0.name == name }?.snapshot() ?? []
    guard case .integer(let value)? = samples.first(where: { $0.labels == labels })?.value else { return nil }
    return value
  }

  @Test func `a trunk is counted by name, and under removed when it has left the configuration: sums never fall`() throws {
    let surroundings = try Surroundings()
    surroundings.receive(Surroundings.invite(to: "+19990000000"))
    #expect(surroundings.eventually { $0.records.count == 1 })
    #expect(surroundings.eventually { _ in value(surroundings, "trunkline_calls_started_total", "in", "carrier") == 1 })
    #expect(value(surroundings, "trunkline_calls_ended_total", "in", "notFound", "gateway", "carrier") == 1)
    #expect(value(surroundings, "trunkline_trunk_up", "carrier") == 1)
    #expect(value(surroundings, "trunkline_trunk_calls", "carrier") == 0)
    #expect(value(surroundings, "trunkline_trunk_calls_limit", "carrier") == 7)
    #expect(value(surroundings, "trunkline_calls_limit") == Int64(CallMachine(routing: Routing(), random: .seeded(1)).mostCalls))
    #expect(value(surroundings, "trunkline_trunk_registered", "carrier") == nil, "it is not asked to")
    surroundings.inbox.post(.routing(Routing()))
    #expect(surroundings.eventually { _ in value(surroundings, "trunkline_trunk_up", "carrier") == nil })
    #expect(value(surroundings, "trunkline_calls_started_total", "in", "carrier") == nil)
    #expect(value(surroundings, "trunkline_calls_started_total", "in", "removed") == 1)
    #expect(value(surroundings, "trunkline_calls_ended_total", "in", "notFound", "gateway", "removed") == 1)
    #expect(value(surroundings, "trunkline_sip_responses_total", "out", "INVITE", "404", "removed") == 1)
    surroundings.stop()
  }

  @Test func `every family has samples that its labels fit`() throws {
    let surroundings = try Surroundings()
    surroundings.receive(Surroundings.invite(to: "+19990000000"))
    #expect(surroundings.eventually { $0.records.count == 1 })
    surroundings.stop()
    for family in surroundings.metrics.families {
      for sample in family.snapshot() { #expect(sample.labels.count == family.labelNames.count, "\(family.name)") }
    }
    #expect(Set(surroundings.metrics.families.map(\.name)).count == surroundings.metrics.families.count)
  }
}
