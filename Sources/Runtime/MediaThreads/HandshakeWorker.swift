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
/// | – or expected | `datagram` | handshake begun as server |
/// | handshaking | done, fingerprint matches | keys told; answers retransmissions for 30 s, then OpenSSL's memory is freed |
/// | handshaking | failed, or 30 s passed | failure told, memory freed |
/// | finished | `datagram` after the 30 s | ignored |
/// | any | `end` | forgotten |
struct HandshakeWorker: ~Copyable {
  private let identity: DTLSIdentity
  private let mailbox: Mailbox<HandshakeWork>
  private let metrics: MediaMetrics
  private let cpu: Gauge
  private var handshakes: [HandshakeKey: Handshake] = [:]
  private var associations = 0
  private var now = MonotonicClock.now()

  init(identity: DTLSIdentity, mailbox: Mailbox<HandshakeWork>, metrics: MediaMetrics) {
    (self.identity, self.mailbox, self.metrics) = (identity, mailbox, metrics)
    cpu = metrics.threadCPU[metrics.threadCPU.count - 1].nanoseconds
  }

  mutating func run() {
    var batch: [HandshakeWork] = []
    while true {
      batch.removeAll(keepingCapacity: true)
      mailbox.wait(into: &batch, timeout: sleepTime(), limit: 64)
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
      if let handshake = handshakes.removeValue(forKey: key), handshake.association != nil { freed() }
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
    guard !handshake.isFinished else { return false }
    guard associations < Limits.associations else {
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
    associations += 1
    metrics.associations.set(Int64(associations))
    return true
  }

  /// Sends what OpenSSL wrote and tells what became of the handshake, once.
  private mutating func settle(_ handshake: Handshake) {
    guard handshake.association != nil else { return }
    var flight: [[UInt8]] = []
    handshake.association?.drain { flight.append(Array($0)) }
    if !flight.isEmpty { handshake.reply.post(.handshake(.flight(handshake.key, flight))) }
    guard !handshake.isFinished else { return }
    if let failure = handshake.failure {
      fail(handshake, failure)
    } else if let keys = handshake.association?.keyMaterial {
      handshake.isFinished = true
      handshake.freeAt = now + Limits.associationLinger
      metrics.handshakes[.completed].increment()
      metrics.handshakeSeconds.record(now - handshake.startedAt)
      handshake.reply.post(.handshake(.completed(handshake.key, keys)))
    }
  }

  private mutating func fail(_ handshake: Handshake, _ failure: AppLegFailure, timedOut: Bool = false) {
    guard !handshake.isFinished else { return }
    handshake.isFinished = true
    if handshake.association != nil {
      handshake.association = nil
      freed()
    }
    metrics.handshakes[timedOut ? .timedOut : .failed].increment()
    handshake.reply.post(.handshake(.failed(handshake.key, failure)))
  }

  // MARK: Time

  /// Until the next retransmission or the next thing to free.
  private func sleepTime() -> Duration {
    var shortest = Duration.seconds(1)
    for (_, handshake) in handshakes where !handshake.isFinished {
      if let timeout = handshake.association?.timeout { shortest = min(shortest, timeout) }
    }
    return max(shortest, .milliseconds(1))
  }

  private mutating func runTimers() {
    for (_, handshake) in handshakes where handshake.association != nil {
      if handshake.isFinished {
        guard now >= handshake.freeAt else { continue }
        handshake.association = nil
        freed()
      } else if now - handshake.startedAt >= Limits.handshakeDeadline {
        fail(handshake, .dtls("the handshake did not finish"), timedOut: true)
      } else {
        handshake.association?.handleTimeout()
        settle(handshake)
      }
    }
  }

  private mutating func freed() {
    associations -= 1
    metrics.associations.set(Int64(associations))
  }

  private mutating func freeAll() {
    handshakes.removeAll()
    associations = 0
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
  var freeAt = Instant.distantFuture

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
