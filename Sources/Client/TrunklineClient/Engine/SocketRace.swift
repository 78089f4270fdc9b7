/// The socket of one session: the one in use, or the attempts that race to be it.
struct SocketRace {
  /// Numbered: what an older one still says is not heard.
  private var attempts: [(number: Int, socket: any Socket)] = []
  private var isOpen = false

  /// What an event of a socket is for the session.
  enum Meaning { case opened, received, closed, nothing }

  /// One of the race, in place of none.
  mutating func add(_ number: Int, _ socket: any Socket) { attempts.append((number, socket)) }
  var isUndecided: Bool { !isOpen && !attempts.isEmpty }
  var isEmpty: Bool { attempts.isEmpty }

  /// The first that opens has won, and the last that fails has lost for all.
  mutating func handle(_ event: SocketEvent, of number: Int) -> Meaning {
    guard let index = attempts.firstIndex(where: { $0.number == number }) else { return .nothing }
    switch event {
    case .opened:
      guard !isOpen else { return .nothing }
      let winner = attempts.remove(at: index)
      abandon()
      (attempts, isOpen) = ([winner], true)
      return .opened
    case .received: return isOpen ? .received : .nothing
    case .closed:
      attempts.remove(at: index)
      return attempts.isEmpty ? .closed : .nothing
    }
  }

  func send(_ text: [UInt8]) { if isOpen { attempts.first?.socket.send(text) } }
  func close(_ code: UInt16) { for attempt in attempts { attempt.socket.close(code) } }

  /// Attempts that are not open are given up; an open socket serves until the gateway closes it, since a session that is resumed replaces it.
  func abandon() { if !isOpen { close(1000) } }
}
