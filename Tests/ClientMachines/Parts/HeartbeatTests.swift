import Testing
import TrunklineBytes

@testable import TrunklineClientMachines

@Suite struct HeartbeatTests {
  private func begun() -> Heartbeat {
    var heartbeat = Heartbeat()
    heartbeat.received(at: seconds(1))
    heartbeat.begin(every: 10_000, at: seconds(1))
    return heartbeat
  }

  @Test func `nothing is due before it begins, before its time, and after it was stopped`() {
    var heartbeat = Heartbeat()
    holds(heartbeat.due(at: seconds(99)) == .nothing && heartbeat.deadline == nil)
    heartbeat = begun()
    holds(heartbeat.due(at: seconds(10.9)) == .nothing && heartbeat.deadline == seconds(11))
    heartbeat.stop()
    heartbeat.stop()
    heartbeat.received(at: seconds(11))
    holds(heartbeat.due(at: seconds(99)) == .nothing)
  }

  @Test func `a silent connection is dead at twice the time, and one that receives is pinged`() {
    var heartbeat = begun()
    holds(heartbeat.due(at: seconds(11)) == .ping && heartbeat.due(at: seconds(11)) == .nothing)
    holds(heartbeat.due(at: seconds(21)) == .dead && heartbeat.deadline == nil && heartbeat.due(at: seconds(22)) == .nothing)
    heartbeat = begun()
    for time in [11.0, 21, 31] {
      holds(heartbeat.due(at: seconds(time)) == .ping)
      heartbeat.received(at: seconds(time))
    }
  }

  @Test func `a connection that falls silent between two pings is dead at twice the time, and not at the ping after that`() {
    var heartbeat = begun()
    heartbeat.received(at: seconds(8))
    holds(heartbeat.due(at: seconds(11)) == .ping && heartbeat.due(at: seconds(21)) == .ping)
    #expect(heartbeat.deadline == seconds(28))
    var answered = heartbeat
    answered.received(at: seconds(27))
    holds(answered.deadline == seconds(31) && answered.due(at: seconds(28)) == .nothing)
    holds(heartbeat.due(at: seconds(28)) == .dead)
  }

  @Test func `a late timer proves nothing: the connection is checked a second time`() {
    var heartbeat = begun()
    holds(heartbeat.due(at: seconds(11)) == .ping && heartbeat.due(at: seconds(40)) == .ping && heartbeat.deadline == seconds(41))
    var answered = heartbeat
    answered.received(at: seconds(40.5))
    holds(answered.due(at: seconds(41)) == .ping && answered.deadline == seconds(51))
    holds(heartbeat.due(at: seconds(41)) == .dead)
  }

  @Test func `the gateway's time is limited, and a new connection begins again`() {
    for (milliseconds, end) in [(0, 2.0), (1_000_000, 601), (-5, 2)] {
      var heartbeat = begun()
      heartbeat.begin(every: milliseconds, at: seconds(1))
      #expect(heartbeat.deadline == seconds(end))
    }
  }
}
