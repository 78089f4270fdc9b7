import Testing
import TrunklineBytes
import TrunklineDTLS
import TrunklineMediaSession
import TrunklinePlatform
import TrunklineSRTP

@testable import MediaThreads

/// An attacker that can write the peer's address into a datagram: its ClientHellos, good and bad, do not end the peer's
/// handshake. These tests run the DTLS thread's worker without its thread.
@Suite struct HandshakeAttemptTests {
  private static let key = HandshakeKey(session: MediaSessionID(raw: 1), leg: AppLegID(raw: 1), association: 0)

  private struct Rig: ~Copyable {
    let client: DTLSIdentity
    let metrics = MediaMetrics(threads: 1)
    let reply: Mailbox<MediaWork>
    var worker: HandshakeWorker
    var results: [HandshakeResult] = []

    init() throws {
      let (server, client) = (try DTLSIdentity(), try DTLSIdentity())
      let (work, reply) = (try Mailbox<HandshakeWork>(capacity: 16), try Mailbox<MediaWork>(capacity: 1_000))
      (self.client, self.reply) = (client, reply)
      worker = HandshakeWorker(identity: server, mailbox: work, metrics: metrics)
      worker.now = Instant(nanoseconds: 1_000_000_000)
      take(.expect(HandshakeAttemptTests.key, algorithm: "sha-256", fingerprint: client.fingerprint.bytes))
    }

    mutating func take(_ request: HandshakeRequest) {
      worker.handle(request, reply)
      var work: [MediaWork] = []
      reply.drain(into: &work, limit: 1_000)
      for item in work { if case .handshake(let result) = item { results.append(result) } }
    }

    /// Hands a datagram over; returns what is sent back.
    mutating func exchange(_ datagram: [UInt8]) -> [[UInt8]] {
      results.removeAll { if case .flight = $0 { true } else { false } }
      take(.datagram(HandshakeAttemptTests.key, datagram))
      return results.flatMap { if case .flight(_, let flight) = $0 { flight } else { [[UInt8]]() } }
    }

    var outcome: [String] {
      results.compactMap {
        switch $0 {
        case .flight: nil
        case .completed: "completed"
        case .failed(_, let failure): "\(failure)"
        }
      }
    }
    func count(_ outcome: MediaMetrics.HandshakeOutcome) -> UInt64 { metrics.handshakes[outcome].value }
  }

  private func association(_ identity: DTLSIdentity) throws -> DTLSAssociation {
    var association = try DTLSAssociation(.client, identity: identity)
    association.start()
    return association
  }

  /// Exchanges datagrams until both are quiet.
  private func finish(_ client: inout DTLSAssociation, _ rig: inout Rig) {
    for _ in 0..<10 {
      for datagram in drained(&client) {
        for answer in rig.exchange(datagram) { answer.withUnsafeBytes { client.receive($0) } }
      }
    }
  }

  private func drained(_ association: inout DTLSAssociation) -> [[UInt8]] {
    var out: [[UInt8]] = []
    association.drain { out.append(Array($0)) }
    return out
  }

  private func hello(_ identity: DTLSIdentity) throws -> [UInt8] {
    var association = try association(identity)
    return try #require(drained(&association).first)
  }

  /// A hello that OpenSSL rejects: no cipher suite that we have, another compression, extensions that end after the message.
  private func bad(_ hello: [UInt8], _ way: Int) -> [UInt8] {
    var bytes = hello
    let (random, body) = (13 + 12 + 2, 13 + 12)
    bytes[random] ^= UInt8(truncatingIfNeeded: way &* 7 &+ 1)
    let session = body + 34
    let cookie = session + 1 + Int(bytes[session])
    let suites = cookie + 1 + Int(bytes[cookie])
    let count = Int(bytes[suites]) << 8 | Int(bytes[suites + 1])
    switch way % 3 {
    case 0: for index in (suites + 2)..<(suites + 2 + count) { bytes[index] = 0x5a }
    case 1: bytes[suites + 2 + count + 1] = 77
    default: bytes[suites + 2 + count + 2] ^= 0x40  // the length of all extensions
    }
    return bytes
  }

  @Test func `bad ClientHellos before, between and after the peer's own fail nothing and send no alert`() throws {
    var rig = try Rig()
    let model = try hello(rig.client)
    for way in 0..<3 { #expect(rig.exchange(bad(model, way)) == [], "way \(way)") }
    #expect(rig.outcome == [] && rig.count(.abandoned) == 3 && rig.metrics.associations.value == 0)
    rig.worker.now = rig.worker.now + .seconds(2)
    var client = try association(rig.client)
    let first = drained(&client)
    let flight = first.flatMap { rig.exchange($0) }
    #expect(!flight.isEmpty)
    #expect(rig.exchange(bad(model, 3)) == [] && rig.exchange(bad(model, 4)) == [])
    for datagram in flight { datagram.withUnsafeBytes { client.receive($0) } }
    finish(&client, &rig)
    #expect(rig.outcome == ["completed"])
    #expect(rig.count(.completed) == 1 && rig.count(.failed) == 0 && rig.metrics.associations.value == 0)
    #expect(rig.exchange(bad(model, 5)) == [] && rig.outcome == ["completed"])
  }

  @Test func `another sender's sound ClientHello, before or after the peer's, does not keep the peer from its keys`() throws {
    for comesFirst in [true, false] {
      var rig = try Rig()
      let other = try hello(try DTLSIdentity())
      var client = try association(rig.client)
      let mine = drained(&client)
      if comesFirst { #expect(!rig.exchange(other).isEmpty) }
      let flight = mine.flatMap { rig.exchange($0) }
      if !comesFirst { #expect(!rig.exchange(other).isEmpty) }
      for datagram in flight { datagram.withUnsafeBytes { client.receive($0) } }
      finish(&client, &rig)
      #expect(rig.outcome == ["completed"] && rig.metrics.associations.value == 0)
    }
  }

  @Test func `a whole handshake with another certificate fails the leg`() throws {
    var rig = try Rig()
    var client = try association(try DTLSIdentity())
    finish(&client, &rig)
    #expect(rig.outcome == ["fingerprintMismatch"] && rig.count(.failed) == 1 && rig.metrics.associations.value == 0)
  }

  @Test func `attempts are bounded for a leg and a second, and for all`() throws {
    var rig = try Rig()
    let model = try hello(rig.client)
    for way in 0..<50 { _ = rig.exchange(bad(model, 3 * way)) }
    #expect(rig.count(.abandoned) == 9 && rig.count(.refused) == 41)
    rig.worker.now = rig.worker.now + .seconds(1)
    for way in 0..<50 { _ = rig.exchange(bad(model, 3 * way)) }
    #expect(rig.count(.abandoned) == 17)
    rig.worker.now = rig.worker.now + .seconds(10)
    let before = rig.count(.abandoned)
    for leg: UInt32 in 2...200 {
      let key = HandshakeKey(session: Self.key.session, leg: AppLegID(raw: leg), association: 0)
      for way in 0..<5 { rig.take(.datagram(key, bad(model, 3 * way))) }
    }
    // The first of each leg is tried, and of the others as many as all legs may have at once.
    #expect(rig.count(.abandoned) - before == 199 + UInt64(Limits.attemptBurst))
  }

  @Test func `an attempt that does not continue is freed after its deadline and fails nothing`() throws {
    var rig = try Rig()
    #expect(!rig.exchange(try hello(try DTLSIdentity())).isEmpty && rig.metrics.associations.value == 1)
    rig.worker.now = rig.worker.now + Limits.handshakeDeadline
    rig.worker.runTimers()
    #expect(rig.count(.timedOut) == 1 && rig.metrics.associations.value == 0 && rig.outcome == [])
    var client = try association(rig.client)
    finish(&client, &rig)
    #expect(rig.outcome == ["completed"])
  }
}
