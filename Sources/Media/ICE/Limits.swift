// The named limits of this module: every bound on a queue, table or message.
enum Limits {
  /// Addresses that a lite agent remembers as validated; the least recently checked one that is not nominated is replaced.
  static let validatedAddresses = 8
  /// Addresses that memory is allocated for at first: most peers have one, or one before and one after they change networks.
  static let usualAddresses = 2
  /// Generations that a lite agent answers at a time: the nominated one, the newest, and one between.
  static let generations = 3
  /// How long an old generation is received after a newer one was nominated (docs/reference/protocol.md, During the call).
  static let oldGeneration: Duration = .seconds(5)
  /// Bytes that hold every check and answer we write.
  static let messageBytes = 600

  // The controlling agent.

  /// Our candidates, the peer's, and their pairs (RFC 8445 §6.1.2.5 proposes 100 pairs).
  static let localCandidates = 12
  static let remoteCandidates = 32
  static let pairs = 100
  /// Pacing between first transmissions of checks (Ta, RFC 8445 §14.2).
  static let pacing: Duration = .milliseconds(50)
  /// The first retransmission of a check. RFC 8445 §14.3 recommends 500 ms or more; a phone has 5 s until the media gate closes
  /// (docs/reference/protocol.md) and a handful of pairs, so an earlier one is better and adds little traffic.
  static let firstRetransmission: Duration = .milliseconds(200)
  /// Later intervals double up to this.
  static let longestRetransmission: Duration = .milliseconds(500)
  /// Transmissions of one check before its pair has failed, after about 6.6 s: at 30 % loss each way one in 10,000 gets no
  /// answer.
  static let transmissions = 14
  /// How long better pairs may still succeed before the best valid one is nominated.
  static let nominationDelay: Duration = .milliseconds(100)
  /// The agent fails if it has no valid pair this long after the first check.
  static let connecting: Duration = .seconds(15)
  /// Consent (RFC 7675 §5.1): a check every 4–6 s, lost after 30 s without an answer.
  static let consentInterval: Duration = .seconds(5)
  static let consentLost: Duration = .seconds(30)
  /// Interval of checks while nothing is received: short at first, so that 20 % loss each way does not look like a dead path.
  static let probeInterval: Duration = .milliseconds(200)
  static let probeTime: Duration = .seconds(2)
  static let probeIntervalLater: Duration = .milliseconds(500)
  /// Consent checks whose answer may still arrive.
  static let consentTransactions = 8
}
