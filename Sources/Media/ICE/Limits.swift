// The named limits of this module; every bound on a queue, table or message stands here.
enum Limits {
  /// Addresses that a lite agent remembers as validated; the least recently checked one that is not nominated makes room.
  static let validatedAddresses = 8
  /// Addresses that there is memory for from the beginning: most peers have one, or one before and one after they change networks.
  static let usualAddresses = 2
  /// Generations a lite agent answers at a time: the nominated one, the newest, and one between.
  static let generations = 3
  /// How long an old generation is received after a newer one was nominated (docs/reference/protocol.md, During the call).
  static let oldGeneration: Duration = .seconds(5)
  /// Bytes that hold every check and answer we write.
  static let messageBytes = 600

  // The controlling agent.

  /// Candidates of ours and of the peer, and pairs of them (RFC 8445 §6.1.2.5 proposes 100 pairs).
  static let localCandidates = 12
  static let remoteCandidates = 32
  static let pairs = 100
  /// Pacing between first transmissions of checks (Ta, RFC 8445 §14.2).
  static let pacing: Duration = .milliseconds(50)
  /// The first retransmission of a check. RFC 8445 §14.3 asks for 500 ms or more; a phone has 5 s until the media gate closes
  /// (docs/reference/protocol.md) and a handful of pairs, so that sooner is better and still polite.
  static let firstRetransmission: Duration = .milliseconds(200)
  /// Then doubling up to this.
  static let longestRetransmission: Duration = .milliseconds(500)
  /// Transmissions of one check before its pair has failed, after about 6.6 s: at 30 % loss each way one in 10,000 finds no
  /// answer.
  static let transmissions = 14
  /// How long better pairs may still succeed before the best valid one is nominated.
  static let nominationDelay: Duration = .milliseconds(100)
  /// Without a valid pair this long after the first check the agent has failed.
  static let connecting: Duration = .seconds(15)
  /// Consent (RFC 7675 §5.1): a check every 4–6 s, lost after 30 s without an answer.
  static let consentInterval: Duration = .seconds(5)
  static let consentLost: Duration = .seconds(30)
  /// Between two of them while nothing is heard: so close at first that a fifth of loss each way does not look like a dead path.
  static let probeInterval: Duration = .milliseconds(200)
  static let probeTime: Duration = .seconds(2)
  static let probeIntervalLater: Duration = .milliseconds(500)
  /// Consent checks whose answer may still come.
  static let consentTransactions = 8
}
