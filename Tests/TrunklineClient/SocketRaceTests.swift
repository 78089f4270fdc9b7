import Synchronization
import Testing

@testable import TrunklineClient

/// Which of the attempts is a session's socket.
@Suite struct SocketRaceTests {
  private final class One: Socket {
    private let heard = Mutex<[String]>([])
    func send(_ text: [UInt8]) { heard.withLock { $0.append("send") } }
    func close(_ code: UInt16) { heard.withLock { $0.append("close \(code)") } }
    var log: [String] { heard.withLock { $0 } }
  }

  @Test func `the first that opens is the session's, and all others are closed`() {
    var race = SocketRace()
    let sockets = (0..<3).map { _ in One() }
    for (number, socket) in sockets.enumerated() { race.add(number, socket) }
    race.send([1])
    #expect(race.isUndecided && race.handle(.received([1]), of: 1) == .nothing && race.handle(.opened, of: 1) == .opened)
    #expect(!race.isUndecided && sockets.map(\.log) == [["close 1000"], [], ["close 1000"]], "what was sent before went nowhere")
    for event in [SocketEvent.opened, .received([1]), .closed(1006, nil)] {
      #expect(race.handle(event, of: 0) == .nothing && race.handle(event, of: 2) == .nothing)
    }
    #expect(race.handle(.opened, of: 1) == .nothing && race.handle(.received([1]), of: 1) == .received)
    race.send([1])
    race.close(4002)
    #expect(sockets[1].log == ["send", "close 4002"] && race.handle(.closed(4002, nil), of: 1) == .closed)
    #expect(race.handle(.closed(4002, nil), of: 1) == .nothing && race.isEmpty)
  }

  @Test func `the last that fails has lost for all, in either order`() {
    for order in [[0, 1], [1, 0]] {
      var race = SocketRace()
      for number in 0..<2 { race.add(number, One()) }
      #expect(
        race.handle(.closed(1006, nil), of: order[0]) == .nothing && race.handle(.closed(1006, nil), of: order[1]) == .closed)
    }
  }

  @Test func `attempts that gave way are closed, an open socket is not: the gateway replaces it`() {
    let sockets = [One(), One()]
    var race = SocketRace()
    race.add(0, sockets[0])
    race.abandon()
    #expect(sockets[0].log == ["close 1000"])
    race = SocketRace()
    race.add(1, sockets[1])
    _ = race.handle(.opened, of: 1)
    race.abandon()
    #expect(sockets[1].log.isEmpty)
  }

  @Test func `an event of nobody is nothing`() {
    var race = SocketRace()
    #expect(race.handle(.opened, of: 7) == .nothing && race.handle(.closed(1000, nil), of: 7) == .nothing && !race.isUndecided)
    race.send([1])
    race.close(1000)
  }
}
