import Testing

@testable import TrunklineClientMachines

@Suite struct PathGenerationTests {
  @Test func `each generation connects once, and a later one again`() {
    var path = PathGeneration()
    #expect(path.number == 1 && !path.hasConnected && !path.isRelayOnly)
    holds(path.connected() && path.hasConnected && !path.connected())
    path.begin(2)
    holds(path.hasConnected, "an earlier one was connected")
    holds(path.connected() && !path.connected())
    path.begin(1)
    holds(!path.connected(), "it is of an earlier generation")
  }

  @Test func `after a path of all kinds that failed the next one has relays alone, and after that one all kinds`() {
    var path = PathGeneration()
    for isRelayOnly in [true, false, true] {
      for _ in 0..<2 { path.failed() }
      #expect(path.isRelayOnly != isRelayOnly, "the present one stays")
      path.restart(hasRelays: true)
      path.begin(path.number + 1)
      #expect(path.isRelayOnly == isRelayOnly)
    }
  }

  @Test func `without a failure, without relays, or after the path was connected, the next one has all kinds`() {
    var path = PathGeneration()
    path.restart(hasRelays: true)
    #expect(!path.isRelayOnly)
    path.failed()
    path.restart(hasRelays: false)
    path.restart(hasRelays: true)
    #expect(!path.isRelayOnly, "the failure counts for one restart")
    path.failed()
    holds(path.connected(), "late")
    path.failed()
    path.restart(hasRelays: true)
    #expect(!path.isRelayOnly)
  }
}
