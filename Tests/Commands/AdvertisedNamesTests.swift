import Bytes
import Foundation
import Logging
import MediaThreads
import Synchronization
import Testing

@testable import trunkline

@Suite struct AdvertisedNamesTests {
  @Test func `a name that leads elsewhere is told, and one that leads nowhere keeps its last address`() throws {
    let bind = try #require(IPAddress("10.0.0.5"))
    let (first, second) = (try #require(IPAddress("198.51.100.1")), try #require(IPAddress("198.51.100.2")))
    // what the resolver says: nothing, as before, elsewhere, nothing, elsewhere again
    let answers = Mutex<[IPAddress?]>([nil, first, second, nil, first])
    let told = Mutex<[IPAddress]>([])
    let done = DispatchSemaphore(value: 0)
    let names = try AdvertisedNames(interval: .milliseconds(1)) { name, family in
      #expect(name == "gw.example" && family == .v4)
      return answers.withLock { $0.isEmpty ? first : $0.removeFirst() }
    }
    var address = MediaPlaneConfiguration.Address(bind: bind, advertise: first)
    address.name = "gw.example"
    try names.start([address], logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }) { found, at in
      #expect(at == bind)
      told.withLock { $0.append(found) }
      if told.withLock({ $0.count }) == 2 { done.signal() }
    }
    #expect(done.wait(timeout: .now() + 10) == .success)
    names.stop()
    #expect(told.withLock { $0 } == [second, first])
  }
}
