import TrunklineAppProtocol
public import TrunklineMediaSession
import TrunklineSDP
import TrunklineSIPDialogs

/// Why no device answered an incoming call (docs/reference/protocol.md, Call states): the triggers of a diversion.
public enum DiversionTrigger: String, Sendable, CaseIterable, Codable {
  /// No device rings or could be woken, or all of them filter.
  case unreached
  case noAnswer
  case busy
  case declined
  case mediaFailed
}

/// The rules for an incoming call that no device answers: at most one for each trigger.
public struct Diversions: Sendable {
  public enum Target: Sendable {
    /// This user's devices ring instead.
    case user(String)
    /// A second leg over the trunks that the user may call out on. It shows the user's own number, or with `showsCaller` the
    /// caller's.
    case number(String, showsCaller: Bool)
    case recording(Recording)
    /// This final response.
    case code(Int)
  }
  /// A file that is played to the caller.
  public struct Recording: Sendable {
    /// For the record and the log.
    public var name: String
    public var audio: Announcement
    /// Before the call is answered (183), which is then refused; else the call is answered first and ended afterwards.
    public var isEarly: Bool
    /// Devices get the reason that they would get without the rule, so that they show a missed call; else `diverted`.
    public var isMissed: Bool
    public init(name: String, audio: Announcement, isEarly: Bool = false, isMissed: Bool = true) {
      (self.name, self.audio, self.isEarly, self.isMissed) = (name, audio, isEarly, isMissed)
    }
  }
  public struct Rule: Sendable {
    public var target: Target
    /// For `unreached`: how long no device has reported that it rings; for `noAnswer`: how long the call rings.
    public var after: Duration?
    public init(_ target: Target, after: Duration? = nil) { (self.target, self.after) = (target, after) }
  }

  public var rules: [DiversionTrigger: Rule]
  public init(_ rules: [DiversionTrigger: Rule] = [:]) { self.rules = rules }

  /// The user's own rules, and the route's for triggers without one.
  package func orElse(_ others: Diversions) -> Diversions { Diversions(rules.merging(others.rules) { own, _ in own }) }

  /// The default of `after` for `unreached`: long enough for an app that is started by a push.
  public static let unreachedAfter = Duration.seconds(20)
}

extension DiversionTrigger {
  /// As the configuration and login tokens spell it.
  public var key: String {
    switch self {
    case .noAnswer: "no_answer"
    case .mediaFailed: "media_failed"
    case .unreached, .busy, .declined: rawValue
    }
  }

  /// RFC 5806 §5.3.
  package var diversionReason: String {
    switch self {
    case .unreached: "unavailable"
    case .noAnswer: "no-answer"
    case .busy: "user-busy"
    case .declined: "deflection"
    case .mediaFailed: "out-of-service"
    }
  }

  /// Q.850 §2.2.7: the cause for the caller at the end of a recording.
  package var cause: Int {
    switch self {
    case .unreached: 20
    case .noAnswer: 19
    case .busy: 17
    case .declined: 21
    case .mediaFailed: 41
    }
  }
}
