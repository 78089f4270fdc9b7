import TrunklineBytes

/// Every bound of names, their records and the times of their queries (RFC 3263).
enum LocationLimits {
  /// DNS queries about one URI; further SRV targets are not queried.
  static let questions = 64
  /// Queries that no caller needs and that are kept until they would be due again; if there are more, all of them are forgotten.
  static let unusedQuestions = 256
  /// Records of one answer that are used.
  static let records = 64
  /// Bounds of a record's time to live.
  static let timeToLive: ClosedRange<Duration> = .seconds(1) ... .seconds(3_600)
  /// How long "there is no such record" counts, doubled from the first to the second while the answer is repeated.
  static let negativeTime: ClosedRange<Duration> = .seconds(5) ... .seconds(60)
  /// The pause between two queries while the name servers do not answer, doubled from the first to the second.
  static let failedLookUp: ClosedRange<Duration> = .seconds(2) ... .seconds(60)
  /// How long the next step of RFC 3263 waits for a first answer: one round of tries of the resolver.
  static let patience: Duration = .seconds(4)
  /// How long a query may wait for its answer before it is given up.
  static let lookUpTime: Duration = .seconds(20)
}
