import Foundation
import Logging
import Synchronization
import Testing
import TrunklineBytes

@testable import trunkline

@Suite struct AdvertisedNamesTests {
  private let quiet = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }

  @Test func `a name that leads elsewhere is told, and one that leads nowhere keeps its last address`() throws {
    let (first, second) = (try #require(IPAddress("198.51.100.1")), try #require(IPAddress("198.51.100.2")))
    // what the resolver says: nothing, an address, the same, nothing, another, the first again
    let answers = Mutex<[IPAddress?]>([nil, first, first, nil, second, first])
    let told = Mutex<[IPAddress?]>([])
    let done = DispatchSemaphore(value: 0)
    let names = try AdvertisedNames(interval: .milliseconds(1), pause: .milliseconds(1)) { name, family in
      #expect(name == "gw.example" && family == .v4)
      return answers.withLock { $0.isEmpty ? first : $0.removeFirst() }
    }
    #expect(names.address("gw.example", .v4) == nil)
    try names.start([.init(name: "gw.example", family: .v4)], logger: quiet) {
      told.withLock { $0.append(names.address("gw.example", .v4)) }
      if told.withLock({ $0.count }) == 3 { done.signal() }
    }
    #expect(done.wait(timeout: .now() + 10) == .success)
    names.stop()
    #expect(told.withLock { $0 } == [first, second, first])
    #expect(names.address("gw.example", .v4) == first && names.address("gw.example", .v6) == nil)
  }

  @Test func `a name server that comes later does not hold the start up`() throws {
    let isThere = Mutex(false)
    let found = DispatchSemaphore(value: 0)
    let names = try AdvertisedNames(interval: .seconds(600), pause: .seconds(600)) { _, _ in
      isThere.withLock { $0 } ? IPAddress(198, 51, 100, 1) : nil
    }
    try names.start([.init(name: "gw.example", family: .v4)], logger: quiet) { found.signal() }
    names.wait(milliseconds: 10_000)
    #expect(names.address("gw.example", .v4) == nil)
    isThere.withLock { $0 = true }
    names.lookAgain()
    #expect(found.wait(timeout: .now() + 10) == .success)
    #expect(names.address("gw.example", .v4) == IPAddress(198, 51, 100, 1))
    names.stop()
  }
}
