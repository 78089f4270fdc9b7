import CSRTP
import Testing
import TrunklineBytes

@testable import TrunklineSRTP

/// libsrtp2 with the same keys: what we protect it reads, what it protects we read.
@Suite(.serialized) struct OracleTests {
  init() { _ = Oracle.started }

  @Test(arguments: SRTPProfile.allCases)
  func `libsrtp reads what we protect, across two roll-overs`(_ profile: SRTPProfile) throws {
    let oracle = try Oracle(profile, masterKey(profile), inbound: true)
    var sender = try SRTPSender(profile, masterKey(profile))
    let random = RandomSource.seeded(5)
    var index: UInt64 = 65_000
    while index < 3 * 65_536 {
      let packet = rtpPacket(
        UInt16(truncatingIfNeeded: index), payload: random.bytes(Int(random.next() % 64)), csrcs: Int(random.next() % 3),
        extensionWords: random.next() % 2 == 0 ? nil : 2)
      #expect(oracle.call(try sender.protected(packet), srtp_unprotect) == packet)
      let report = rtcpPacket(more: random.bytes(4 * Int(random.next() % 9)))
      #expect(oracle.call(try sender.protectedRTCP(report), srtp_unprotect_rtcp) == report)
      index += random.next() % 10 == 0 ? 1 + random.next() % 900 : 1 + random.next() % 60
    }
  }

  @Test(arguments: SRTPProfile.allCases)
  func `we read what libsrtp protects, with loss and reordering, as libsrtp itself does`(_ profile: SRTPProfile) throws {
    let source = try Oracle(profile, masterKey(profile), inbound: false)
    let sink = try Oracle(profile, masterKey(profile), inbound: true)
    var receiver = try SRTPReceiver(profile, masterKey(profile))
    let random = RandomSource.seeded(6)
    var inFlight: [[UInt8]] = []
    var (read, index): (Int, UInt64) = (0, 65_000)
    while index < 2 * 65_536 + 400 {
      let plain = rtpPacket(UInt16(truncatingIfNeeded: index), payload: random.bytes(12))
      let sealed = try #require(source.call(plain, srtp_protect))
      if random.next() % 10 >= 3 { inFlight.append(sealed) }
      if random.next() % 20 == 0 { inFlight.append(sealed) }  // a duplicate
      if inFlight.count > 24 {
        let next = inFlight.remove(at: Int(random.next() % UInt64(inFlight.count)))
        let ours = try? receiver.unprotected(next)
        #expect(ours == sink.call(next, srtp_unprotect))
        if ours != nil { read += 1 }
      }
      let report = rtcpPacket(more: random.bytes(8))
      let sealedReport = try #require(source.call(report, srtp_protect_rtcp))
      #expect(try receiver.unprotectedRTCP(sealedReport) == report)
      index += random.next() % 2500 == 0 ? 9_000 : 1
    }
    #expect(read > 3_000)
  }
}

/// A libsrtp session of one direction.
final class Oracle {
  static let started: Bool = srtp_init() == srtp_err_status_ok
  private var session: srtp_t?
  private var key: [UInt8]

  init(_ profile: SRTPProfile, _ master: SRTPMasterKey, inbound: Bool) throws {
    key = master.key + master.salt
    var policy = srtp_policy_t()
    switch profile {
    case .aes128CM_HMAC_SHA1_80:
      srtp_crypto_policy_set_rtp_default(&policy.rtp)
      srtp_crypto_policy_set_rtcp_default(&policy.rtcp)
    case .aes128CM_HMAC_SHA1_32:
      srtp_crypto_policy_set_aes_cm_128_hmac_sha1_32(&policy.rtp)
      srtp_crypto_policy_set_rtcp_default(&policy.rtcp)
    case .aeadAES128GCM:
      srtp_crypto_policy_set_aes_gcm_128_16_auth(&policy.rtp)
      srtp_crypto_policy_set_aes_gcm_128_16_auth(&policy.rtcp)
    case .aeadAES256GCM:
      srtp_crypto_policy_set_aes_gcm_256_16_auth(&policy.rtp)
      srtp_crypto_policy_set_aes_gcm_256_16_auth(&policy.rtcp)
    }
    policy.ssrc.type = inbound ? ssrc_any_inbound : ssrc_any_outbound
    policy.window_size = 128
    let status = key.withUnsafeMutableBufferPointer { bytes in
      policy.key = bytes.baseAddress
      return srtp_create(&session, &policy)
    }
    try #require(status == srtp_err_status_ok)
  }
  deinit { srtp_dealloc(session) }

  /// The packet after a libsrtp operation; nil if it was refused.
  func call(
    _ packet: [UInt8], _ operation: (srtp_t?, UnsafeMutableRawPointer?, UnsafeMutablePointer<Int32>?) -> srtp_err_status_t
  ) -> [UInt8]? {
    // libsrtp asks for 32-bit alignment.
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: packet.count + 256, alignment: 16)
    defer { buffer.deallocate() }
    buffer.copyBytes(from: packet)
    var count = Int32(packet.count)
    guard operation(session, buffer.baseAddress, &count) == srtp_err_status_ok else { return nil }
    return Array(buffer[0..<Int(count)])
  }

  /// The same in a buffer of the caller's, aligned and with room for what protection adds; false if it was refused.
  func apply(
    _ buffer: UnsafeMutableRawBufferPointer, _ count: inout Int,
    _ operation: (srtp_t?, UnsafeMutableRawPointer?, UnsafeMutablePointer<Int32>?) -> srtp_err_status_t
  ) -> Bool {
    var length = Int32(count)
    guard operation(session, buffer.baseAddress, &length) == srtp_err_status_ok else { return false }
    count = Int(length)
    return true
  }
}
