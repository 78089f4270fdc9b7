import AppleStandIn

/// A state of the phone that a script expects.
enum Expectation: Equatable {
  case ringing, active, held, idle, locked, running, stopped, audio, clean
  /// A rule, by name, that was broken at least this often: breaks are counted, since a check may miss one that lasts
  /// milliseconds.
  case violation(String, times: Int)

  static let names = "ringing, active, held, idle, locked, running, stopped, audio, clean, violation RULE [TIMES]"

  init?(_ words: [String]) {
    let plain: [String: Expectation] = [
      "ringing": .ringing, "active": .active, "held": .held, "idle": .idle, "locked": .locked, "running": .running,
      "stopped": .stopped, "audio": .audio, "clean": .clean,
    ]
    if words.count == 1, let value = plain[words[0]] {
      self = value
    } else if (2...3).contains(words.count), words[0] == "violation", SystemMachine.Rule(rawValue: words[1]) != nil,
      let times = words.count == 2 ? 1 : Int(words[2]), times > 0
    {
      self = .violation(words[1], times: times)
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
    case .violation(let rule, let times): phone.violations.count { $0.hasPrefix(rule + ":") } >= times
    }
  }
}
