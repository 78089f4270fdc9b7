import Bytes
import DTLS
import MediaSession
import Platform

/// What reaches the DTLS thread: a session's request and the mailbox its answer goes to.
enum HandshakeWork: Sendable {
  case session(HandshakeRequest, Mailbox<MediaWork>)
  case stop
}

/// What `dtls-0` runs: every handshake of the process, so that its 0.5 ms steps never delay a tick. Made inside the thread.
///
/// | state of a key | event | after |
/// |---|---|---|
/// | – | `expect` | fingerprint kept |
/// | – or expected | `datagram` | handshake begun as server; refused while too much waits, the client asks again |
/// | handshaking | done, fingerprint matches | keys told, OpenSSL's memory freed; the last flight is kept for 30 s |
/// | handshaking | failed, or 30 s passed | failure told, memory freed |
/// | finished | the peer's Finished again, within the 30 s | the last flight is sent again, at most 12 times |
/// | finished | any other `datagram` | ignored |
/// | any | `end` | forgotten |
struct HandshakeWorker: ~Copyable {
  private let identity: DTLSIdentity
  private let mailbox: Mailbox<HandshakeWork>
  private let metrics: MediaMetrics
  private let cpu: Gauge
  private var handshakes: [HandshakeKey: Handshake] = [:]
  /// Those with an association: what timers have to look at, however many calls there are.
  private var running: [HandshakeKey: Handshake] = [:]
  private var now = MonotonicClock.now()

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
      mailbox.wait(into: &batch, timeout: sleepTime(), limit: Limits.handshakesPerTurn, heartbeat: heartbeat)
      now = MonotonicClock.now()
      for work in batch {
        guard case .session(let request, let reply) = work else { return freeAll() }
        take(request, reply)
      }
      runTimers()
      cpu.set(MonotonicClock.threadCPU().nanoseconds)
    }
  }

  private mutating func take(_ request: HandshakeRequest, _ reply: Mailbox<MediaWork>) {
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
      handshake.association?.setRemoteFingerprint(fingerprint)
      settle(handshake)
    case .datagram(_, let bytes):
      let handshake = self.handshake(key, reply)
      if handshake.isFinished { return repeatFlight(handshake, bytes) }
      guard begin(handshake) else { return }
      bytes.withUnsafeBytes { handshake.association?.receive($0) }
      settle(handshake)
    }
  }

  private mutating func handshake(_ key: HandshakeKey, _ reply: Mailbox<MediaWork>) -> Handshake {
    if let known = handshakes[key] { return known }
    let new = Handshake(key, reply)
    // A key beyond the limit is served once and not remembered: its leg fails at the media gate.
    if handshakes.count < Limits.handshakes { handshakes[key] = new } else { metrics.handshakes[.refused].increment() }
    return new
  }

  /// True if the handshake has an association, made now if it never had one.
  private mutating func begin(_ handshake: Handshake) -> Bool {
    if handshake.association != nil { return true }
    guard running.count < Limits.associations, mailbox.depth <= Limits.handshakeBacklog else {
      metrics.handshakes[.refused].increment()
      return false
    }
    do throws(DTLSFailure) {
      handshake.association = try DTLSAssociation(.server, identity: identity, remoteFingerprint: handshake.expected)
    } catch {
      fail(handshake, .dtls("\(error)"))
      return false
    }
    handshake.startedAt = now
    running[handshake.key] = handshake
    metrics.associations.set(Int64(running.count))
    return true
  }

  /// Sends what OpenSSL wrote and tells what became of the handshake, once.
  private mutating func settle(_ handshake: Handshake) {
    guard handshake.association != nil else { return }
    var flight: [[UInt8]] = []
    handshake.association?.drain { flight.append(Array($0)) }
    if !flight.isEmpty {
      handshake.flight = flight
      handshake.reply.post(.handshake(.flight(handshake.key, flight)))
    }
    if let failure = handshake.failure {
      fail(handshake, failure)
    } else if let keys = handshake.association?.keyMaterial {
      handshake.isFinished = true
      handshake.flightKeptUntil = now + Limits.flightKept
      metrics.handshakes[.completed].increment()
      metrics.handshakeSeconds.record(now - handshake.startedAt)
      free(handshake)
      handshake.reply.post(.handshake(.completed(handshake.key, keys)))
    }
  }

  /// Our last flight got lost if the peer sends its Finished again (RFC 6347 §4.2.4). The same bytes do: what the peer never got
  /// is no replay to it, and nothing else of the association is needed.
  private func repeatFlight(_ handshake: Handshake, _ datagram: [UInt8]) {
    guard now < handshake.flightKeptUntil, handshake.repeats < Limits.flightRepeats, !handshake.flight.isEmpty,
      Self.holdsFinished(datagram)
    else { return }
    handshake.repeats += 1
    handshake.reply.post(.handshake(.flight(handshake.key, handshake.flight)))
  }

  /// Whether a record of type handshake (22) is under the negotiated keys: epoch 1.
  static func holdsFinished(_ datagram: [UInt8]) -> Bool {
    var start = 0
    while start + 13 <= datagram.count {
      if datagram[start] == 22, datagram[start + 3] == 0, datagram[start + 4] == 1 { return true }
      start += 13 + Int(datagram[start + 11]) << 8 + Int(datagram[start + 12])
    }
    return false
  }

  private mutating func fail(_ handshake: Handshake, _ failure: AppLegFailure, timedOut: Bool = false) {
    guard !handshake.isFinished else { return }
    handshake.isFinished = true
    free(handshake)
    metrics.handshakes[timedOut ? .timedOut : .failed].increment()
    handshake.reply.post(.handshake(.failed(handshake.key, failure)))
  }

  // MARK: Time

  /// Until the next retransmission or the next thing to free.
  private func sleepTime() -> Duration {
    var shortest = Duration.seconds(1)
    for (_, handshake) in running {
      if let timeout = handshake.association?.timeout { shortest = min(shortest, timeout) }
    }
    return max(shortest, .milliseconds(1))
  }

  private mutating func runTimers() {
    for (_, handshake) in running {
      if now - handshake.startedAt >= Limits.handshakeDeadline {
        fail(handshake, .dtls("the handshake did not finish"), timedOut: true)
      } else {
        handshake.association?.handleTimeout()
        settle(handshake)
      }
    }
  }

  private mutating func free(_ handshake: Handshake) {
    handshake.association = nil
    if running.removeValue(forKey: handshake.key) != nil { metrics.associations.set(Int64(running.count)) }
  }

  private mutating func freeAll() {
    handshakes.removeAll()
    running.removeAll()
    metrics.associations.set(0)
  }
}

/// One key's state; only the DTLS thread touches it.
private final class Handshake {
  let key: HandshakeKey
  let reply: Mailbox<MediaWork>
  var expected: DTLSFingerprint?
  var association: DTLSAssociation?
  var startedAt = Instant.zero
  var isFinished = false
  /// What was sent last.
  var flight: [[UInt8]] = []
  var flightKeptUntil = Instant.zero
  var repeats = 0

  init(_ key: HandshakeKey, _ reply: Mailbox<MediaWork>) { (self.key, self.reply) = (key, reply) }

  /// Why the association is of no use, if it is not.
  var failure: AppLegFailure? {
    switch association?.state {
    case .failed(.fingerprintMismatch): .fingerprintMismatch
    case .failed(.noSRTPProfile): .noCommonProfile
    case .failed(let failure): .dtls("\(failure)")
    case .closed where association?.keyMaterial == nil: .dtls("the peer closed the handshake")
    case .closed, .handshaking, .unverified, .established, nil: nil
    }
  }
}
