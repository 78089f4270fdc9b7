import TrunklineBytes
import TrunklineSTUN

/// The gateway's end of ICE for one app leg: a lite agent (RFC 8445 §2.5), always controlled. It answers checks and never sends
/// any.
///
/// | event | before | after |
/// |---|---|---|
/// | authenticated check | – | address validated, success sent |
/// | authenticated check with USE-CANDIDATE | any | nominated: the latest wins, also mid-call; older generations live 5 s more |
/// | the same from a generation older than the nominated one | nominated | address validated only |
/// | `follow` to an address that the nominated generation has checked since, or `followUnchecked` | nominated | nominated |
/// | check with ICE-CONTROLLED | any | 487 sent, nothing validated |
/// | check with an attribute it must understand and does not | any | 420 sent, nothing validated |
/// | wrong ufrag, no or wrong integrity, response, garbage | any | ignored, in silence |
/// | `restart` | any | another generation is answered; the nominated pair stays |
/// | `startOver` | any | the newest generation has another number, nothing is nominated |
///
/// Checks are answered as soon as the agent exists, before the remote description is known. No clock, no I/O; `handle` allocates
/// for the peer's third address and its fifth at most.
public struct LiteAgent: Sendable {
  /// The pair that the peer chose last.
  public struct Nomination: Sendable, Equatable {
    public let remote: SocketAddress
    public let generation: Int
  }

  private struct Generation: Sendable {
    var number: Int
    let ufrag: [UInt8]
    let key: IntegrityKey
    var remoteUfrag: [UInt8]?
    var expiresAt = Instant.distantFuture
  }
  private struct Validated: Sendable {
    let address: SocketAddress
    var generation: Int
    var checkedAt: Instant
  }

  /// The remote address media is sent to; nil until the first USE-CANDIDATE. `follow` and `followUnchecked` move it.
  public private(set) var nomination: Nomination?
  /// The newest generation.
  public var generation: Int { generations.last?.number ?? 0 }

  private var generations: [Generation]
  private var validated: [Validated] = []

  /// An agent that answers checks for `ufrag`.
  public init(ufrag: String, password: String, generation: Int = 1) {
    generations = [Generation(number: generation, ufrag: Array(ufrag.utf8), key: IntegrityKey(password: password))]
    validated.reserveCapacity(Limits.usualAddresses)
  }

  /// The peer's ufrag, from its description: checks of that generation must name it from now on. Ignored for an unknown
  /// generation.
  public mutating func setRemote(ufrag: String, generation: Int) {
    for index in generations.indices where generations[index].number == generation {
      generations[index].remoteUfrag = Array(ufrag.utf8)
    }
  }

  /// ICE restart (RFC 8445 §9): answers the new ufrag too. The old pair serves until the new generation is nominated.
  /// A number that is not higher than the newest is ignored.
  public mutating func restart(ufrag: String, password: String, remoteUfrag: String?, generation: Int) {
    guard generation > self.generation else { return }
    if generations.count == Limits.generations {
      let spare = generations.firstIndex { $0.number != nomination?.generation } ?? 0
      generations.remove(at: spare)
    }
    generations.append(
      Generation(
        number: generation, ufrag: Array(ufrag.utf8), key: IntegrityKey(password: password),
        remoteUfrag: remoteUfrag.map { Array($0.utf8) }))
  }

  /// The peer starts over with the same offer of ours (a device that prepares again from a new session): its old checks no longer
  /// count, and its next nominations are of this generation. Older generations are no longer answered.
  public mutating func startOver(remoteUfrag: String, generation: Int) {
    nomination = nil
    validated.removeAll(keepingCapacity: true)
    guard var last = generations.last else { return }
    last.number = max(last.number, generation)
    last.remoteUfrag = Array(remoteUfrag.utf8)
    last.expiresAt = .distantFuture
    generations = [last]
  }

  /// The peer's media arrives from another address than the nominated one, which has been silent since `silentSince`: a NAT gave
  /// it another port, and its checks do not nominate. Nominates the address if it has passed a check of the nominated generation
  /// since then; nil if not.
  public mutating func follow(_ address: SocketAddress, silentSince: Instant) -> Nomination? {
    guard let nomination, address != nomination.remote,
      validated.contains(where: {
        $0.address == address && $0.generation == nomination.generation && $0.checkedAt > silentSince
      })
    else { return nil }
    let chosen = Nomination(remote: address, generation: nomination.generation)
    self.nomination = chosen
    return chosen
  }

  /// The same for a peer that sends no checks in a call: the caller has received enough of its packets.
  public mutating func followUnchecked(_ address: SocketAddress) -> Nomination? {
    guard let nomination, address != nomination.remote else { return nil }
    let chosen = Nomination(remote: address, generation: nomination.generation)
    self.nomination = chosen
    return chosen
  }

  /// Whether a check for this ufrag is ours, for demultiplexing.
  public func answers(_ ufrag: UnsafeRawBufferPointer, at now: Instant) -> Bool {
    generations.contains { $0.expiresAt > now && $0.ufrag.elementsEqual(ufrag) }
  }

  /// Whether packets from this address are the peer's: it passed an authenticated check of a generation that still lives.
  /// DTLS is accepted from any such address (docs/reference/protocol.md, Media on the app leg).
  public func isValidated(_ address: SocketAddress, at now: Instant) -> Bool {
    validated.contains { $0.address == address && lives($0.generation, at: now) }
  }

  private func lives(_ number: Int, at now: Instant) -> Bool {
    generations.contains { $0.number == number && $0.expiresAt > now }
  }
}

extension LiteAgent {
  /// Why a message was ignored; raw values index a counter.
  public enum Refusal: UInt8, Sendable, CaseIterable {
    case malformed, notARequest, unknownUfrag, wrongRemoteUfrag, noIntegrity, wrongIntegrity
  }

  /// What a message did.
  public enum Verdict: Sendable, Equatable {
    /// Authenticated; `isNew` if its address was not validated before.
    case validated(isNew: Bool)
    /// Authenticated with USE-CANDIDATE; `isNew` if address or generation differ from the last nomination.
    case nominated(LiteAgent.Nomination, isNew: Bool)
    case roleConflict
    case unknownAttribute
    case ignored(Refusal)
  }

  /// The verdict, and how many bytes of the reply buffer are to be sent back to where the message came from (0: none).
  public struct Outcome: Sendable, Equatable {
    public let verdict: Verdict
    public let replyCount: Int
  }

  /// Reads a datagram and writes the answer into `reply`, which needs 128 bytes (a smaller one gets no answer).
  public mutating func handle(
    _ datagram: UnsafeRawBufferPointer, from source: SocketAddress, at now: Instant, reply: UnsafeMutableRawBufferPointer
  ) -> Outcome {
    do {
      return handle(try STUNMessage(datagram), from: source, at: now, reply: reply)
    } catch {
      return Outcome(verdict: .ignored(.malformed), replyCount: 0)
    }
  }

  /// The same for a message that was read already, for instance to find the leg by `recipientUfrag`.
  public mutating func handle(
    _ message: STUNMessage, from source: SocketAddress, at now: Instant, reply: UnsafeMutableRawBufferPointer
  ) -> Outcome {
    func ignored(_ reason: Refusal) -> Outcome { Outcome(verdict: .ignored(reason), replyCount: 0) }
    generations.removeAll { $0.expiresAt <= now }
    guard message.messageClass == .request, message.method == .binding else { return ignored(.notARequest) }
    guard let recipient = message.recipientUfrag, let sender = message.senderUfrag else { return ignored(.unknownUfrag) }
    guard let index = generations.firstIndex(where: { $0.ufrag.elementsEqual(recipient) }) else { return ignored(.unknownUfrag) }
    if let expected = generations[index].remoteUfrag, !expected.elementsEqual(sender) { return ignored(.wrongRemoteUfrag) }
    guard message.hasIntegrityAttribute else { return ignored(.noIntegrity) }
    let key = generations[index].key
    guard message.hasIntegrity(key) else { return ignored(.wrongIntegrity) }

    guard message.unknownRequired.isEmpty else {
      let count = answer(message, key, reply) { $0.addUnknown(message.unknownRequired) }
      return Outcome(verdict: .unknownAttribute, replyCount: count)
    }
    // A lite agent cannot accept the controlling role that a full peer gave away (RFC 8445 §6.1.1): the peer has to switch.
    guard message.controlled == nil else {
      return Outcome(verdict: .roleConflict, replyCount: answer(message, key, reply) { $0.addError(.roleConflict) })
    }
    let number = generations[index].number
    let isNew = validate(source, number, now)
    let count = answer(message, key, reply, isError: false) { $0.addMappedAddress(source) }
    guard message.usesCandidate, number >= nomination?.generation ?? number else {
      return Outcome(verdict: .validated(isNew: isNew), replyCount: count)
    }
    let chosen = Nomination(remote: source, generation: number)
    let isNewNomination = chosen != nomination
    if isNewNomination { nominate(chosen, now) }
    return Outcome(verdict: .nominated(chosen, isNew: isNewNomination), replyCount: count)
  }

  /// Older generations stay valid for `Limits.oldGeneration`, so that nothing in flight on the old pair is lost.
  private mutating func nominate(_ chosen: Nomination, _ now: Instant) {
    nomination = chosen
    for index in generations.indices where generations[index].number < chosen.generation {
      generations[index].expiresAt = min(generations[index].expiresAt, now + Limits.oldGeneration)
    }
  }

  /// Remembers the address; true if it was not validated before.
  private mutating func validate(_ address: SocketAddress, _ number: Int, _ now: Instant) -> Bool {
    if let index = validated.firstIndex(where: { $0.address == address }) {
      let wasLive = lives(validated[index].generation, at: now)
      validated[index].generation = max(validated[index].generation, number)
      validated[index].checkedAt = now
      return !wasLive
    }
    if validated.count == Limits.validatedAddresses {
      var oldest = 0
      for index in validated.indices where validated[index].address != nomination?.remote {
        if validated[index].checkedAt < validated[oldest].checkedAt || validated[oldest].address == nomination?.remote {
          oldest = index
        }
      }
      validated.remove(at: oldest)
    }
    validated.append(Validated(address: address, generation: number, checkedAt: now))
    return true
  }

  private func answer(
    _ request: STUNMessage, _ key: IntegrityKey, _ reply: UnsafeMutableRawBufferPointer, isError: Bool = true,
    _ body: (inout STUNWriter) -> Void
  ) -> Int {
    var writer = STUNWriter(isError ? .error : .success, transaction: request.transaction, into: reply)
    body(&writer)
    writer.addIntegrity(key)
    writer.addFingerprint()
    return writer.finish() ?? 0
  }
}

extension STUNWriter {
  fileprivate mutating func addUnknown(_ types: UnknownAttributes) {
    addError(.unknownAttribute)
    addUnknownAttributes(types)
  }
}
