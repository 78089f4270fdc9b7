import TrunklineBytes
import TrunklineSTUN

/// The nominated pair and the peer's consent to be sent to (RFC 7675). Has its own credentials, since it outlives a restart.
struct Consent: Sendable {
  let pair: CandidatePair
  let credentials: ControllingAgent.Credentials
  let priority: UInt32
  let isControlling: Bool
  var answeredAt: Instant
  var nextAt: Instant
  var isLost = false
  var transactions: [(id: TransactionID, sentAt: Instant)] = []

  init(_ check: CheckPair, _ credentials: ControllingAgent.Credentials, isControlling: Bool, at now: Instant, nextAt: Instant) {
    (pair, self.credentials, priority, self.isControlling) = (check.pair, credentials, check.reflexivePriority, isControlling)
    (answeredAt, self.nextAt) = (now, nextAt)
  }

  var deadline: Instant { isLost ? nextAt : min(nextAt, answeredAt + Limits.consentLost) }
  func belongs(to other: ControllingAgent.Credentials) -> Bool { credentials.localUfrag == other.localUfrag }
}

extension ControllingAgent {
  /// When the peer last answered on the nominated pair.
  public var lastConsentAt: Instant? { consent?.answeredAt }

  /// 4–6 s, randomised so that agents do not fall into step (RFC 7675 §5.1); shorter while probing.
  func consentInterval(at now: Instant) -> Duration {
    guard let probingSince else { return Limits.consentInterval * Int(80 + random.next() % 41) / 100 }
    return now - probingSince < Limits.probeTime ? Limits.probeInterval : Limits.probeIntervalLater
  }

  /// The peer has been silent for a while: until `endProbe`, consent checks are sent at once and often, and a controlling agent
  /// tries every other pair. A path that is restored, or a NAT's new port, is found within half a second and a round trip.
  public mutating func probe(at now: Instant) {
    guard consent != nil, !isProbing else { return }
    probingSince = now
    consent?.nextAt = now
    guard isControlling, state != .failed else { return }
    for index in pairs.indices where pairs[index].pair != consent?.pair && pairs[index].transaction == nil {
      pairs[index].isWaiting = true
      pairs[index].hasFailed = false
    }
    nextPaceAt = max(now, nextPaceAt)
  }

  /// Packets of the peer arrive again.
  public mutating func endProbe() {
    guard isProbing else { return }
    probingSince = nil
    guard state == .connected else { return }
    for index in pairs.indices where pairs[index].pair != consent?.pair {
      pairs[index].isWaiting = false
      pairs[index].transaction = nil
    }
  }

  /// Sends the next consent check, each a transaction of its own without retransmission; reports when consent is lost.
  mutating func keepConsent(_ now: Instant, _ output: inout Output) {
    guard var kept = consent else { return }
    defer { consent = kept }
    if !kept.isLost, kept.answeredAt + Limits.consentLost <= now {
      kept.isLost = true
      if state == .connected { state = .lost }
      output.events.append(.consentLost(kept.pair))
    }
    guard kept.nextAt <= now else { return }
    kept.nextAt = now + consentInterval(at: now)
    let id = TransactionID(random: random)
    if kept.transactions.count == Limits.consentTransactions { kept.transactions.removeFirst() }
    kept.transactions.append((id, now))
    // Each nominates, so that a lite peer follows when a NAT gives us another port.
    let bytes = request(
      id, kept.credentials, priority: kept.priority, nominates: kept.isControlling, isControlling: kept.isControlling)
    if let bytes { output.datagrams.append(Datagram(pair: kept.pair, bytes: bytes)) }
  }

  /// True if the message answers a consent check.
  mutating func handleConsent(_ message: STUNMessage, _ pair: CandidatePair, _ now: Instant, _ output: inout Output) -> Bool {
    guard var kept = consent, let index = kept.transactions.firstIndex(where: { $0.id == message.transaction }) else {
      return false
    }
    guard let key = kept.credentials.remoteKey, message.hasIntegrity(key), pair == kept.pair else { return true }
    let sentAt = kept.transactions[index].sentAt
    kept.transactions.remove(at: index)
    if message.messageClass == .success {
      measure(now - sentAt)
      kept.answeredAt = now
      if kept.isLost {
        kept.isLost = false
        if state == .lost { state = .connected }
        output.events.append(.consentRegained(kept.pair))
      }
    }
    consent = kept
    return true
  }
}
