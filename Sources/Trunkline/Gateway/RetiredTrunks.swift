import Configuration

/// The trunks of the configuration in force, and those of earlier ones that still have calls.
struct RetiredTrunks {
  /// How often the calls of retired trunks are looked at.
  static let interval = Duration.seconds(5)

  private var current: [Settings.Trunk]
  private var retired: [Settings.Trunk] = []

  init(_ trunks: [Settings.Trunk]) { current = trunks }

  var hasRetired: Bool { !retired.isEmpty }
  /// Whose SIP is heard. A new call of a retired trunk has no route and is refused.
  var admitted: [Settings.Trunk] { current + retired }

  /// A new configuration: what it lacks retires, what it names again is back.
  mutating func replace(with new: [Settings.Trunk]) {
    let names = Set(new.map(\.name))
    retired = (retired + current).filter { !names.contains($0.name) }
    current = new
  }

  /// Lets go of retired trunks without a live call; true if one went.
  mutating func drop(except live: Set<String>) -> Bool {
    let before = retired.count
    retired.removeAll { !live.contains($0.name) }
    return retired.count != before
  }
}
