import Testing
import TrunklineBytes

@testable import OutgoingHTTP

@Suite struct TimerPaceTests {
  @Test func `news every millisecond does not put off a deadline that has come, and a thousand deadlines fire 50 times a second`()
  {
    var pace = TimerPace(pause: .milliseconds(20))
    var fired: [Int64] = []
    var deadlines = (1...1_000).map { Instant.zero + .milliseconds(500 + $0) }
    // each millisecond brings news, after which the owner asks again
    for millisecond in 0..<2_000 as Range<Int64> {
      let now = Instant.zero + .milliseconds(millisecond)
      guard let next = deadlines.first else { break }
      guard pace.due(next) <= now else { continue }
      pace.fired(at: now)
      fired.append(millisecond)
      deadlines.removeAll { $0 <= now }
    }
    #expect(fired.first == 501, "nothing has fired before: in time")
    #expect(deadlines.isEmpty && fired.count == 51)
    #expect(zip(fired, fired.dropFirst()).allSatisfy { $1 - $0 == 20 })
  }
}
