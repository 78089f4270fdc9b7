import Synchronization
import Testing
import TrunklineBytes

@testable import TrunklineSRTP

@Suite struct KeyLimitTests {
  @Test(arguments: SRTPProfile.allCases)
  func `the last of 2^48 packets goes out and comes in, none after it`(_ profile: SRTPProfile) throws {
    var sender = try SRTPSender(profile, masterKey(profile))
    var receiver = try SRTPReceiver(profile, masterKey(profile))
    var source = Source()
    (source.ssrc, source.usedAt) = (0x1234_5678, 1)
    source.rtp.record((1 << 48) - 3)
    _ = sender.sources.insert(source)
    receiver.sources.admit(source)
    for sequence: UInt16 in [0xfffe, 0xffff] {
      let sealed = try sender.protected(rtpPacket(sequence))
      #expect(try receiver.unprotected(sealed) == rtpPacket(sequence))
    }
    for sequence: UInt16 in [0, 1, 30_000] {
      #expect(throws: SRTPError.keyExhausted) { try sender.protected(rtpPacket(sequence)) }
      #expect(throws: SRTPError.keyExhausted) { try receiver.unprotected(rtpPacket(sequence)) }
    }
    #expect(throws: SRTPError.replayed) { try sender.protected(rtpPacket(0xffff)) }
  }

  @Test(arguments: SRTPProfile.allCases)
  func `the last of 2^31 RTCP packets goes out and comes in, none after it`(_ profile: SRTPProfile) throws {
    var sender = try SRTPSender(profile, masterKey(profile))
    var receiver = try SRTPReceiver(profile, masterKey(profile))
    sender.nextControlIndex = (1 << 31) - 2
    for _ in 0..<2 {
      let sealed = try sender.protectedRTCP(rtcpPacket())
      #expect(try receiver.unprotectedRTCP(sealed) == rtcpPacket())
    }
    for _ in 0..<3 { #expect(throws: SRTPError.keyExhausted) { try sender.protectedRTCP(rtcpPacket()) } }
  }

  @Test func `a window is the smallest RFC 3711 allows or more, and every profile has one`() {
    #expect(Limits.replayWindow >= 128)
    #expect(Limits.packetIndex == 281_474_976_710_655 && Limits.controlIndex == 2_147_483_647)
  }

  @Test func `key bytes are overwritten when their last reference goes`() {
    let freed = Mutex<[[UInt8]]>([])
    func use() {
      let secret = SecretBytes(
        count: 32,
        free: { memory in
          freed.withLock { $0.append(Array(memory)) }
          memory.deallocate()
        }
      ) { $0.copyBytes(from: (1...32).map { UInt8($0) }) }
      let master = [secret, secret]
      #expect(master[1].array == (1...32).map { UInt8($0) })
      #expect(freed.withLock { $0.isEmpty })
    }
    use()
    #expect(freed.withLock { $0 } == [[UInt8](repeating: 0, count: 32)])
  }

  @Test func `secrets print as a mask, alone and inside what holds them`() throws {
    let master = SRTPMasterKey(key: Array(repeating: 0xab, count: 16), salt: Array(repeating: 0xcd, count: 14))
    let material = SRTPKeyMaterial(profile: .aes128CM_HMAC_SHA1_80, client: master, server: master)
    let keys = try SessionKeys(.aes128CM_HMAC_SHA1_80, master, .rtp)
    var dumped = ""
    dump(material, to: &dumped)
    dump(keys, to: &dumped)
    for text in [dumped, "\(material)", "\(keys)", "\(master)", String(reflecting: material), String(reflecting: keys)] {
      #expect(!text.contains("171") && !text.contains("205"), "\(text)")
      #expect(text.contains("redacted"), "\(text)")
    }
  }

  @Test func `equal keys are equal, and one octet makes them different`() {
    let one = SRTPMasterKey(key: Array(1...16), salt: Array(1...12))
    #expect(one == SRTPMasterKey(key: Array(1...16), salt: Array(1...12)))
    #expect(one != SRTPMasterKey(key: Array(0...15), salt: Array(1...12)))
    #expect(one != SRTPMasterKey(key: Array(1...16), salt: Array(2...13)))
    #expect(one != SRTPMasterKey(key: Array(1...16), salt: Array(1...14)))
  }
}
