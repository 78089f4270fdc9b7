import CTrunklineOpenSSL
import Testing
import TrunklineBytes
import TrunklineSRTP

@testable import TrunklineDTLS

@Suite struct HandshakeTests {
  let ours: DTLSIdentity
  let theirs: DTLSIdentity
  init() throws {
    ours = try DTLSIdentity()
    theirs = try DTLSIdentity()
  }

  private func pair(_ size: Int = 1200) throws -> Pair {
    try Pair(
      client: theirs, server: ours, clientExpects: ours.fingerprint, serverExpects: theirs.fingerprint, datagramBytes: size)
  }

  @Test func `both sides get the same keys of the preferred profile, in few datagrams`() throws {
    var pair = try pair()
    pair.run()
    #expect(pair.client.state == .established && pair.server.state == .established)
    let exported = pair.client.keyMaterial
    let keys = try #require(exported)
    #expect(keys == pair.server.keyMaterial)
    #expect(keys.profile == .aeadAES128GCM && keys.client != keys.server)
    #expect(pair.server.peerFingerprint == theirs.fingerprint && pair.client.peerFingerprint == ours.fingerprint)
    #expect(pair.sizes.count <= 6 && pair.sizes.allSatisfy { $0 <= 1200 })
    #expect(pair.server.timeout == nil && pair.client.timeout == nil)
    // The keys work: what the client protects the server reads.
    var sender = try SRTPSender(keys.profile, keys.client)
    var receiver = try SRTPReceiver(keys.profile, keys.client)
    var packet = [UInt8](repeating: 0x80, count: 40)
    try packet.withUnsafeMutableBytes { bytes in
      var count = 24
      try sender.protect(bytes, count: &count)
      try receiver.unprotect(bytes, count: &count)
      #expect(count == 24)
    }
  }

  @Test(arguments: [SRTPProfile.aeadAES256GCM, .aes128CM_HMAC_SHA1_80, .aeadAES128GCM])
  func `the client's only profile is taken`(_ profile: SRTPProfile) throws {
    let narrow = try DTLSIdentity(profiles: [profile])
    var pair = try Pair(client: narrow, server: ours, clientExpects: ours.fingerprint, serverExpects: narrow.fingerprint)
    pair.run()
    #expect(pair.client.keyMaterial?.profile == profile && pair.client.keyMaterial == pair.server.keyMaterial)
  }

  @Test func `a small datagram size is kept to`() throws {
    var pair = try pair(300)
    pair.run()
    #expect(pair.client.state == .established && pair.server.state == .established)
    #expect(pair.sizes.allSatisfy { $0 <= 300 } && pair.sizes.count > 4)
  }

  @Test func `a lost flight is sent again after 50 ms, not a second, then after twice as long, up to 2 s`() throws {
    var association = try DTLSAssociation(.client, identity: theirs, remoteFingerprint: ours.fingerprint)
    association.start()
    let wait = association.timeout
    #expect(try #require(wait) <= .milliseconds(50))
    var waits: [UInt32] = []
    for _ in 0..<8 { waits.append(DTLSAssociation.microseconds(after: waits.last ?? 0)) }
    #expect(waits == [50_000, 100_000, 200_000, 400_000, 800_000, 1_600_000, 2_000_000, 2_000_000])
    #expect(DTLSAssociation.microseconds(after: .max) == 2_000_000)
  }

  @Test(arguments: 1...4)
  func `lost datagrams are sent again`(_ seed: UInt64) throws {
    let random = RandomSource.seeded(seed)
    var pair = try pair(seed % 2 == 0 ? 300 : 1200)
    pair.network = { serial, datagram, _ in serial < 30 && random.next() % 10 < 3 ? [] : [datagram] }
    pair.run()
    #expect(pair.client.state == .established && pair.server.state == .established, "seed \(seed)")
    #expect(pair.client.keyMaterial == pair.server.keyMaterial)
  }

  @Test(arguments: [0, 1, 2, 3])
  func `the loss of any one flight is repaired`(_ lost: Int) throws {
    var pair = try pair()
    pair.network = { serial, datagram, _ in serial == lost ? [] : [datagram] }
    pair.run()
    #expect(pair.client.state == .established && pair.server.state == .established)
  }

  @Test(arguments: [300, 1200], [true, false])
  func `reordering and duplicates do no harm`(_ size: Int, _ duplicates: Bool) throws {
    for seed: UInt64 in 1...2 {
      let random = RandomSource.seeded(seed)
      var pair = try pair(size)
      var held: [Bool: [[UInt8]]] = [:]
      pair.network = { serial, datagram, isFromClient in
        if serial < 12, random.next() % 3 == 0 {
          held[isFromClient, default: []].append(datagram)
          return []
        }
        defer { held[isFromClient] = [] }
        return (duplicates ? [datagram, datagram] : [datagram]) + held[isFromClient, default: []]
      }
      pair.run()
      #expect(pair.client.state == .established && pair.server.state == .established, "seed \(seed)")
      #expect(pair.client.keyMaterial == pair.server.keyMaterial)
    }
  }

  @Test func `garbage between the flights does no harm`() throws {
    let random = RandomSource.seeded(8)
    var pair = try pair()
    pair.network = { _, datagram, _ in [random.bytes(40), [22, 254, 253], [20] + random.bytes(60), datagram] }
    pair.run()
    #expect(pair.client.state == .established && pair.server.state == .established)
  }

  @Test(arguments: [2, 3, 5])
  func `a ClientHello split over datagrams works, in any order`(_ parts: Int) throws {
    for isReversed in [false, true] {
      var pair = try pair()
      pair.network = { serial, datagram, _ in
        guard serial == 0 else { return [datagram] }
        let fragments = split(datagram, into: parts)
        return isReversed ? fragments.reversed() : fragments
      }
      pair.run()
      #expect(pair.client.state == .established && pair.server.state == .established)
    }
  }

  @Test func `mutated flights end in a state, never in a trap`() throws {
    let random = RandomSource.seeded(31)
    var ends: Set<String> = []
    for round in 0..<300 {
      var pair = try pair()
      pair.network = { _, datagram, _ in
        var bytes = datagram
        guard random.next() % 3 == 0 else { return [datagram] }
        for _ in 0...(random.next() % 5) where !bytes.isEmpty {
          let at = Int(random.next() % UInt64(min(bytes.count, round % 2 == 0 ? 40 : bytes.count)))
          if random.next() % 6 == 0 { bytes.removeSubrange(at...) } else { bytes[at] = UInt8(truncatingIfNeeded: random.next()) }
        }
        return [bytes]
      }
      pair.client.start()
      pair.exchange()
      ends.insert("\(pair.server.state)")
      // Closed: the client found a fault after the server was done.
      if pair.server.state != .established, pair.server.state != .closed { #expect(pair.server.keyMaterial == nil) }
      #expect(ERR_peek_error() == 0)
    }
    #expect(ends.count > 2)
  }

  @Test func `close_notify is seen by the other side and keys stay`() throws {
    var pair = try pair()
    pair.run()
    pair.client.close()
    pair.exchange()
    #expect(pair.client.state == .closed && pair.server.state == .closed)
    #expect(pair.server.keyMaterial != nil)
    pair.server.receive([22, 1, 2, 3])
    pair.server.handleTimeout()
    #expect(pair.server.drained().allSatisfy { $0.first == 21 })
  }

  @Test func `application data and a late repeat of the last flight are taken quietly`() throws {
    var pair = try pair()
    var flights: [[UInt8]] = []
    pair.network = { _, datagram, _ in
      flights.append(datagram)
      return [datagram]
    }
    pair.run()
    for flight in flights { pair.server.receive(flight) }
    #expect(pair.server.state == .established)
    #expect(pair.server.keyMaterial == pair.client.keyMaterial)
  }
}

/// A ClientHello datagram as records with a handshake fragment each (RFC 6347 §4.2.3), as a client with a post-quantum key share
/// sends it.
private func split(_ datagram: [UInt8], into parts: Int) -> [[UInt8]] {
  let (record, handshake, body) = (Array(datagram[..<13]), Array(datagram[13..<25]), Array(datagram[25...]))
  let size = (body.count + parts - 1) / parts
  func three(_ value: Int) -> [UInt8] { [UInt8(value >> 16), UInt8(value >> 8 & 255), UInt8(value & 255)] }
  return (0..<parts).map { part in
    let piece = Array(body[min(part * size, body.count)..<min((part + 1) * size, body.count)])
    var header = record
    header[10] = UInt8(part)
    (header[11], header[12]) = (UInt8((piece.count + 12) >> 8), UInt8((piece.count + 12) & 255))
    return header + handshake[..<6] + three(part * size) + three(piece.count) + piece
  }
}
