import Testing
import TrunklineBytes

@testable import TrunklineSRTP

@Suite struct PacketTests {
  @Test(arguments: SRTPProfile.allCases, [0, 1, 33, 160, 1200])
  func `what one side protects the other reads, with every header shape`(_ profile: SRTPProfile, _ size: Int) throws {
    var sender = try SRTPSender(profile, masterKey(profile))
    var receiver = try SRTPReceiver(profile, masterKey(profile))
    var sequence: UInt16 = 65_500
    for (csrcs, words) in [(0, nil), (3, nil), (15, 2), (0, 0), (1, 5)] as [(Int, Int?)] {
      let payload = (0..<size).map { UInt8(truncatingIfNeeded: $0 &* 7) }
      let packet = rtpPacket(sequence, payload: payload, csrcs: csrcs, extensionWords: words)
      let sealed = try sender.protected(packet)
      #expect(sealed.count == packet.count + profile.overheadBytes)
      #expect(try receiver.unprotected(sealed) == packet)
      sequence &+= 17
    }
    let report = rtcpPacket(more: Array(repeating: 9, count: size))
    let sealed = try sender.protectedRTCP(report)
    #expect(sealed.count == report.count + 4 + profile.rtcpTagBytes)
    #expect(try receiver.unprotectedRTCP(sealed) == report)
    #expect(throws: SRTPError.replayed) { try receiver.unprotectedRTCP(sealed) }
  }

  @Test(arguments: SRTPProfile.allCases)
  func `a flipped bit anywhere is refused, nothing is learnt and the bytes stay as they came`(_ profile: SRTPProfile) throws {
    var sender = try SRTPSender(profile, masterKey(profile))
    var receiver = try SRTPReceiver(profile, masterKey(profile))
    let packet = rtpPacket(7, payload: Array(0..<20), csrcs: 1, extensionWords: 1)
    let sealed = try sender.protected(packet)
    let report = try sender.protectedRTCP(rtcpPacket())
    for bit in 0..<(sealed.count * 8) {
      var bad = sealed
      bad[bit / 8] ^= 1 << UInt8(bit % 8)
      let after = inPlace(bad, room: 0) { buffer, count in
        #expect(throws: SRTPError.self) { try receiver.unprotect(buffer, count: &count) }
        #expect(count == bad.count)
      }
      #expect(after == bad)
    }
    for bit in 0..<(report.count * 8) {
      var bad = report
      bad[bit / 8] ^= 1 << UInt8(bit % 8)
      #expect(throws: SRTPError.self) { try receiver.unprotectedRTCP(bad) }
    }
    #expect(try receiver.unprotected(sealed) == packet)
    #expect(try receiver.unprotectedRTCP(report) == rtcpPacket())
  }

  @Test(arguments: [SRTPProfile.aeadAES128GCM, .aes128CM_HMAC_SHA1_80])
  func `four roll-overs with 30 percent loss and reordering lose nothing more`(_ profile: SRTPProfile) throws {
    let random = RandomSource.seeded(11)
    var sender = try SRTPSender(profile, masterKey(profile))
    var receiver = try SRTPReceiver(profile, masterKey(profile))
    var inFlight: [(index: UInt64, packet: [UInt8])] = []
    var (arrived, read, highest): (Int, Int, UInt64) = (0, 0, 0)
    var index: UInt64 = 30_000
    while index < 4 * 65_536 {
      let sealed = try sender.protected(rtpPacket(UInt16(truncatingIfNeeded: index), payload: [1, 2, 3]))
      if random.next() % 10 >= 3 { inFlight.append((index, sealed)) }
      if inFlight.count > 30 {
        let next = inFlight.remove(at: Int(random.next() % 31))
        let expected = next.index + Limits.replayWindow > highest
        #expect(((try? receiver.unprotected(next.packet)) != nil) == expected, "index \(next.index), highest \(highest)")
        arrived += 1
        if expected { (read, highest) = (read + 1, max(highest, next.index)) }
      }
      index += random.next() % 3000 == 0 ? 20_000 : 1
    }
    #expect(arrived > 10_000)
    #expect(read > arrived * 9 / 10)
  }

  @Test func `the window tells 128 indices apart and refuses what is older`() {
    var window = IndexWindow()
    window.record(1000)
    for index: UInt64 in [1127, 1063, 1064, 1001] { window.record(index) }
    for index: UInt64 in [1127, 1063, 1064, 1001, 1000] { #expect(window.refusal(index) == .replayed) }
    for index: UInt64 in [1126, 1062, 1065, 1002, 1128] { #expect(window.refusal(index) == nil) }
    #expect(window.refusal(999) == .tooOld)
    window.record(1128)
    #expect(window.refusal(1000) == .tooOld)
    #expect(window.refusal(1001) == .replayed)
    window.record(5000)
    #expect(window.refusal(1128) == .tooOld)
    #expect(window.refusal(4999) == nil)
    #expect(window.refusal(4873) == nil)
    #expect(window.refusal(4872) == .tooOld)
  }

  @Test func `the window agrees with a set of everything seen`() {
    let random = RandomSource.seeded(3)
    var window = IndexWindow()
    var seen: Set<UInt64> = []
    var base: UInt64 = 500
    for _ in 0..<50_000 {
      base += random.next() % 3 == 0 ? random.next() % 90 : 1
      let index = base - random.next() % 200
      let highest = seen.max() ?? 0
      let expected: SRTPError? =
        seen.isEmpty ? nil : (highest > index && highest - index >= 128 ? .tooOld : (seen.contains(index) ? .replayed : nil))
      #expect(window.refusal(index) == expected)
      if expected == nil {
        window.record(index)
        seen.insert(index)
        seen = seen.filter { $0 + 400 > index }
      }
    }
  }

  @Test(arguments: [
    (UInt64(0x1_0005), UInt16(0xfff0), UInt64(0xfff0)), (0x1_fff0, 5, 0x2_0005), (0x1_8000, 0x7fff, 0x1_7fff), (5, 6, 6),
    (0x2_0000, 0x8000, 0x2_8000),
  ])
  func `the index is the nearest one with that sequence number`(_ highest: UInt64, _ sequence: UInt16, _ expected: UInt64) {
    var window = IndexWindow()
    window.record(highest)
    #expect(window.estimate(sequence) == expected)
  }

  @Test(arguments: SRTPProfile.allCases)
  func `a sender that began just below the first roll-over is read though its first packets were lost`(
    _ profile: SRTPProfile
  ) throws {
    var sender = try SRTPSender(profile, masterKey(profile))
    var receiver = try SRTPReceiver(profile, masterKey(profile))
    _ = try sender.protected(rtpPacket(65_530))
    let late = try sender.protected(rtpPacket(65_535))
    let sealed = try sender.protected(rtpPacket(3))
    #expect(try receiver.unprotected(sealed) == rtpPacket(3))
    #expect(try receiver.unprotected(late) == rtpPacket(65_535))
    #expect(throws: SRTPError.replayed) { try receiver.unprotected(sealed) }
    // A forged first packet leaves the way open for both.
    var other = try SRTPReceiver(profile, masterKey(profile))
    var forged = sealed
    forged[20] ^= 1
    #expect(throws: SRTPError.authenticationFailed) { try other.unprotected(forged) }
    #expect(try other.unprotected(sealed) == rtpPacket(3))
  }

  @Test func `an index before the first roll-over is no index`() {
    var window = IndexWindow()
    window.record(5)
    #expect(window.estimate(0xfff0) == nil)
  }

  func `a fifth SSRC is refused by a sender, and forged ones use no slot at a receiver`(_ profile: SRTPProfile) throws {
    var other = try SRTPSender(profile, masterKey(profile, seed: 2))
    var receiver = try SRTPReceiver(profile, masterKey(profile))
    for ssrc: UInt32 in 100...103 {
      let forged = try other.protected(rtpPacket(1, ssrc: ssrc))
      #expect(throws: SRTPError.authenticationFailed) { try receiver.unprotected(forged) }
    }
    #expect(throws: SRTPError.tooManySources) { try other.protected(rtpPacket(1, ssrc: 5)) }
    #expect(receiver.sources.find(100) == nil)
  }

  @Test func `a sender never uses an index twice and needs room for the tag`() throws {
    var sender = try SRTPSender(.aeadAES128GCM, masterKey(.aeadAES128GCM))
    _ = try sender.protected(rtpPacket(10))
    #expect(throws: SRTPError.replayed) { try sender.protected(rtpPacket(10)) }
    #expect(throws: SRTPError.noRoom) {
      try inPlace(rtpPacket(11), room: 15) { (b, n) throws(SRTPError) in try sender.protect(b, count: &n) }
    }
    #expect(throws: SRTPError.noRoom) {
      try inPlace(rtcpPacket(), room: 19) { (b, n) throws(SRTPError) in try sender.protectRTCP(b, count: &n) }
    }
    _ = try sender.protected(rtpPacket(11))
  }

  @Test func `keys of the wrong length are refused, and key material prints as a mask`() throws {
    #expect(throws: SRTPError.keyLength) { _ = try SRTPSender(.aeadAES256GCM, masterKey(.aeadAES128GCM)) }
    #expect(throws: SRTPError.keyLength) { _ = try SRTPReceiver(.aes128CM_HMAC_SHA1_80, masterKey(.aeadAES128GCM)) }
    let block = (0..<60).map { UInt8($0) }
    #expect(SRTPKeyMaterial(profile: .aeadAES128GCM, exported: block) == nil)
    let material = try #require(SRTPKeyMaterial(profile: .aes128CM_HMAC_SHA1_80, exported: block))
    #expect(material.client.key == Array(0..<16) && material.server.key == Array(16..<32))
    #expect(material.client.salt == Array(32..<46) && material.server.salt == Array(46..<60))
    #expect(!"\(material)".contains("17"))
  }

  @Test(arguments: SRTPProfile.allCases)
  func `any byte string is refused or read, never a trap`(_ profile: SRTPProfile) throws {
    let random = RandomSource.seeded(UInt64(profile.rawValue))
    var sender = try SRTPSender(profile, masterKey(profile))
    var receiver = try SRTPReceiver(profile, masterKey(profile))
    for round in 0..<20_000 {
      var bytes = random.bytes(Int(random.next() % 80))
      if round % 2 == 0, !bytes.isEmpty { bytes[0] = bytes[0] & 0x3f | 0x80 }
      #expect(throws: SRTPError.self) { try receiver.unprotected(bytes) }
      #expect(throws: SRTPError.self) { try receiver.unprotectedRTCP(bytes) }
      _ = try? sender.protected(bytes)
      _ = try? sender.protectedRTCP(bytes)
    }
    let sealed = try sender.protectedRTCP(rtcpPacket())
    for count in 0...sealed.count where count < sealed.count {
      #expect(throws: SRTPError.self) { try receiver.unprotectedRTCP(Array(sealed[..<count])) }
    }
  }
}
