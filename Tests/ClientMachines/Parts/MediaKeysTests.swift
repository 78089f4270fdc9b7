import Testing
import TrunklineBytes
import TrunklineDTLS
import TrunklineSRTP

@testable import TrunklineClientMachines

@Suite struct ClientKeysTests {
  private func protected(_ sequence: UInt8, _ seed: UInt8) throws -> [UInt8] {
    var sender = try SRTPSender(.aeadAES128GCM, keyMaterial(seed).server)
    var (bytes, count) = (room(sequence), 52)
    try bytes.withUnsafeMutableBytes { try sender.protect($0, count: &count) }
    return Array(bytes[..<count])
  }
  private func opens(_ keys: inout ClientKeys, _ packet: [UInt8], isControl: Bool = false) -> Bool {
    var (bytes, count) = (packet, packet.count)
    return bytes.withUnsafeMutableBytes { isControl ? keys.unprotectRTCP($0, count: &count) : keys.unprotect($0, count: &count) }
  }
  private func seals(_ keys: inout ClientKeys, isControl: Bool = false) -> Bool {
    var (bytes, count) = (room(1), 52)
    let isSealed = bytes.withUnsafeMutableBytes {
      isControl ? keys.protectRTCP($0, count: &count) : keys.protect($0, count: &count)
    }
    return isSealed && count > 52
  }

  @Test func `without keys nothing is sent, and only RTP counts as refused`() throws {
    var keys = ClientKeys()
    let opened = [opens(&keys, try protected(1, 1)), opens(&keys, try protected(1, 1), isControl: true)]
    let sealed = [seals(&keys), seals(&keys, isControl: true)]
    let (isInstalled, refused) = (keys.isInstalled, keys.refusedPackets)
    #expect(opened == [false, false] && sealed == [false, false] && !isInstalled && refused == 1)
  }

  @Test func `the first keys stay; a packet opens once, and others are refused`() throws {
    var keys = ClientKeys()
    let installed = [try keys.install(keyMaterial(1)), try keys.install(keyMaterial(9))]
    let one = try protected(1, 1)
    let opened = [opens(&keys, one), opens(&keys, one), opens(&keys, try protected(2, 9)), opens(&keys, [0x80])]
    let control = opens(&keys, one, isControl: true)
    let (profile, refused) = (keys.profile, keys.refusedPackets)
    #expect(installed == [true, false] && opened == [true, false, false, false] && !control)
    #expect(profile == .aeadAES128GCM && refused == 4)
    let sealed = [seals(&keys), seals(&keys, isControl: true)]
    #expect(sealed == [true, true])
  }

  @Test func `keys that do not fit are an error once, and nothing is sent in the clear`() {
    var keys = ClientKeys()
    var errors = 0
    for _ in 0..<2 { do { _ = try keys.install(keyMaterial(1, saltBytes: 3)) } catch { errors += 1 } }
    let sealed = [seals(&keys), seals(&keys, isControl: true)]
    #expect(errors == 1 && sealed == [false, false])
  }
}

@Suite struct ClientHandshakeTests {
  /// Passes datagrams between the part and a server until both are silent.
  private func exchange(_ handshake: inout ClientHandshake, _ server: inout DTLSAssociation) -> ClientHandshake.Progress {
    var progress = ClientHandshake.Progress.pending
    for _ in 0..<10 {
      for datagram in handshake.drain() { datagram.withUnsafeBytes { server.receive($0) } }
      var flight: [[UInt8]] = []
      server.drain { flight.append(Array($0)) }
      for datagram in flight {
        holds(datagram.withUnsafeBytes { handshake.receive($0) })
        progress = handshake.advance(at: seconds(1))
      }
    }
    return progress
  }

  @Test func `without an association nothing is sent or due, and datagrams have no effect`() {
    var handshake = ClientHandshake()
    let received = [1 as UInt8, 2].withUnsafeBytes { handshake.receive($0) }
    let (isDue, progress) = (handshake.handleTimeout(at: seconds(9)), handshake.advance(at: seconds(9)))
    let (flight, last, deadline) = (handshake.drain(), handshake.close(), handshake.deadline)
    #expect(!received && !isDue && progress == .pending && flight.isEmpty && last.isEmpty && deadline == nil)
  }

  @Test func `both ends get the same keys, also when it is started twice, and after that nothing is due`() throws {
    let (own, other) = (try DTLSIdentity(), try DTLSIdentity())
    var handshake = ClientHandshake()
    var server = try DTLSAssociation(.server, identity: other, remoteFingerprint: own.fingerprint)
    for _ in 0..<2 { try handshake.start(identity: own, remote: other.fingerprint) }
    let (first, deadline, early) = (
      handshake.advance(at: seconds(1)), handshake.deadline, handshake.handleTimeout(at: seconds(1))
    )
    #expect(first == .pending && !early && deadline.map { $0 > seconds(1) } == true)
    let progress = exchange(&handshake, &server)
    let keys = server.keyMaterial
    let again = handshake.advance(at: seconds(2))
    let (after, isDue) = (handshake.deadline, handshake.handleTimeout(at: seconds(99)))
    #expect(keys != nil && keys.map { progress == .established($0) && again == .established($0) } == true)
    #expect(after == nil && !isDue)
  }

  @Test func `another certificate is a failure, once; then it may start again`() throws {
    let (own, other, third) = (try DTLSIdentity(), try DTLSIdentity(), try DTLSIdentity())
    var handshake = ClientHandshake()
    var server = try DTLSAssociation(.server, identity: other, remoteFingerprint: own.fingerprint)
    try handshake.start(identity: own, remote: third.fingerprint)
    var failures = 0
    for _ in 0..<10 {
      for datagram in handshake.drain() { datagram.withUnsafeBytes { server.receive($0) } }
      var flight: [[UInt8]] = []
      server.drain { flight.append(Array($0)) }
      for datagram in flight { _ = datagram.withUnsafeBytes { handshake.receive($0) } }
      if case .failed = handshake.advance(at: seconds(1)) { failures += 1 }
    }
    let isRunning = handshake.isRunning
    #expect(failures == 1 && !isRunning)
    try handshake.start(identity: own, remote: other.fingerprint)
    let flight = handshake.drain()
    #expect(!flight.isEmpty)
  }

  @Test func `a closed association sends its alert once, and nothing is due`() throws {
    let (own, other) = (try DTLSIdentity(), try DTLSIdentity())
    var handshake = ClientHandshake()
    var server = try DTLSAssociation(.server, identity: other, remoteFingerprint: own.fingerprint)
    try handshake.start(identity: own, remote: other.fingerprint)
    _ = exchange(&handshake, &server)
    let (alert, again) = (handshake.close(), handshake.close())
    let (isRunning, deadline) = (handshake.isRunning, handshake.deadline)
    #expect(!alert.isEmpty && again.isEmpty && !isRunning && deadline == nil)
  }
}
