import Testing
import TrunklineBytes

@testable import MediaThreads

/// Which ports a call's trunk leg gets: an outsider cannot predict them, and a port is not used again at once.
@Suite struct TrunkPortTests {
  @Test func `every pair is drawn once, in an order that is neither ascending nor repeated, and each has an even port`() {
    func order() -> [UInt16] {
      let ports = TrunkPorts(20_001...20_200)
      return (0..<99).compactMap { _ in ports.draw(on: .loopback)?.port }
    }
    let (one, two) = (order(), order())
    #expect(Set(one).count == 99 && one.allSatisfy { $0 % 2 == 0 && (20_002...20_198).contains($0) })
    #expect(Set(one) == Set(two) && one != two && one != one.sorted())
    let steps = zip(one, one.dropFirst()).count { $1 == $0 + 2 }
    #expect(steps < 20, "\(one)")
  }

  @Test func `a port that was given back rests while half of the others are free`() {
    let ports = TrunkPorts(20_000...20_399)
    for _ in 0..<2_000 {
      guard let drawn = ports.draw(on: .loopback) else { break }
      ports.release(drawn)
      let next = (0..<99).compactMap { _ in ports.draw(on: .loopback) }
      #expect(next.count == 99 && !next.contains(drawn))
      for port in next { ports.release(port) }
    }
    #expect(ports.inUse == 0)
  }

  @Test func `each address has its own ports, and when all are used there is none until one is released`() {
    let ports = TrunkPorts(20_000...20_007)
    let other = IPAddress(127, 0, 0, 2)
    let here = (0..<4).compactMap { _ in ports.draw(on: .loopback) }
    let there = (0..<4).compactMap { _ in ports.draw(on: other) }
    #expect(Set(here.map(\.port)) == Set(there.map(\.port)) && here.count == 4)
    #expect(ports.draw(on: .loopback) == nil && ports.isExhausted(addresses: 2))
    ports.release(here[2])
    #expect(!ports.isExhausted(addresses: 2) && ports.draw(on: .loopback) == here[2])
  }
}
