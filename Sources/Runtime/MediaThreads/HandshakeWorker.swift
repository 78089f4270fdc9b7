import TrunklineBytes
import TrunklineDTLS
import TrunklineMediaSession
import TrunklinePlatform

/// An input of the DTLS thread: a session's request and the mailbox for its answer.
enum HandshakeWork: Sendable {
  case session(HandshakeRequest, Mailbox<MediaWork>)
  case stop
}

/// The work of `dtls-0`: every handshake of the process, so that its 0.5 ms steps never delay a tick. Made inside the thread.
///
/// | state of a key | event | after |
/// |---|---|---|
/// | – | `expect` | fingerprint kept |
/// | – | `start` | one attempt begun as client; it gets each datagram |
/// | not finished | ClientHello of another random | another attempt begun as server; refused while too much waits, the client sends again |
/// | not finished | any other `datagram` | passed to all attempts |
/// | handshaking | an attempt is done, fingerprint matches | keys reported, OpenSSL's memory freed; the last flight is kept for 30 s |
/// | handshaking | an attempt is done, another certificate or no profile | failure reported, memory freed |
/// | handshaking | an attempt failed before, or 30 s passed | it is freed; the leg waits for the next, and the media gate's deadline decides |
/// | finished | the peer's Finished again, within the 30 s | the last flight is sent again, at most 12 times |
/// | finished | any other `datagram` | ignored |
/// | any | `end` | forgotten |
///
/// An attacker that can forge the peer's address in a datagram can begin attempts: the certificate shows which one is the peer's,
/// and the number of attempts is limited (docs/design/media-plane.md).
struct HandshakeWorker: ~Copyable {
  private let identity: DTLSIdentity
  private let mailbox: Mailbox<HandshakeWork>
  private let metrics: MediaMetrics
  private let cpu: Gauge
  private var handshakes: [HandshakeKey: Handshake] = [:]
  /// Keys with an attempt: only these are checked by timers, however many calls there are.
  private var running: [HandshakeKey: Handshake] = [:]
  private var attempts = 0
  private var furtherAttempts = RateLimit(perSecond: Limits.attemptsOfAllPerSecond, burst: Limits.attemptBurst)
  var now = MonotonicClock.now()

  init(identity: DTLSIdentity, mailbox: Mailbox<HandshakeWork>, metrics: MediaMetrics) {
    (self.identity, self.mailbox, self.metrics) = (identity, mailbox, metrics)
    cpu = metrics.threadCPU[metrics.threadCPU.count - 1].nanoseconds
  }

  mutating func run() {
    var batch: [HandshakeWork] = []
    let heartbeat = Heartbeat()
    defer { heartbeat.end() }
    while true {
      batch.removeAll(keepingCapacity: true)
      mailbox.wait(into: &batch, timeout: sleepTime(), limit: Limits.handshakesPerStep, heartbeat: heartbeat)
      now = MonotonicClock.now()
      for work in batch {
        guard case .session(let request, let reply) = work else { return freeAll() }
        handle(request, reply)
      }
      runTimers()
      cpu.set(MonotonicClock.threadCPU().nanoseconds)
    }
  }

  mutating func handle(_ request: HandshakeRequest, _ reply: Mailbox<MediaWork>) {
    let key = request.key
    switch request {
    case .end:
      if let handshake = handshakes.removeValue(forKey: key) { free(handshake) }
    case .expect(_, let algorithm, let bytes):
      let handshake = self.handshake(key, reply)
      guard let fingerprint = DTLSFingerprint(algorithm: algorithm, bytes: bytes) else {
        return fail(handshake, .fingerprintMismatch)
      }
      handshake.expected = fingerprint
      for attempt in handshake.attempts { attempt.association.setRemoteFingerprint(fingerprint) }
      collect(handshake)
    case .start:
      let handshake = self.handshake(key, reply)
      guard !handshake.isFinished, !handshake.isClient else { return }
      handshake.isClient = true
      begin(handshake, [])?.association.start()
      collect(handshake)
    case .datagram(_, let bytes):
      let handshake = self.handshake(key, reply)
      let datagram = bytes.withUnsafeBytes { HandshakeDatagram($0, isFromServer: handshake.isClient) }
      if handshake.isFinished { return repeatFlight(handshake, datagram) }
      if let range = datagram.helloRandom {
        let random = bytes[range]
        guard let attempt = handshake.attempts.first(where: { $0.random[...] == random }) ?? begin(handshake, random) else {
          return
        }
        attempt.receive(bytes)
      } else {
        for attempt in handshake.attempts { attempt.receive(bytes) }
      }
      collect(handshake)
    }
  }

  private mutating func handshake(_ key: HandshakeKey, _ reply: Mailbox<MediaWork>) -> Handshake {
    if let known = handshakes[key] { return known }
    let new = Handshake(key, reply)
    // A key beyond the limit is served once and not stored: its leg fails at the media gate.
    if handshakes.count < Limits.handshakes { handshakes[key] = new } else { metrics.handshakes[.refused].increment() }
    return new
  }

  /// A new attempt of the leg, which replaces its oldest if it has too many; nil if none is allowed now.
  private mutating func begin(_ handshake: Handshake, _ random: ArraySlice<UInt8>) -> HandshakeAttempt? {
    let isBounded = attempts < Limits.associations && mailbox.depth <= Limits.handshakeBacklog
    guard isBounded, handshake.isFirst || (handshake.furtherAttempts.consume(at: now) && furtherAttempts.consume(at: now)) else {
      metrics.handshakes[.refused].increment()
      return nil
    }
    let association: DTLSAssociation
    do throws(DTLSFailure) {
      association = try DTLSAssociation(
        handshake.isClient ? .client : .server, identity: identity, remoteFingerprint: handshake.expected)
    } catch {
      fail(handshake, .dtls("\(error)"))
      return nil
    }
    if handshake.isFirst { (handshake.isFirst, handshake.startedAt) = (false, now) }
    if handshake.attempts.count == Limits.attemptsAtOnce { abandon(handshake, handshake.attempts[0], .abandoned) }
    let attempt = HandshakeAttempt(Array(random), association, at: now)
    handshake.attempts.append(attempt)
    running[handshake.key] = handshake
    attempts += 1
    metrics.associations.set(Int64(attempts))
    return attempt
  }

  /// Sends OpenSSL's output and reports the outcome of the handshake, once.
  private mutating func collect(_ handshake: Handshake) {
    for attempt in handshake.attempts {
      // No alert for a failure that any sender can cause: it would end the peer's own handshake.
      if attempt.hasFailedEarly {
        abandon(handshake, attempt, .abandoned)
        continue
      }
      var flight: [[UInt8]] = []
      attempt.association.drain { flight.append(Array($0)) }
      if !flight.isEmpty {
        handshake.flight = flight
        handshake.reply.post(.handshake(.flight(handshake.key, flight)))
      }
      if let failure = attempt.failure { return fail(handshake, failure) }
      guard let keys = attempt.association.keyMaterial else { continue }
      handshake.isFinished = true
      handshake.flightKeptUntil = now + Limits.flightKept
      metrics.handshakes[.completed].increment()
      metrics.handshakeSeconds.record(now - handshake.startedAt)
      free(handshake)
      handshake.reply.post(.handshake(.completed(handshake.key, keys)))
      return
    }
  }

  /// A peer that sends its Finished again did not get our last flight (RFC 6347 §4.2.4). The same bytes suffice: the peer never
  /// got them, so they are no replay, and no other state of the association is needed.
  private func repeatFlight(_ handshake: Handshake, _ datagram: HandshakeDatagram) {
    guard now < handshake.flightKeptUntil, handshake.repeats < Limits.flightRepeats, !handshake.flight.isEmpty,
      datagram.holdsFinished
    else { return }
    handshake.repeats += 1
    handshake.reply.post(.handshake(.flight(handshake.key, handshake.flight)))
  }

  private mutating func fail(_ handshake: Handshake, _ failure: AppLegFailure) {
    guard !handshake.isFinished else { return }
    handshake.isFinished = true
    free(handshake)
    metrics.handshakes[.failed].increment()
    handshake.reply.post(.handshake(.failed(handshake.key, failure)))
  }

  // MARK: Time

  /// The time until the next retransmission or the next release.
  private func sleepTime() -> Duration {
    var shortest = Duration.seconds(1)
    for (_, handshake) in running {
      for attempt in handshake.attempts {
        if let timeout = attempt.association.timeout { shortest = min(shortest, timeout) }
      }
    }
    return max(shortest, .milliseconds(1))
  }

  mutating func runTimers() {
    for (_, handshake) in running {
      for attempt in handshake.attempts {
        if now - attempt.startedAt >= Limits.handshakeDeadline {
          abandon(handshake, attempt, .timedOut)
        } else {
          attempt.association.handleTimeout()
        }
      }
      collect(handshake)
    }
  }

  private mutating func abandon(_ handshake: Handshake, _ attempt: HandshakeAttempt, _ outcome: MediaMetrics.HandshakeOutcome) {
    handshake.attempts.removeAll { $0 === attempt }
    if handshake.attempts.isEmpty { running[handshake.key] = nil }
    attempts -= 1
    metrics.handshakes[outcome].increment()
    metrics.associations.set(Int64(attempts))
  }

  private mutating func free(_ handshake: Handshake) {
    running[handshake.key] = nil
    attempts -= handshake.attempts.count
    handshake.attempts.removeAll()
    metrics.associations.set(Int64(attempts))
  }

  private mutating func freeAll() {
    handshakes.removeAll()
    running.removeAll()
    attempts = 0
    metrics.associations.set(0)
  }
}
