import Foundation
import Logging
import Synchronization
import Testing
import TrunklineBytes

@testable import TrunklinePlatform

@Suite struct NetworkWatchTests {
  private func ms(_ count: Int64) -> Instant { Instant(nanoseconds: 1_000_000_000_000 + count * 1_000_000) }

  @Test func `the first change is inspected at once, the next ones once a second, and without a change once a minute`() {
    var schedule = LookSchedule()
    #expect(schedule.isDue(at: ms(0)))
    let isFirst = schedule.looked(at: ms(0))
    #expect(isFirst)
    #expect(!schedule.isDue(at: ms(59_999)) && schedule.isDue(at: ms(60_000)))
    schedule.changed()
    #expect(schedule.isDue(at: ms(1_000)), "a second after the last look")
    // an interface that flaps ten times a second, for a minute
    var looks = 0
    for time in stride(from: Int64(5_000), to: 65_000, by: 100) {
      schedule.changed()
      guard schedule.isDue(at: ms(time)) else { continue }
      let isChanged = schedule.looked(at: ms(time))
      #expect(isChanged)
      looks += 1
    }
    #expect(looks == 60)
    schedule.changed()
    #expect(schedule.isDue(at: ms(66_000)), "what changed last is seen")
  }

  @Test func `a caller that asks to be called again is called once`() {
    var schedule = LookSchedule()
    _ = schedule.looked(at: ms(0))
    schedule.again = ms(10_000)
    #expect(!schedule.isDue(at: ms(9_999)) && schedule.isDue(at: ms(10_000)))
    let isAsked = schedule.looked(at: ms(10_000))
    #expect(isAsked, "also if nothing has changed")
    #expect(!schedule.isDue(at: ms(69_999)) && schedule.isDue(at: ms(70_000)))
    let isIdle = !schedule.looked(at: ms(70_000))
    #expect(isIdle)
    schedule.again = ms(70_001)
    #expect(!schedule.isDue(at: ms(70_500)), "nobody makes it look more than once a second")
  }

  @Test func `a state that flaps is reported four times at once, then every ten seconds as it is by then`() {
    var news = StateNews(said: 0)
    let nothing = news.line(of: 0, at: ms(0))
    #expect(nothing == nil && news.due == nil)
    var lines = 0
    for step in 1...600 where news.line(of: step % 2, at: ms(Int64(step) * 100)) != nil { lines += 1 }
    #expect((4...10).contains(lines), "\(lines) in a minute")
    // the state that lasts: at most one more line, on its own only if the last line stated another
    _ = news.line(of: 1, at: ms(60_100))
    if let due = news.due {
      let late = news.line(of: 1, at: due)
      #expect(due <= ms(70_100) && late == 1)
    }
    let again = news.line(of: 1, at: ms(90_000))
    #expect(again == nil && news.due == nil)
  }

  @Test func `the machine's addresses are handed on at the start, after a change, and on demand`() throws {
    let (first, second) = (MachineAddresses([.init(.loopback)]), MachineAddresses([.init(IPAddress(192, 0, 2, 7))]))
    let now = Mutex(first)
    let seen = Mutex<[MachineAddresses]>([])
    let (one, two) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    let watch = try NetworkWatch { now.withLock { $0 } }
    try watch.start(logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }) { machine in
      let count = seen.withLock { seen in
        seen.append(machine)
        return seen.count
      }
      (count == 1 ? one : two).signal()
      return nil
    }
    #expect(one.wait(timeout: .now() + 10) == .success)
    now.withLock { $0 = second }
    watch.lookAgain()
    #expect(two.wait(timeout: .now() + 10) == .success)
    watch.stop()
    #expect(seen.withLock { $0.prefix(2) } == [first, second])
  }

  @Test func `an inspection that fails is retried`() throws {
    let tries = Mutex(0)
    let found = DispatchSemaphore(value: 0)
    let watch = try NetworkWatch { () throws(SystemError) in
      let count = tries.withLock { tries in
        tries += 1
        return tries
      }
      if count == 1 { throw SystemError("list interfaces", code: ENOBUFS) }
      return MachineAddresses()
    }
    try watch.start(logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }) { _ in
      found.signal()
      return nil
    }
    #expect(found.wait(timeout: .now() + 10) == .success)
    watch.stop()
  }

  @Test func `a socket at an address that is not there yet is bound when it waits for it, and not on a port that is taken`()
    throws
  {
    let absent = IPAddress(192, 0, 2, 1)
    let socket = try UDPSocket(bind: SocketAddress(absent, 0), waitsForAddress: true)
    #expect(socket.localAddress.ip == absent && socket.localAddress.port != 0)
    let second = #expect(throws: SystemError.self) { _ = try UDPSocket(bind: socket.localAddress, waitsForAddress: true) }
    #expect(second?.isAddressInUse == true)
    let listener = try TCPListener(bind: SocketAddress(absent, 0), waitsForAddress: true)
    #expect(listener.localAddress.ip == absent)
    #expect(throws: SystemError.self) { _ = try socket.send([1], to: SocketAddress(IPAddress(192, 0, 2, 2), 9)) }
  }
}
