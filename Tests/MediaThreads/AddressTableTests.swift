import Testing
import TrunklineBytes

@testable import MediaThreads

@Suite struct AddressTableTests {
  @Test func `the table agrees with a dictionary over random binding and removal`() {
    struct Key: Hashable { var address: SocketAddress, route: Int32 }
    var random = SplitMix64(seed: 11)
    var table = AddressTable(limit: 200)
    var model: [Key: AddressTable.Owner] = [:]
    for step in 0..<20_000 {
      let word = random.next()
      let address = SocketAddress(IPAddress(10, 0, 0, UInt8(word % 7)), UInt16(word >> 8 % 60))
      let key = Key(address: address, route: Int32(word >> 20 % 2))
      let owner = AddressTable.Owner(session: Int32(word >> 24 % 9), leg: 0)
      if word >> 40 % 3 == 0 {
        table.remove(key.address, key.route, of: owner.session)
        if model[key]?.session == owner.session { model[key] = nil }
      } else {
        let fits = table.bind(key.address, key.route, to: owner)
        #expect(fits == (model[key] != nil || model.count < 200), "step \(step)")
        if fits { model[key] = owner }
      }
      let found = table.find(key.address, key.route)
      #expect(found == model[key], "step \(step)")
    }
    let count = table.count
    #expect(count == model.count)
    for (key, owner) in model {
      let found = table.find(key.address, key.route)
      #expect(found == owner)
    }
  }
}

@Suite struct TickWheelTests {
  @Test func `every session ticks once in 20 ms in each direction, spread over the slots`() {
    var wheel = TickWheel()
    let start = Instant(nanoseconds: 5_000_000)
    for session in 0..<60 { _ = wheel.add(session, at: start) }
    var ticks = [Int](repeating: 0, count: 60)
    var most = 0
    for _ in 0..<100 {
      let due = wheel.popDue()
      most = max(most, due.count)
      for tick in due { ticks[tick.session] += 1 }
    }
    #expect(ticks.allSatisfy { $0 == 2 * 5 })
    #expect(most == 2 * 3)
    #expect(wheel.nextDue == start + .milliseconds(100))
  }

  @Test func `a thread that is far behind leaves ticks out and goes on at the present`() {
    var wheel = TickWheel()
    let slots = wheel.add(1, at: .zero)
    let late = Instant(nanoseconds: 1_000_000_000)
    #expect(wheel.skip(to: late) == 2 * 50)
    #expect(wheel.nextDue.map { $0 >= late } == true)
    wheel.remove(1, from: slots)
    #expect(wheel.nextDue == nil)
  }
}

extension TickWheelTests {
  @Test func `a tick moves to the phase it asks for, unless that slot is crowded`() {
    var wheel = TickWheel()
    let start = Instant(nanoseconds: 5_000_000)
    let slots = (0..<20).map { wheel.add($0, at: start) }
    func move(_ session: Int) -> Int {
      let tick = SessionTick(session: session, direction: .trunkToApp)
      return wheel.phase(of: wheel.move(tick, from: slots[session].toApp, toPhase: 12))
    }
    #expect(move(0) == 12)
    var phases: [Int: Int] = [:]
    for session in 1..<20 { phases[move(session), default: 0] += 1 }
    #expect((phases.values.max() ?? 99) <= 8, "\(phases)")
    var ticks = [Int](repeating: 0, count: 20)
    while let due = wheel.nextDue, due < start + .milliseconds(200) { for tick in wheel.popDue() { ticks[tick.session] += 1 } }
    #expect(ticks.allSatisfy { $0 == 2 * 10 })
  }
}
