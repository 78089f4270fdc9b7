import TrunklineBytes

// The named limits of this module: every bound on a queue, table or message.
enum Limits {
  /// Names of a trunk's `peers` that are resolved, and addresses of one of them that count.
  static let peerNames = 32
  static let peerAddresses = 64
  /// Name servers that are listed where a name has no answer.
  static let shownNameServers = 4
  /// Servers of one trunk that a call may try.
  static let targets = 16
  /// A server that failed comes last for this long, or for the Retry-After of its 503 within these bounds (RFC 3263 §4.3).
  static let penalty: ClosedRange<Duration> = .seconds(5) ... .seconds(300)
  static let usualPenalty: Duration = .seconds(30)
  static let penalties = 1_024
  /// Seconds that a registrar may grant, and the pause after a failure, doubled from the first to the second.
  static let registrationSeconds = 10...86_400
  static let registrationPause: ClosedRange<Duration> = .seconds(5) ... .seconds(300)
  /// Contacts of a trunk that a registrar may have bound without our knowledge.
  static let suspectContacts = 4
  /// The pause before a trunk is checked again if no listener reaches any of its servers.
  static let unreachablePause: Duration = .seconds(5)
  static let longestRetryAfter: Duration = .seconds(3_600)
  /// An OPTIONS without an answer for this long counts as lost: Timer F's 32 s (RFC 3261 §17.1.2.2) would report a dead trunk
  /// after more than a minute and a half.
  static let probeTime: Duration = .seconds(5)
  /// Calls in a row that failed by the trunk's fault before it is left out, and for how long, doubled.
  static let breaker = CircuitBreaker.Policy(failures: 5, pause: .seconds(10) ... .seconds(300))
  /// Users whose calls of the last hour are remembered.
  static let quotaUsers = 100_000
}
