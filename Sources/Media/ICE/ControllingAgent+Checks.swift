import TrunklineBytes
import TrunklineSTUN

extension ControllingAgent {
  /// When `handleTimeout` must be called next; `distantFuture` if never.
  public var nextDeadline: Instant {
    var deadline = Instant.distantFuture
    func consider(_ instant: Instant?) { if let instant, instant < deadline { deadline = instant } }
    if canCheck {
      if pairs.contains(where: \.isWaiting) { consider(nextPaceAt) }
      for pair in pairs { consider(pair.transaction?.dueAt) }
      consider(nominateAt)
      if state == .checking { consider(checkingSince.map { $0 + Limits.connecting }) }
    }
    consider(consent?.deadline)
    return deadline
  }

  private var canCheck: Bool { credentials.remoteKey != nil && state != .failed }

  /// Sends what is due. Safe to call at any time; call it once after candidates and credentials were set.
  public mutating func handleTimeout(at now: Instant, into output: inout Output) {
    if canCheck {
      if checkingSince == nil, !pairs.isEmpty { checkingSince = now }
      retransmit(now, &output)
      if let nominateAt, nominateAt <= now { nominateBest(now) }
      pace(now, &output)
      failIfOver(now, &output)
    }
    keepConsent(now, &output)
  }

  /// One first transmission per Ta: triggered checks, then by priority (RFC 8445 §6.1.4.2).
  private mutating func pace(_ now: Instant, _ output: inout Output) {
    guard nextPaceAt <= now else { return }
    guard let index = pairs.firstIndex(where: { $0.isWaiting && $0.isTriggered }) ?? pairs.firstIndex(where: \.isWaiting) else {
      return
    }
    begin(index, nominates: isControlling && (mode == .aggressive || pairs[index].isValid || isProbing), now)
    send(index, now, &output)
    nextPaceAt = now + Limits.pacing
  }

  private mutating func begin(_ index: Int, nominates: Bool, _ now: Instant) {
    pairs[index].isWaiting = false
    pairs[index].isTriggered = false
    pairs[index].hasFailed = false
    pairs[index].transaction = CheckPair.Transaction(
      id: TransactionID(random: random), nominates: nominates, isControlling: isControlling, startedAt: now, dueAt: now)
  }

  private mutating func retransmit(_ now: Instant, _ output: inout Output) {
    for index in pairs.indices {
      guard let transaction = pairs[index].transaction, transaction.dueAt <= now else { continue }
      if transaction.sends < Limits.transmissions {
        send(index, now, &output)
      } else {
        fail(index, now)
      }
    }
  }

  private mutating func send(_ index: Int, _ now: Instant, _ output: inout Output) {
    guard var transaction = pairs[index].transaction else { return }
    transaction.sends += 1
    transaction.dueAt = now + transaction.interval
    transaction.interval = min(transaction.interval * 2, Limits.longestRetransmission)
    pairs[index].transaction = transaction
    let check = pairs[index]
    let bytes = request(
      transaction.id, credentials, priority: check.reflexivePriority, nominates: transaction.nominates,
      isControlling: transaction.isControlling)
    if let bytes { output.datagrams.append(Datagram(pair: check.pair, bytes: bytes)) }
  }

  /// A pair that failed is not nominated; the next best valid one may be.
  mutating func fail(_ index: Int, _ now: Instant) {
    pairs[index].transaction = nil
    pairs[index].isWaiting = false
    pairs[index].isValid = false
    pairs[index].hasFailed = true
    if state == .checking, isControlling, pairs.contains(where: \.isValid) { nominateAt = nominateAt ?? now }
  }

  private mutating func failIfOver(_ now: Instant, _ output: inout Output) {
    guard state == .checking, let checkingSince else { return }
    let isExhausted = areCandidatesComplete && pairs.allSatisfy(\.hasFailed)
    guard isExhausted || now >= checkingSince + Limits.connecting else { return }
    state = .failed
    output.events.append(.failed)
  }

  // MARK: Nomination

  /// After a check succeeded: at once if no better pair is still open, else a little later.
  mutating func considerNomination(_ index: Int, _ now: Instant) {
    guard state == .checking, isControlling, mode == .regular else { return }
    let isBest = !pairs[..<index].contains { !$0.hasFailed && !$0.isValid }
    nominateAt = isBest ? now : min(nominateAt ?? .distantFuture, now + Limits.nominationDelay)
  }

  private mutating func nominateBest(_ now: Instant) {
    nominateAt = nil
    guard state == .checking, isControlling, let index = pairs.firstIndex(where: \.isValid) else { return }
    guard pairs[index].transaction?.nominates != true else { return }
    // The nomination is sent before all other checks, and without pacing: nothing is more urgent.
    pairs[index].isWaiting = true
    pairs[index].isTriggered = true
    nextPaceAt = now
  }

  /// Both sides have chosen the pair: media uses it from now on.
  mutating func select(_ index: Int, _ now: Instant, _ output: inout Output) {
    let check = pairs[index]
    let isSame = consent?.pair == check.pair && consent?.belongs(to: credentials) == true
    state = .connected
    nominateAt = nil
    if isSame { return }
    if mode == .regular || !isControlling {
      for other in pairs.indices where other != index {
        pairs[other].isWaiting = false
        pairs[other].transaction = nil
      }
    }
    let local = locals.first { $0.address == check.pair.local }
    nominatedKinds = (local?.kind ?? .host, check.remoteKind)
    consent = Consent(check, credentials, isControlling: isControlling, at: now, nextAt: now + consentInterval(at: now))
    previous = nil
    output.events.append(.nominated(check.pair))
  }

  // MARK: Messages

  /// A Binding request for a pair; nil never happens with ufrags of legal length.
  func request(
    _ id: TransactionID, _ credentials: Credentials, priority: UInt32, nominates: Bool, isControlling: Bool
  ) -> [UInt8]? {
    guard let key = credentials.remoteKey else { return nil }
    return message(.request, id) { writer in
      writer.addUsername(recipient: credentials.remoteUfrag, sender: credentials.localUfrag)
      writer.addPriority(priority)
      if isControlling { writer.addControlling(tieBreaker: tieBreaker) } else { writer.addControlled(tieBreaker: tieBreaker) }
      if nominates { writer.addUseCandidate() }
      writer.addIntegrity(key)
      writer.addFingerprint()
    }
  }

  func message(_ messageClass: STUNClass, _ id: TransactionID, _ build: (inout STUNWriter) -> Void) -> [UInt8]? {
    var bytes = [UInt8](repeating: 0, count: Limits.messageBytes)
    let count = bytes.withUnsafeMutableBytes { buffer in
      var writer = STUNWriter(messageClass, transaction: id, into: buffer)
      build(&writer)
      return writer.finish()
    }
    return count.map { Array(bytes[..<$0]) }
  }
}
