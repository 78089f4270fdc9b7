import Testing
import TrunklineSRTP

@testable import TrunklineDTLS

@Suite struct ProfileOfferTests {
  /// Extension 14 (RFC 5764 §4.1.1): the profiles, most wanted first, then the MKI's length.
  private func extensionBytes(_ profiles: [SRTPProfile]) -> [UInt8] {
    let list = profiles.flatMap { [UInt8(truncatingIfNeeded: $0.rawValue >> 8), UInt8(truncatingIfNeeded: $0.rawValue)] }
    return [0, 14, 0, UInt8(list.count + 3), 0, UInt8(list.count)] + list + [0]
  }

  @Test func `a hello offers GCM first, no 32-bit tag and no MKI, and the answer names one profile without MKI`() throws {
    #expect(SRTPProfile.offered == [.aeadAES128GCM, .aeadAES256GCM, .aes128CM_HMAC_SHA1_80])
    let (ours, theirs) = (try DTLSIdentity(), try DTLSIdentity())
    var pair = try Pair(client: ours, server: theirs, clientExpects: theirs.fingerprint, serverExpects: ours.fingerprint)
    let hello = extensionBytes(SRTPProfile.offered)
    let answer = extensionBytes([.aeadAES128GCM])
    nonisolated(unsafe) var seen = (hello: false, answer: false)
    pair.network = { _, datagram, isFromClient in
      if isFromClient, datagram.contains(hello) { seen.hello = true }
      if !isFromClient, datagram.contains(answer) { seen.answer = true }
      return [datagram]
    }
    pair.run()
    #expect(seen.hello && seen.answer)
    #expect(pair.server.keyMaterial?.profile == .aeadAES128GCM)
  }
}
