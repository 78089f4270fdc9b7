import BenchKit
import CLibSRTP
import TrunklineSRTP

let libsrtpVersion: String = {
  _ = srtp_init()
  let text = String(cString: srtp_get_version_string())
  return String(text.split(separator: " ").last ?? "")
}()

/// A libsrtp2 session of one direction, without key limits or MKI.
final class LibSRTP {
  private var session: srtp_t?
  private var key: [UInt8]

  init(_ fixture: Fixture, inbound: Bool) throws {
    _ = libsrtpVersion
    key = fixture.key + fixture.salt
    var policy = srtp_policy_t()
    switch fixture.profile {
    case .aes128CM_HMAC_SHA1_80: srtp_crypto_policy_set_rtp_default(&policy.rtp)
    case .aes128CM_HMAC_SHA1_32: srtp_crypto_policy_set_aes_cm_128_hmac_sha1_32(&policy.rtp)
    case .aeadAES128GCM: srtp_crypto_policy_set_aes_gcm_128_16_auth(&policy.rtp)
    case .aeadAES256GCM: srtp_crypto_policy_set_aes_gcm_256_16_auth(&policy.rtp)
    }
    policy.rtcp = policy.rtp
    policy.ssrc.type = inbound ? ssrc_any_inbound : ssrc_any_outbound
    policy.window_size = 128
    let status = key.withUnsafeMutableBufferPointer { bytes in
      policy.key = bytes.baseAddress
      return srtp_create(&session, &policy)
    }
    guard status == srtp_err_status_ok else { throw BenchError(text: "libsrtp2 refuses \(fixture.profile.name)") }
  }
  deinit { srtp_dealloc(session) }

  @inline(__always) func protect(_ buffer: UnsafeMutableRawBufferPointer, _ count: inout Int32) throws {
    guard srtp_protect(session, buffer.baseAddress, &count) == srtp_err_status_ok else { throw BenchError(text: "srtp_protect") }
  }
  @inline(__always) func unprotect(_ buffer: UnsafeMutableRawBufferPointer, _ count: inout Int32) throws {
    guard srtp_unprotect(session, buffer.baseAddress, &count) == srtp_err_status_ok else {
      throw BenchError(text: "srtp_unprotect")
    }
  }
}
