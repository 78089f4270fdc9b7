import Testing
import TrunklineBytes

@testable import TrunklineSRTP

/// What SDES brings beside DTLS: master key identifiers in packets, and new keys in the middle of a stream.
@Suite struct RekeyTests {
  /// As RFC 3711 §3.1 and RFC 7714 §8.3 have it: before the tag of counter mode, behind everything of GCM.
  private func identified(_ packet: [UInt8], _ profile: SRTPProfile) -> [UInt8] {
    let identifier: [UInt8] = [0, 0, 0, 1]
    guard !profile.isAEAD else { return packet + identifier }
    return packet.dropLast(isControl(packet) ? profile.rtcpTagBytes : profile.rtpTagBytes) + identifier
      + packet.suffix(isControl(packet) ? profile.rtcpTagBytes : profile.rtpTagBytes)
  }
  private func isControl(_ packet: [UInt8]) -> Bool { (192...223).contains(packet[1]) }

  @Test(arguments: SRTPProfile.allCases)
  func `a master key identifier is passed over, and its absence is a wrong tag`(_ profile: SRTPProfile) throws {
    var sender = try SRTPSender(profile, masterKey(profile))
    var receiver = try SRTPReceiver(profile, masterKey(profile))
    receiver.identifierBytes = 4
    let media = try sender.protected(rtpPacket(7))
    #expect(throws: SRTPError.authenticationFailed) { try receiver.unprotected(media) }
    #expect(try receiver.unprotected(identified(media, profile)) == rtpPacket(7))
    let control = try sender.protectedRTCP(rtcpPacket())
    #expect(throws: SRTPError.self) { try receiver.unprotectedRTCP(control) }
    #expect(try receiver.unprotectedRTCP(identified(control, profile)) == rtcpPacket())
    for count in 0..<40 { #expect(throws: SRTPError.self) { try receiver.unprotected(Array(media.prefix(count))) } }
  }

  @Test(arguments: SRTPProfile.allCases)
  func `a new key in the third round is read whether its sender goes on counting or begins again`(_ profile: SRTPProfile) throws {
    for continues in [true, false] {
      var sender = try SRTPSender(profile, masterKey(profile))
      var receiver = try SRTPReceiver(profile, masterKey(profile))
      for index in stride(from: 0, to: 3 * 65_536, by: 1_024) {
        _ = try receiver.unprotected(sender.protected(rtpPacket(UInt16(truncatingIfNeeded: index))))
      }
      var next = try SRTPSender(profile, masterKey(profile, seed: 2))
      if continues { next.followRollover(of: sender) }
      var after = try SRTPReceiver(profile, masterKey(profile, seed: 2))
      after.followRollover(of: receiver)
      let packet = rtpPacket(65_000)
      #expect(try after.unprotected(next.protected(packet)) == packet)
      #expect(try after.unprotected(next.protected(rtpPacket(65_001))) == rtpPacket(65_001))
    }
  }
}
