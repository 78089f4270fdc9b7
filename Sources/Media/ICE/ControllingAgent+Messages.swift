import TrunklineBytes
import TrunklineSTUN

extension ControllingAgent {
  /// Handles a STUN datagram from `source` to our address `local`. Datagrams that are not the peer's are ignored without a
  /// report.
  public mutating func handle(
    _ datagram: UnsafeRawBufferPointer, from source: SocketAddress, to local: SocketAddress, at now: Instant,
    into output: inout Output
  ) {
    guard let message = try? STUNMessage(datagram), message.method == .binding else { return }
    let pair = CandidatePair(local: local, remote: source)
    switch message.messageClass {
    case .request: handleRequest(message, pair, now, &output)
    case .success, .error: handleAnswer(message, pair, now, &output)
    case .indication: break
    }
  }

  // MARK: The peer's checks

  private mutating func handleRequest(_ message: STUNMessage, _ pair: CandidatePair, _ now: Instant, _ output: inout Output) {
    guard let recipient = message.recipientUfrag, let sender = message.senderUfrag else { return }
    let isPrevious = previous?.localUfrag.elementsEqual(recipient) ?? false
    guard let mine = isPrevious ? previous : credentials, mine.localUfrag.elementsEqual(recipient) else { return }
    guard mine.remoteKey == nil || mine.remoteUfrag.elementsEqual(sender), message.hasIntegrity(mine.localKey) else { return }

    func answer(_ messageClass: STUNClass, _ build: (inout STUNWriter) -> Void) {
      let bytes = self.message(messageClass, message.transaction) { writer in
        build(&writer)
        writer.addIntegrity(mine.localKey)
        writer.addFingerprint()
      }
      if let bytes { output.datagrams.append(Datagram(pair: pair, bytes: bytes)) }
    }
    guard message.unknownRequired.isEmpty else {
      return answer(.error) { writer in
        writer.addError(.unknownAttribute)
        writer.addUnknownAttributes(message.unknownRequired)
      }
    }
    guard resolveRoleConflict(message) else { return answer(.error) { $0.addError(.roleConflict) } }
    answer(.success) { $0.addMappedAddress(pair.remote) }
    if !isPrevious { trigger(pair, message, now, &output) }
  }

  /// RFC 8445 §7.3.1.1; false if the peer has to switch.
  private mutating func resolveRoleConflict(_ message: STUNMessage) -> Bool {
    if isControlling, let theirs = message.controlling {
      if tieBreaker >= theirs { return false }
      isControlling = false
    } else if !isControlling, let theirs = message.controlled {
      if tieBreaker < theirs { return false }
      isControlling = true
    }
    return true
  }

  /// RFC 8445 §7.3.1.3–5: learns a peer-reflexive candidate, checks the same pair soon, accepts the peer's nomination while
  /// controlled.
  private mutating func trigger(_ pair: CandidatePair, _ message: STUNMessage, _ now: Instant, _ output: inout Output) {
    if !remotes.contains(where: { $0.address == pair.remote }) {
      addRemote(Candidate(pair.remote, .peerReflexive, priority: message.priority ?? 0))
    }
    guard let index = pairs.firstIndex(where: { $0.pair == pair }) else { return }
    if message.usesCandidate, !isControlling {
      pairs[index].isNominatedByPeer = true
      if pairs[index].isValid { select(index, now, &output) }
    }
    if state == .checking, !pairs[index].isValid, pairs[index].transaction == nil {
      pairs[index].isWaiting = true
      pairs[index].isTriggered = true
    }
  }

  // MARK: Answers to ours

  private mutating func handleAnswer(_ message: STUNMessage, _ pair: CandidatePair, _ now: Instant, _ output: inout Output) {
    if handleConsent(message, pair, now, &output) { return }
    guard let key = credentials.remoteKey, message.hasIntegrity(key) else { return }
    guard let index = pairs.firstIndex(where: { $0.transaction?.id == message.transaction }) else { return }
    guard let transaction = pairs[index].transaction else { return }
    // From or at another address than the check: not symmetric, so the pair fails (RFC 8445 §7.2.5.2.1).
    guard pairs[index].pair == pair else { return fail(index, now) }
    pairs[index].transaction = nil
    guard message.messageClass == .success else {
      guard message.errorCode == STUNErrorCode.roleConflict.rawValue else { return fail(index, now) }
      isControlling = !transaction.isControlling
      pairs[index].isWaiting = true
      pairs[index].isTriggered = true
      return
    }
    if transaction.sends == 1 { measure(now - transaction.startedAt) }
    pairs[index].isValid = true
    if isControlling ? transaction.nominates : pairs[index].isNominatedByPeer {
      // Aggressive: the best pair that answered is used.
      let best = pairs.firstIndex { $0.isValid } ?? index
      if mode == .regular || best == index || state == .checking { select(index, now, &output) }
    } else {
      considerNomination(index, now)
    }
  }

  mutating func measure(_ sample: Duration) {
    roundTrip = roundTrip.map { $0 * 7 / 8 + sample / 8 } ?? sample
  }
}
