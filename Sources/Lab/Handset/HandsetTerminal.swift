import AppleStandIn
import Foundation
import Glibc

/// Draws the phone on a terminal, and reads keys.
final class HandsetTerminal {
  static var isThere: Bool { isatty(0) == 1 && isatty(1) == 1 }

  private var before = termios()

  /// Reads single keys without echo until this object is released.
  init() {
    tcgetattr(0, &before)
    var raw = before
    raw.c_lflag &= ~tcflag_t(ICANON | ECHO)
    tcsetattr(0, TCSANOW, &raw)
  }

  deinit { tcsetattr(0, TCSANOW, &before) }

  /// Blocks until q, the end of the input, or `isOver`.
  func run(_ phone: HandsetPhone, until isOver: () -> Bool) {
    var seen = -1
    while !isOver() {
      let state = phone.state
      if state.log.count != seen {
        seen = state.log.count
        print("\u{1b}[H\u{1b}[2J" + HandsetScreen.draw(state).joined(separator: "\n"))
        fflush(nil)
      }
      var poll = pollfd(fd: 0, events: Int16(POLLIN), revents: 0)
      guard Glibc.poll(&poll, 1, 100) > 0 else { continue }
      var key: UInt8 = 0
      guard read(0, &key, 1) == 1, key != UInt8(ascii: "q") else { return }
      if let request = Self.request(key, state) { _ = request.run(on: phone) }
    }
  }

  /// The request of a key, depending on the screen.
  static func request(_ key: UInt8, _ phone: PhoneModel) -> HandsetRequest? {
    let screen = phone.screen
    let newest = screen.calls.last
    return switch Character(UnicodeScalar(key)) {
    case "a": .tap(screen.calls.isEmpty ? .answer : .holdAndAnswer)
    case "d": .tap(screen.incoming == nil ? .end : .decline)
    case "h": newest.map { .tap(.hold(!$0.isHeld)) }
    case "m": newest.map { .tap(.mute(!$0.isMuted)) }
    case "s": .tap(.speaker(!screen.isSpeakerOn))
    case "l": .input(.locked(!screen.isLocked))
    case "c": .input(.cellular(!screen.isCellularCall))
    case "b": .input(.foreground(false))
    case "o": .open
    case "k": .kill
    case "n": .network
    default: nil
    }
  }
}
