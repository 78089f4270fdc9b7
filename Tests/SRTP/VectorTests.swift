import Testing

@testable import TrunklineSRTP

@Suite struct VectorTests {
  let vectors: Vectors
  init() throws { vectors = try Vectors() }

  @Test func `RFC 3711 B-2 key stream, up to counter wrap of the low byte`() throws {
    var iv = try vectors("rfc3711", "B.2_aes_cm", "iv_counter0")
    let master = SRTPMasterKey(key: try vectors("rfc3711", "B.2_aes_cm", "session_key"), salt: Array(iv[..<14]))
    // The derivation PRF is the key stream at salt · 2^16; label 0 leaves the IV as it is.
    let stream = try deriveKey(master, label: 0, count: 16 * 0xff02).array
    for (block, at) in [("0x0", 0), ("0x1", 1), ("0x2", 2), ("0xfeff", 0xfeff), ("0xff00", 0xff00), ("0xff01", 0xff01)] {
      let expected = try vectors("rfc3711", "B.2_aes_cm", "keystream_at_block", block)
      #expect(Array(stream[(16 * at)..<(16 * at + 16)]) == expected)
    }
    iv.removeAll()
  }

  @Test func `RFC 3711 B-3 key derivation`() throws {
    let at = ("rfc3711", "B.3_key_derivation")
    let master = SRTPMasterKey(key: try vectors(at.0, at.1, "master_key"), salt: try vectors(at.0, at.1, "master_salt"))
    let keys = try SessionKeys(.aes128CM_HMAC_SHA1_80, master, .rtp)
    #expect(keys.key.array == (try vectors(at.0, at.1, "cipher_key")))
    #expect(keys.salt.array == (try vectors(at.0, at.1, "cipher_salt")))
    let authentication = try vectors(at.0, at.1, "auth_key_94_octets")
    #expect(keys.authentication.array == Array(authentication[..<20]))
    #expect(try deriveKey(master, label: 1, count: 94).array == authentication)
  }

  private func counterModeMaster() throws -> SRTPMasterKey {
    SRTPMasterKey(key: try vectors("aes_cm_128_packets", "master_key"), salt: try vectors("aes_cm_128_packets", "master_salt"))
  }

  @Test(arguments: [(SRTPProfile.aes128CM_HMAC_SHA1_80, "srtp_80_roc0"), (.aes128CM_HMAC_SHA1_32, "srtp_32_roc0")])
  func `counter mode packets of libsrtp's driver, both ways`(_ profile: SRTPProfile, _ name: String) throws {
    let plain = try vectors("aes_cm_128_packets", "rtp_plain")
    let sealed = try vectors("aes_cm_128_packets", name)
    var sender = try SRTPSender(profile, try counterModeMaster())
    #expect(try sender.protected(plain) == sealed)
    var receiver = try SRTPReceiver(profile, try counterModeMaster())
    #expect(try receiver.unprotected(sealed) == plain)
    #expect(throws: SRTPError.replayed) { try receiver.unprotected(sealed) }
  }

  @Test func `the same sequence number in the next roll-over gives the other packet`() throws {
    let plain = try vectors("aes_cm_128_packets", "rtp_plain")
    var sender = try SRTPSender(.aes128CM_HMAC_SHA1_80, try counterModeMaster())
    var receiver = try SRTPReceiver(.aes128CM_HMAC_SHA1_80, try counterModeMaster())
    for sequence: UInt16 in [0x1234, 0x8000, 0xf000] {
      var packet = plain
      (packet[2], packet[3]) = (UInt8(sequence >> 8), UInt8(sequence & 255))
      #expect(try receiver.unprotected(try sender.protected(packet)) == packet)
    }
    let sealed = try vectors("aes_cm_128_packets", "srtp_80_roc1")
    #expect(try sender.protected(plain) == sealed)
    #expect(try receiver.unprotected(sealed) == plain)
  }

  @Test func `counter mode SRTCP packet with index 1`() throws {
    let plain = try vectors("aes_cm_128_packets", "rtcp_plain")
    let sealed = try vectors("aes_cm_128_packets", "srtcp_80_index1")
    var sender = try SRTPSender(.aes128CM_HMAC_SHA1_80, try counterModeMaster())
    _ = try sender.protectedRTCP(plain)  // index 0
    #expect(try sender.protectedRTCP(plain) == sealed)
    var receiver = try SRTPReceiver(.aes128CM_HMAC_SHA1_80, try counterModeMaster())
    #expect(try receiver.unprotectedRTCP(sealed) == plain)
    let changed = try vectors("aes_cm_128_packets", "must_reject", "srtcp_index_changed")
    #expect(throws: SRTPError.authenticationFailed) { try receiver.unprotectedRTCP(changed) }
  }

  @Test(arguments: ["srtp_80_roc0_flipped_payload_bit", "srtp_80_roc0_flipped_tag_bit", "srtp_80_roc0_truncated_by_1"])
  func `damaged counter mode packets are refused`(_ name: String) throws {
    var receiver = try SRTPReceiver(.aes128CM_HMAC_SHA1_80, try counterModeMaster())
    let bad = try vectors("aes_cm_128_packets", "must_reject", name)
    #expect(throws: SRTPError.authenticationFailed) { try receiver.unprotected(bad) }
    #expect(try receiver.unprotected(try vectors("aes_cm_128_packets", "srtp_80_roc0")).count == 28)
  }

  private func gcmKeys(_ profile: SRTPProfile) throws -> SessionKeys {
    SessionKeys(
      key: try vectors("rfc7714", profile == .aeadAES128GCM ? "key128" : "key256"), salt: try vectors("rfc7714", "session_salt"))
  }

  @Test(arguments: [
    (SRTPProfile.aeadAES128GCM, "srtp_aead_aes_128_gcm_16.1.1"), (.aeadAES256GCM, "srtp_aead_aes_256_gcm_16.2.1"),
  ])
  func `RFC 7714 §16 SRTP, both ways`(_ profile: SRTPProfile, _ name: String) throws {
    let (plain, sealed) = (try vectors("rfc7714", "rtp_plain"), try vectors("rfc7714", name))
    var sender = try SRTPSender(profile, rtp: try gcmKeys(profile), rtcp: try gcmKeys(profile))
    #expect(try sender.protected(plain) == sealed)
    var receiver = try SRTPReceiver(profile, rtp: try gcmKeys(profile), rtcp: try gcmKeys(profile))
    #expect(try receiver.unprotected(sealed) == plain)
  }

  @Test(arguments: [(SRTPProfile.aeadAES128GCM, "srtcp_aead_aes_128_gcm_17.1"), (.aeadAES256GCM, "srtcp_aead_aes_256_gcm_17.2")])
  func `RFC 7714 §17 SRTCP, both ways`(_ profile: SRTPProfile, _ name: String) throws {
    let (plain, sealed) = (try vectors("rfc7714", "rtcp_plain"), try vectors("rfc7714", name))
    var sender = try SRTPSender(profile, rtp: try gcmKeys(profile), rtcp: try gcmKeys(profile))
    for _ in 0..<1492 { _ = try sender.protectedRTCP(plain) }  // the vector's index
    #expect(try sender.protectedRTCP(plain) == sealed)
    var receiver = try SRTPReceiver(profile, rtp: try gcmKeys(profile), rtcp: try gcmKeys(profile))
    #expect(try receiver.unprotectedRTCP(sealed) == plain)
  }

  @Test(arguments: ["srtp_flipped_header_bit", "srtp_flipped_tag"])
  func `damaged GCM packets are refused`(_ name: String) throws {
    let keys = try gcmKeys(.aeadAES128GCM)
    var receiver = try SRTPReceiver(.aeadAES128GCM, rtp: keys, rtcp: keys)
    let bad = try vectors("rfc7714", "must_reject", name)
    #expect(throws: SRTPError.authenticationFailed) { try receiver.unprotected(bad) }
  }

  @Test func `SRTCP that is authenticated only is refused, also as the RFC has it`() throws {
    let keys = try gcmKeys(.aeadAES128GCM)
    var receiver = try SRTPReceiver(.aeadAES128GCM, rtp: keys, rtcp: keys)
    let cleared = try vectors("rfc7714", "must_reject", "srtcp_e_bit_cleared")
    #expect(throws: SRTPError.notEncrypted) { try receiver.unprotectedRTCP(cleared) }
    let tagOnly = try vectors("rfc7714", "srtcp_128_tag_only_17.3")
    #expect(throws: SRTPError.notEncrypted) { try receiver.unprotectedRTCP(tagOnly) }
  }
}
