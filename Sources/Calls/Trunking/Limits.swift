import Bytes

// The named limits of this module; every bound on a queue, table or message stands here.
enum Limits {
  /// Questions about the names of one trunk; further SRV targets are not asked for.
  static let questionsPerTrunk = 64
  /// Questions that no trunk needs any more and that are remembered until they might be asked again; with more all of these are forgotten.
  static let unusedQuestions = 256
  /// Name servers that are named where a name has no answer.
  static let shownNameServers = 4
  /// Records of one answer that count.
  static let records = 64
  /// Servers of one trunk that a call may try.
  static let targets = 16
  /// Bounds of a record's time to live.
  static let timeToLive: ClosedRange<Duration> = .seconds(1) ... .seconds(3_600)
  /// How long "there is no such record" counts, doubled from the first to the second while it is said again.
  static let negativeTime: ClosedRange<Duration> = .seconds(5) ... .seconds(60)
  /// Between two questions while the name servers do not answer, doubled from the first to the second.
  static let failedLookUp: ClosedRange<Duration> = .seconds(2) ... .seconds(60)
  /// How long the next step of RFC 3263 waits for a first answer: one round of tries of the resolver.
  static let patience: Duration = .seconds(4)
  /// How long an answer may be under way before it is given up.
  static let lookUpTime: Duration = .seconds(20)
  /// A server that failed comes last for this long, or for the Retry-After of its 503 within these bounds (RFC 3263 §4.3).
  static let penalty: ClosedRange<Duration> = .seconds(5) ... .seconds(300)
  static let usualPenalty: Duration = .seconds(30)
  static let penalties = 1_024
  /// What a registrar may grant, and the pause after a failure, doubled from the first to the second.
  static let registrationSeconds = 10...86_400
  static let registrationPause: ClosedRange<Duration> = .seconds(5) ... .seconds(300)
  /// Contacts of a trunk that a registrar may have bound without our hearing of it.
  static let suspectContacts = 4
  /// Until a trunk is looked at again none of whose servers a listener reaches.
  static let unreachablePause: Duration = .seconds(5)
  static let longestRetryAfter: Duration = .seconds(3_600)
  /// An OPTIONS without an answer for this long counts as lost: Timer F's 32 s (RFC 3261 §17.1.2.2) would tell of a dead trunk after
  /// more than a minute and a half.
  static let probeTime: Duration = .seconds(5)
  /// Calls in a row that failed by the trunk's fault before it is left alone, and for how long, doubled.
  static let breaker = CircuitBreaker.Policy(failures: 5, pause: .seconds(10) ... .seconds(300))
  /// Users whose calls of the last hour are remembered.
  static let quotaUsers = 100_000
}
