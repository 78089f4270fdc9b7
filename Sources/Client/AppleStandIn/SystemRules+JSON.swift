public import Foundation

/// Rules from a file: `{"reportTime": 7, "muteBursts": 2, "activationTime": null}`. Times are seconds; rules that the file does
/// not name stay strict.
extension SystemRules {
  /// The problem of a file of rules.
  public struct FileProblem: Error, CustomStringConvertible { public let description: String }

  public init(json: Data) throws(FileProblem) {
    guard let values = (try? JSONSerialization.jsonObject(with: json)) as? [String: Any] else {
      throw FileProblem(description: "the rules are not a JSON object")
    }
    self = .strict
    for (key, value) in values.sorted(by: { $0.key < $1.key }) {
      guard let isSet = set(key, value) else {
        throw FileProblem(description: "no rule is called \"\(key)\"; there are: \(Self.names.joined(separator: ", "))")
      }
      guard isSet else { throw FileProblem(description: "\"\(key)\": \(value) is not a value of this rule") }
    }
  }

  static let times: [(String, WritableKeyPath<SystemRules, Duration> & Sendable)] = [
    ("reportTime", \.reportTime), ("answerTime", \.answerTime), ("startTime", \.startTime), ("actionTime", \.actionTime),
    ("beginTime", \.beginTime), ("ringTime", \.ringTime), ("socketsFailTime", \.socketsFailTime),
  ]
  static let optionalTimes: [(String, WritableKeyPath<SystemRules, Duration?> & Sendable)] = [
    ("activationTime", \.activationTime), ("socketLife", \.socketLife), ("zeroRateTime", \.zeroRateTime),
  ]
  static let counts: [(String, WritableKeyPath<SystemRules, Int> & Sendable)] = [
    ("killsBeforeSilence", \.killsBeforeSilence), ("maximumCallGroups", \.maximumCallGroups), ("muteBursts", \.muteBursts),
  ]
  static let switches: [(String, WritableKeyPath<SystemRules, Bool> & Sendable)] = [
    ("killsUnreported", \.killsUnreported), ("doesNotDisturb", \.doesNotDisturb),
    ("activatesAfterUnhold", \.activatesAfterUnhold),
    ("repeatsEnds", \.repeatsEnds), ("unmutesOnConnect", \.unmutesOnConnect), ("categoryClearsSpeaker", \.categoryClearsSpeaker),
    ("hasFilteringEntitlement", \.hasFilteringEntitlement), ("hasVoIPBackgroundMode", \.hasVoIPBackgroundMode),
    ("hidesReportsOffQueue", \.hidesReportsOffQueue), ("answerEndsOtherRinging", \.answerEndsOtherRinging),
    ("isUnlockedOnce", \.isUnlockedOnce), ("hasPushMetadata", \.hasPushMetadata),
  ]
  static let others = ["mustReport", "blocked", "microphone", "headsetFault", "wakesUntilSocketsFail"]

  /// The names of all rules that a file may contain.
  public static var names: [String] {
    (times.map(\.0) + optionalTimes.map(\.0) + counts.map(\.0) + switches.map(\.0) + others).sorted()
  }

  /// Nil: no such rule; false: the value has the wrong type or range.
  private mutating func set(_ key: String, _ value: Any) -> Bool? {
    if let path = Self.times.first(where: { $0.0 == key })?.1 {
      return Self.duration(value).map { self[keyPath: path] = $0 } != nil
    }
    if let path = Self.optionalTimes.first(where: { $0.0 == key })?.1 {
      self[keyPath: path] = Self.duration(value)
      return value is NSNull || Self.duration(value) != nil
    }
    if let path = Self.counts.first(where: { $0.0 == key })?.1 {
      return (value as? Int).flatMap { $0 >= 0 ? $0 : nil }.map { self[keyPath: path] = $0 } != nil
    }
    if let path = Self.switches.first(where: { $0.0 == key })?.1 {
      return (value as? Bool).map { self[keyPath: path] = $0 } != nil
    }
    switch key {
    case "mustReport": return (value as? String).flatMap { MustReport(rawValue: $0) }.map { mustReport = $0 } != nil
    case "blocked": return (value as? [String]).map { blocked = Set($0) } != nil
    case "microphone":
      return (value as? String).flatMap { SystemMachine.Permission(rawValue: $0) }.map { microphone = $0 } != nil
    case "headsetFault":
      headsetFault = (value as? String).flatMap { HeadsetFault(rawValue: $0) }
      return value is NSNull || headsetFault != nil
    case "wakesUntilSocketsFail":
      wakesUntilSocketsFail = value as? Int
      return value is NSNull || wakesUntilSocketsFail != nil
    default: return nil
    }
  }

  /// Seconds, up to a day.
  private static func duration(_ value: Any) -> Duration? {
    guard let seconds = value as? Double ?? (value as? Int).map(Double.init), (0...86_400).contains(seconds) else { return nil }
    return .milliseconds(Int((seconds * 1_000).rounded()))
  }
}
