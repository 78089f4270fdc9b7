import AppleStandIn

/// What a script expects to see of the phone.
enum Expectation: Equatable {
  case ringing, active, held, idle, locked, running, stopped, audio, clean
  /// A rule that was broken, by name.
  case violation(String)

  static let names = "ringing, active, held, idle, locked, running, stopped, audio, clean, violation RULE"

  init?(_ words: [String]) {
    let plain: [String: Expectation] = [
      "ringing": .ringing, "active": .active, "held": .held, "idle": .idle, "locked": .locked, "running": .running,
      "stopped": .stopped, "audio": .audio, "clean": .clean,
    ]
    if words.count == 1, let value = plain[words[0]] {
      self = value
    } else if words.count == 2, words[0] == "violation", SystemMachine.Rule(rawValue: words[1]) != nil {
      self = .violation(words[1])
    } else {
      return nil
    }
  }

  func holds(_ phone: PhoneModel) -> Bool {
    let screen = phone.screen
    return switch self {
    case .ringing: screen.incoming != nil
    case .active: screen.calls.contains { $0.phase == .active && !$0.isHeld }
    case .held: screen.calls.contains { $0.isHeld }
    case .idle: screen.incoming == nil && screen.calls.isEmpty
    case .locked: screen.isLocked
    case .running: phone.machine.isRunning
    case .stopped: !phone.machine.isRunning
    case .audio: phone.machine.isAudioActive
    case .clean: phone.violations.isEmpty
    case .violation(let rule): phone.violations.contains { $0.hasPrefix(rule + ":") }
    }
  }
}
