import AppleStandIn
import Foundation

/// A request of a person, a script or a key to the handset.
enum HandsetRequest: Equatable {
  case tap(StandInPhone.Button)
  case open, kill, network
  case input(Plain)
  case push(String)
  /// Index in Recents; the newest is 1.
  case recent(Int)
  case expect(Expectation, within: Duration)
  case wait(Duration)
  case quit

  /// Inputs of the system's machine that need no further state.
  enum Plain: Equatable {
    case locked(Bool), cellular(Bool), foreground(Bool), restart
    case crash(SystemMachine.ResetCause), route(SystemMachine.Route), microphone(SystemMachine.Permission)

    var input: SystemMachine.Input {
      switch self {
      case .locked(let isOn): .locked(isOn)
      case .cellular(let isOn): .cellular(isOn)
      case .foreground(let isOn): .foreground(isOn)
      case .restart: .restarted
      case .crash(let cause): .systemReset(cause)
      case .route(let route): .route(route)
      case .microphone(let permission): .microphone(permission)
      }
    }
  }

  /// Nil: an unknown request.
  init?(_ words: [String]) {
    let rest = Array(words.dropFirst())
    func isOn(_ index: Int = 0) -> Bool? { rest.count > index ? ["on": true, "off": false][rest[index]] : nil }
    func plain(_ value: Plain?) -> HandsetRequest? { value.map { .input($0) } }
    let request: HandsetRequest? =
      switch words.first {
      case "tap": Self.button(rest).map { .tap($0) }
      case "open" where rest.isEmpty: .open
      case "kill" where rest.isEmpty: .kill
      case "network" where rest.isEmpty: .network
      case "quit" where rest.isEmpty: .quit
      case "lock" where rest.isEmpty: .input(.locked(true))
      case "unlock" where rest.isEmpty: .input(.locked(false))
      case "foreground" where rest.isEmpty: .input(.foreground(true))
      case "background" where rest.isEmpty: .input(.foreground(false))
      case "restart" where rest.isEmpty: .input(.restart)
      case "cellular": plain(isOn().map { .cellular($0) })
      case "crash": plain(rest.first.flatMap { SystemMachine.ResetCause(rawValue: $0) }.map { .crash($0) })
      case "route": plain(rest.first.flatMap { SystemMachine.Route(rawValue: $0) }.map { .route($0) })
      case "microphone": plain(rest.first.flatMap { SystemMachine.Permission(rawValue: $0) }.map { .microphone($0) })
      case "push" where !rest.isEmpty: .push(rest.joined(separator: " "))
      case "recent": rest.first.flatMap { Int($0) }.flatMap { $0 > 0 ? .recent($0) : nil }
      case "wait": rest.first.flatMap { Self.duration($0) }.map { .wait($0) }
      case "expect": Self.expectation(rest)
      default: nil
      }
    guard let request else { return nil }
    self = request
  }

  private static func button(_ words: [String]) -> StandInPhone.Button? {
    let isOn = words.count > 1 ? ["on": true, "off": false][words[1]] : nil
    return switch words.first {
    case "answer": .answer
    case "decline": .decline
    case "end": .end
    case "holdAndAnswer": .holdAndAnswer
    case "endAndAnswer": .endAndAnswer
    case "headset": .headset
    case "hold": isOn.map { .hold($0) }
    case "mute": isOn.map { .mute($0) }
    case "speaker": isOn.map { .speaker($0) }
    case "digits": words.count > 1 ? .digits(words[1]) : nil
    default: nil
    }
  }

  /// `ringing within 5s`; without a time it must hold now.
  private static func expectation(_ words: [String]) -> HandsetRequest? {
    var (words, time) = (words, Duration.zero)
    if words.count > 2, words[words.count - 2] == "within" {
      guard let given = duration(words[words.count - 1]) else { return nil }
      words = Array(words.dropLast(2))
      time = given
    }
    return Expectation(words).map { .expect($0, within: time) }
  }

  /// `2s`, `1.5s`, `300ms`; up to a day.
  static func duration(_ text: String) -> Duration? {
    let isMilliseconds = text.hasSuffix("ms")
    guard text.hasSuffix("s"), let number = Double(text.dropLast(isMilliseconds ? 2 : 1)) else { return nil }
    let milliseconds = isMilliseconds ? number : number * 1_000
    return (0...86_400_000).contains(milliseconds) ? .milliseconds(Int(milliseconds.rounded())) : nil
  }
}
