import Bytes
import ClientMachines
import Synchronization

/// The last events of the phone, for a bug report: one line each, calls by the first eight digits of their id, numbers and tokens left out.
final class PhoneTrace: Sendable {
  static let limit = 500
  private let lines = Mutex<[String]>([])

  func note(_ input: PhoneMachine.Input, _ now: Instant) {
    if case .timer = input { return }
    add(now, "→", Self.text(String(describing: input)))
  }
  func note(_ action: PhoneMachine.Action, _ now: Instant) { add(now, "←", Self.text(String(describing: action))) }

  var text: [String] { lines.withLock { $0 } }

  private func add(_ now: Instant, _ arrow: String, _ text: String) {
    lines.withLock { lines in
      if lines.count >= Self.limit { lines.removeFirst(Self.limit / 4) }
      lines.append("\(now.nanoseconds / 1_000_000) \(arrow) \(text)")
    }
  }

  /// The name of an event and the call that it is about; nothing of what it carries.
  static func text(_ description: String) -> String {
    let name = description.prefix { $0.isLetter }
    guard let call = description.firstMatch(of: /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/) else {
      return String(name) + detail(description, name)
    }
    return "\(name) \(call.output.prefix(8))" + detail(description, name)
  }

  /// What says more than the name and tells nothing of anybody: states, orders, codes.
  private static func detail(_ description: String, _ name: Substring) -> String {
    let told: Set<String> = [
      "audio", "state", "audioActivated", "foreground", "microphone", "reported", "complete", "reportEnded",
    ]
    guard told.contains(String(name)) else { return "" }
    let words = description.dropFirst(name.count).matches(of: /\b(true|false|[a-z][A-Za-z]{2,})\b/).map { String($0.output.0) }
    return words.isEmpty ? "" : " " + words.suffix(2).joined(separator: " ")
  }
}
