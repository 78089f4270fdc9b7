import AppleStandIn
import TrunklineBytes

/// The phone as text.
enum HandsetScreen {
  /// On one line, for messages.
  static func line(_ phone: PhoneModel) -> String {
    let screen = phone.screen
    var parts = [phone.machine.isRunning ? "the app runs" : "the app does not run"]
    if let incoming = screen.incoming { parts.append("\(incoming.title) rings") }
    parts += screen.calls.map { "\($0.title) \($0.isHeld ? "held" : $0.phase.rawValue)" }
    parts += phone.violations.suffix(3)
    return parts.joined(separator: "; ")
  }

  /// A frame of 44 columns, then the last lines of the log and the keys.
  static func draw(_ phone: PhoneModel, columns: Int = 44) -> [String] {
    let screen = phone.screen
    var rows = [screen.isLocked ? "locked" : phone.machine.isForeground ? "the app is open" : "home screen"]
    rows.append(phone.machine.isRunning ? "app: running" : "app: not running")
    rows.append("")
    if let incoming = screen.incoming {
      rows += [incoming.title, "incoming call", "[a] answer   [d] decline"]
    }
    for call in screen.calls {
      rows.append("\(call.title)  \(call.isHeld ? "on hold" : call.phase.rawValue)\(call.isMuted ? ", muted" : "")")
    }
    if !screen.calls.isEmpty {
      rows.append("[d] end  [h] hold  [m] mute  [s] speaker\(screen.isSpeakerOn ? " on" : "")")
    }
    if screen.isCellularCall { rows.append("cellular call") }
    if screen.incoming == nil, screen.calls.isEmpty {
      rows += phone.recents.suffix(3).reversed().map { "\($0.direction.rawValue) \($0.caller.handle)  \($0.outcome.rawValue)" }
    }
    let edge = "+" + String(repeating: "-", count: columns - 2) + "+"
    let framed = rows.map { row in
      let text = printable(row).prefix(columns - 4)
      return "| " + text + String(repeating: " ", count: columns - 4 - text.count) + " |"
    }
    let log = phone.log.suffix(8).map { String(printable($0.description).prefix(110)) }
    let violations = phone.violations.suffix(3).map { "! " + printable($0).prefix(108) }
    return [edge] + framed + [edge] + violations + log + [keys]
  }

  static let keys = "o open  b background  l lock  k kill  c cellular  n network  q quit"

  /// A caller's name must not write to the terminal.
  private static func printable(_ text: String) -> String {
    TerminalText.line(text)
  }
}
