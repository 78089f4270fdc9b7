import TrunklineBytes
import TrunklineICE
import TrunklineTURN

/// The relays of a path's generation, and those of the generation before while media still uses their allocation; and where a
/// packet is sent: through the relay that has its local address, or the socket.
///
/// | state | input | → |
/// |---|---|---|
/// | none | `prepare` | waiting until its time |
/// | waiting, running | `prepare` | same |
/// | waiting | its time | running: `ClientRelays.start` |
/// | any | `renew`, media uses our allocation | none; what was running serves on as the former |
/// | any | `renew`, media has another path | none; closed. The former is unchanged |
/// | any | `nominated` over our allocation | running, bound to the peer |
/// | any | `nominated` over another path, connected | none; closed |
/// | former | `nominated` | closed after `Limits.relayFarewell` |
/// | any | news of a connection that neither has | same |
/// | any | `close` | none, no former |
struct RelayPaths: Sendable {
  private var current: ClientRelays?
  private var former: ClientRelays?
  private var startsAt: Instant?
  private var closesFormerAt: Instant?

  /// - Parameter servers: at least one.
  mutating func prepare(
    _ servers: [TURNServer], peers: [SocketAddress], generation: Int, startsAt: Instant, random: RandomSource
  ) {
    guard current == nil else { return }
    current = ClientRelays(servers, peers: peers, firstNumber: generation &* Limits.relayConnections, random: random)
    self.startsAt = startsAt
  }

  /// - Parameter local: our address of the pair that carries media.
  mutating func renew(mediaUses local: SocketAddress?, at now: Instant, into output: inout ClientMedia.Output) {
    startsAt = nil
    guard let relayed = current?.relayed, local == relayed else { return closeCurrent(at: now, into: &output) }
    former?.close(at: now, into: &output)
    (former, current, closesFormerAt) = (current, nil, nil)
  }

  /// Media has a path: releases the relay if media does not use it, and the former one after `Limits.relayFarewell`.
  mutating func nominated(_ pair: CandidatePair, isConnected: Bool, at now: Instant, into output: inout ClientMedia.Output) {
    if pair.local == current?.relayed {
      current?.bind(pair.remote, at: now, into: &output)
    } else if isConnected {
      closeCurrent(at: now, into: &output)
    }
    startsAt = nil
    if former != nil { closesFormerAt = now + Limits.relayFarewell }
  }

  /// The allocation cannot be used.
  mutating func closeCurrent(at now: Instant, into output: inout ClientMedia.Output) {
    current?.close(at: now, into: &output)
    current = nil
  }

  mutating func close(at now: Instant, into output: inout ClientMedia.Output) {
    current?.close(at: now, into: &output)
    former?.close(at: now, into: &output)
    (current, former, startsAt, closesFormerAt) = (nil, nil, nil, nil)
  }

  // MARK: connections

  mutating func opened(_ number: Int, at now: Instant, into output: inout ClientMedia.Output) {
    if current?.has(number) == true { current?.opened(number, at: now, into: &output) }
  }

  mutating func closed(_ number: Int, _ why: String, at now: Instant, into output: inout ClientMedia.Output) {
    if current?.has(number) == true {
      current?.closed(number, why, at: now, into: &output)
    } else if former?.has(number) == true {
      former?.closed(number, why, at: now, into: &output)
    }
  }

  /// - Returns: the address at the relay to which the packets that `body` gets were sent.
  mutating func received(
    _ number: Int, _ bytes: [UInt8], at now: Instant, into output: inout ClientMedia.Output,
    body: (SocketAddress, ArraySlice<UInt8>) -> Void
  ) -> SocketAddress? {
    guard current?.has(number) == true else {
      former?.received(number, bytes, at: now, into: &output, body: body)
      return former?.relayed
    }
    current?.received(number, bytes, at: now, into: &output, body: body)
    return current?.relayed
  }

  mutating func drainEvents() -> [ClientRelays.Event] { current?.drainEvents() ?? [] }
  mutating func drainFormerEvents() -> [ClientRelays.Event] { former?.drainEvents() ?? [] }

  // MARK: time

  var nextDeadline: Instant? {
    var due = startsAt
    func consider(_ other: Instant?) { if let other { due = min(due ?? other, other) } }
    consider(current?.nextDeadline)
    consider(former?.nextDeadline)
    consider(closesFormerAt)
    return due
  }

  mutating func handleTimeout(at now: Instant, into output: inout ClientMedia.Output) {
    if let due = startsAt, due <= now {
      startsAt = nil
      current?.start(at: now, into: &output)
    }
    current?.handleTimeout(at: now, into: &output)
    former?.handleTimeout(at: now, into: &output)
    if let due = closesFormerAt, due <= now {
      former?.close(at: now, into: &output)
      (former, closesFormerAt) = (nil, nil)
    }
  }

  // MARK: media

  /// Sends through the relay that has `local`, or through the socket. HOT
  func send(
    _ bytes: UnsafeRawBufferPointer, from local: SocketAddress, to remote: SocketAddress, into output: inout ClientMedia.Output
  ) {
    if let relayed = current?.relayed, relayed == local {
      current?.send(bytes, to: remote, into: &output)
    } else if let relayed = former?.relayed, relayed == local {
      former?.send(bytes, to: remote, into: &output)
    } else {
      output.send(bytes, from: local, to: remote)
    }
  }
}
