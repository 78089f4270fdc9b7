import AppSessions
import Devices
import Testing
import TrunklineBytes

@testable import CallFlow
@testable import CallModel

/// Queries of whole tables: each step inspects a bounded number of entries, whatever the filter, and the pages together are the
/// table.
@Suite struct PageTests {
  private static let most = 256

  /// So many users: a third have a registered device, a third a connected one, and a third both.
  private func world(users: Int) -> Surroundings {
    let world = Surroundings()
    var stored: [Device] = []
    for index in 0..<users {
      let key = DeviceKey(user: "u\(index)", device: "d\(index % 7)")
      if index % 3 != 1 {
        var device = Device(key: key, at: 5)
        device.rings = false
        stored.append(device)
      }
      if index % 3 != 0 { world.feed(.app(.connected(key, SessionID("s\(index)"), DeviceInfo(), resumed: false))) }
    }
    world.feed(.devices(.loaded(stored)))
    return world
  }

  private func pages(_ machine: CallMachine, _ filter: DeviceFilter) -> [DevicePage] {
    var out = [machine.devicePage(filter, after: nil, most: Self.most)]
    while let next = out.last?.next, out.count < 1_000 { out.append(machine.devicePage(filter, after: next, most: Self.most)) }
    return out
  }

  @Test func `no page of devices looks at more than its bound, also where nothing fits`() {
    let machine = world(users: 3_000).machine
    for filter in [
      DeviceFilter(), DeviceFilter(device: "none"), DeviceFilter(device: "d3"), DeviceFilter(user: "nobody"),
      DeviceFilter(user: "u7"), DeviceFilter(user: "u7", device: "none"),
    ] {
      let all = pages(machine, filter)
      #expect(all.allSatisfy { $0.looked <= Self.most && $0.rows.count <= $0.looked }, "\(filter)")
    }
    #expect(pages(machine, DeviceFilter(user: "u7")).map(\.looked) == [1], "one user is found, not looked for")
    #expect(pages(machine, DeviceFilter(user: "nobody")).map(\.looked) == [0])
    #expect(pages(machine, DeviceFilter(device: "none")).allSatisfy { $0.rows.isEmpty })
  }

  @Test func `the pages of devices together are all of them, each once and by user`() {
    let machine = world(users: 3_000).machine
    let rows = pages(machine, DeviceFilter()).flatMap(\.rows)
    #expect(rows.count == 3_000 && Set(rows.map(\.key)).count == 3_000)
    #expect(rows.map(\.key.user) == rows.map(\.key.user).sorted())
    let one = rows.filter { $0.key.device == "d3" }.map(\.key)
    #expect(pages(machine, DeviceFilter(device: "d3")).flatMap(\.rows).map(\.key) == one)
    let states = Set(rows.map(\.summary).map { "\($0.connected) \($0.firstSeen != nil)" })
    #expect(states == ["false true", "true false", "true true"])
  }

  /// The entry of a cursor was removed, or was never in this table: the walk continues after it.
  @Test(arguments: ["", "u1", "u1500x", "\u{10ffff}", String(repeating: "u", count: 70_000)])
  func `a walk continues after any user`(last: String) {
    let machine = world(users: 600).machine
    let page = machine.devicePage(DeviceFilter(), after: last, most: Self.most)
    #expect(page.looked <= Self.most && page.rows.allSatisfy { $0.key.user > last })
  }

  @Test func `a user with many devices is seen whole, and more than one such user in more than one page`() {
    let world = Surroundings()
    for user in 0..<10 {
      for index in 0..<32 {
        let key = DeviceKey(user: "u\(user)", device: "d\(index)")
        world.feed(.app(.connected(key, SessionID("\(user) \(index)"), DeviceInfo(), resumed: false)))
      }
    }
    let all = pages(world.machine, DeviceFilter())
    #expect(all.map(\.looked) == [256, 64])
    for key in world.machine.devicePage(DeviceFilter(user: "u3"), after: nil, most: 1).rows.map(\.key) {
      world.feed(.app(.ended(key, SessionID("3 \(key.device.dropFirst())"))))
    }
    #expect(pages(world.machine, DeviceFilter()).flatMap(\.rows).count == 288, "who has gone is in no page")
  }

  @Test func `calls come in pages, oldest first, and a call that ends between two pages is missed by neither`() throws {
    let world = Surroundings { configuration, _ in configuration.bounds.callsPerUser = 100 }
    world.connect(Surroundings.phone)
    let legs = (0..<20).map { _ in world.invite() }
    let all = world.machine.liveCalls
    #expect(all.count == 20)
    var (page, found) = (world.machine.callPage(after: nil, most: 8), [CallID]())
    #expect(page.looked == 8 && page.next != nil)
    found += page.rows.map(\.id)
    world.feed(.sip(.cancelled(legs[7], nil)))
    world.feed(.sip(.cancelled(legs[8], nil)))
    while let next = page.next {
      page = world.machine.callPage(after: next, most: 8)
      #expect(page.looked <= 8)
      found += page.rows.map(\.id)
    }
    #expect(found.prefix(8) == all.prefix(8) && Set(found).count == found.count)
    #expect(Set(all.dropFirst(9)).isSubset(of: found))
    #expect(world.machine.callPage(after: nil, most: 8).rows.map(\.summary.call) == Array(world.machine.liveCalls.prefix(8)))
  }

  @Test func `trunks come in pages, those that left the configuration last`() {
    let names = (0..<70).map { "t\($0)" }
    let machine = CallMachine(routing: Routing(trunks: names.map { .init(name: $0) }), random: .seeded(1))
    var (index, found, counts): (Int?, [String], [Int]) = (0, [], [])
    while let from = index {
      let page = machine.trunkPage(from: from, most: 32, at: .zero)
      found += page.trunks.map(\.trunk)
      counts.append(page.trunks.count)
      index = page.next
    }
    #expect(found == names && counts == [32, 32, 6])
    for from in [-1, 70, 71, Int.max] { #expect(machine.trunkPage(from: from, most: 32, at: .zero).trunks.count <= 32) }
    #expect(machine.trunkStatus("t5", at: .zero)?.trunk == "t5" && machine.trunkStatus("none", at: .zero) == nil)
  }
}
