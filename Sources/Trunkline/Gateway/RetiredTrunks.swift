import Configuration
import TrunklineBytes

/// The trunks of the current configuration, and those of earlier ones that still have calls or a registration to remove.
struct RetiredTrunks {
  /// How often the calls of retired trunks are checked.
  static let interval = Duration.seconds(5)

  /// How long a registrar may take to answer the removal of its registration: 64·T1 (RFC 3261 §17.1.2.2), twice because of a
  /// challenge.
  static let unregisterTime = Duration.seconds(64)

  private var current: [Settings.Trunk]
  private var retired: [Settings.Trunk] = []
  private var unregisterDeadlines: [String: Instant] = [:]

  init(_ trunks: [Settings.Trunk]) { current = trunks }

  var hasRetired: Bool { !retired.isEmpty }
  /// Trunks whose SIP is accepted. A new call of a retired trunk has no route and is refused.
  var admitted: [Settings.Trunk] { current + retired }

  /// Applies a new configuration: trunks that it lacks retire, and retired ones that it names return.
  mutating func replace(with new: [Settings.Trunk], at now: Instant) {
    let names = Set(new.map(\.name))
    for trunk in current where trunk.routing.settings?.registration != nil && !names.contains(trunk.name) {
      unregisterDeadlines[trunk.name] = now + Self.unregisterTime
    }
    retired = (retired + current).filter { !names.contains($0.name) }
    current = new
  }

  /// Drops retired trunks without a live call whose registrar's time is over; true if one was dropped.
  mutating func drop(except live: Set<String>, at now: Instant) -> Bool {
    let before = retired.count
    unregisterDeadlines = unregisterDeadlines.filter { $0.value > now }
    retired.removeAll { !live.contains($0.name) && unregisterDeadlines[$0.name] == nil }
    return retired.count != before
  }
}
