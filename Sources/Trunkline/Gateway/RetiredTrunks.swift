import Bytes
import Configuration

/// The trunks of the configuration in force, and those of earlier ones that still have calls or a registration to take back.
struct RetiredTrunks {
  /// How often the calls of retired trunks are looked at.
  static let interval = Duration.seconds(5)

  /// So long a registrar may take to answer that its registration is taken back: 64·T1 (RFC 3261 §17.1.2.2), and a challenge.
  static let unregisterTime = Duration.seconds(64)

  private var current: [Settings.Trunk]
  private var retired: [Settings.Trunk] = []
  private var unregisterDeadlines: [String: Instant] = [:]

  init(_ trunks: [Settings.Trunk]) { current = trunks }

  var hasRetired: Bool { !retired.isEmpty }
  /// Whose SIP is heard. A new call of a retired trunk has no route and is refused.
  var admitted: [Settings.Trunk] { current + retired }

  /// A new configuration: what it lacks retires, what it names again is back.
  mutating func replace(with new: [Settings.Trunk], at now: Instant) {
    let names = Set(new.map(\.name))
    for trunk in current where trunk.routing.settings?.registration != nil && !names.contains(trunk.name) {
      unregisterDeadlines[trunk.name] = now + Self.unregisterTime
    }
    retired = (retired + current).filter { !names.contains($0.name) }
    current = new
  }

  /// Lets go of retired trunks without a live call whose registrar has had its time; true if one went.
  mutating func drop(except live: Set<String>, at now: Instant) -> Bool {
    let before = retired.count
    unregisterDeadlines = unregisterDeadlines.filter { $0.value > now }
    retired.removeAll { !live.contains($0.name) && unregisterDeadlines[$0.name] == nil }
    return retired.count != before
  }
}
