public import TrunklineBytes

/// What a user may dial: a limit for toll fraud.
public struct UserAllowance: Sendable, Equatable {
  /// Beginnings of numbers that the user may call; nil: any that has a route.
  public var prefixes: [String]?
  /// Outgoing calls at a time.
  public var calls: Int?
  public var callsPerHour: Int?

  public init(prefixes: [String]? = nil, calls: Int? = nil, callsPerHour: Int? = nil) {
    (self.prefixes, self.calls, self.callsPerHour) = (prefixes, calls, callsPerHour)
  }

  public func allows(_ number: String) -> Bool { prefixes?.contains { number.hasPrefix($0) } ?? true }
}

/// The outgoing calls of each user in the last hour.
public struct UserQuota: Sendable {
  private var starts: [String: [Instant]] = [:]
  private static let hour = Duration.seconds(3_600)

  public init() {}

  /// Counts a call, unless the user has had `most` in the hour before `now`.
  public mutating func consume(_ user: String, most: Int?, at now: Instant) -> Bool {
    guard let most else { return true }
    var mine = (starts[user] ?? []).filter { now - $0 < Self.hour }
    defer { starts[user] = mine.isEmpty ? nil : mine }
    guard mine.count < most else { return false }
    if starts[user] == nil, starts.count >= Limits.quotaUsers { forgetOld(now) }
    mine.append(now)
    return true
  }

  private mutating func forgetOld(_ now: Instant) {
    starts = starts.filter { now - ($0.value.last ?? .zero) < Self.hour }
  }
}
