/// The socket of one session: the one in use, or the racing attempts.
struct SocketRace {
  /// Numbered attempts: events of older ones are ignored.
  private var attempts: [(number: Int, socket: any Socket)] = []
  private var isOpen = false

  /// The effect of a socket's event on the session.
  enum Meaning { case opened, received, closed, nothing }

  /// Adds an attempt to the race.
  mutating func add(_ number: Int, _ socket: any Socket) { attempts.append((number, socket)) }
  var isUndecided: Bool { !isOpen && !attempts.isEmpty }
  var isEmpty: Bool { attempts.isEmpty }

  /// The first attempt that opens wins; the failure of the last one fails all.
  mutating func handle(_ event: SocketEvent, of number: Int) -> Meaning {
    guard let index = attempts.firstIndex(where: { $0.number == number }) else { return .nothing }
    switch event {
    case .opened:
      guard !isOpen else { return .nothing }
      let winner = attempts.remove(at: index)
      abandon()
      attempts = [winner]
      isOpen = true
      return .opened
    case .received: return isOpen ? .received : .nothing
    case .closed:
      attempts.remove(at: index)
      return attempts.isEmpty ? .closed : .nothing
    }
  }

  func send(_ text: [UInt8]) { if isOpen { attempts.first?.socket.send(text) } }
  func close(_ code: UInt16) { for attempt in attempts { attempt.socket.close(code) } }

  /// Drops attempts that are not open; an open socket serves until the gateway closes it, since a resumed session replaces it.
  func abandon() { if !isOpen { close(1000) } }
}
