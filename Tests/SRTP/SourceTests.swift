import CSRTP
import Testing
import TrunklineBytes

@testable import TrunklineSRTP

/// Many SSRCs under one key: a queue that plays announcements begins another for each.
@Suite(.serialized) struct SourceTests {
  init() { _ = Oracle.started }

  /// What the peer sends under an SSRC: a sender knows four of them, so that each has one of its own.
  private func sealed(_ profile: SRTPProfile, _ ssrc: UInt32, _ sequences: [UInt16]) throws -> [[UInt8]] {
    var sender = try SRTPSender(profile, masterKey(profile))
    return try sequences.map { try sender.protected(rtpPacket($0, ssrc: ssrc)) }
  }

  @Test(arguments: SRTPProfile.allCases)
  func `the 17th, the 100th and the 1,025th SSRC are heard, RTP and RTCP`(_ profile: SRTPProfile) throws {
    let oracle = try Oracle(profile, masterKey(profile), inbound: false)
    var receiver = try SRTPReceiver(profile, masterKey(profile))
    for ssrc: UInt32 in 1...1_100 {
      let packet = rtpPacket(7, ssrc: ssrc)
      #expect(try receiver.unprotected(try #require(oracle.call(packet, srtp_protect))) == packet)
      let report = rtcpPacket(ssrc: ssrc)
      #expect(try receiver.unprotectedRTCP(try #require(oracle.call(report, srtp_protect_rtcp))) == report)
    }
    #expect(receiver.drainRetirements() == 128 && receiver.drainRetirements() == 0)
  }

  @Test func `a replay is refused, also of an SSRC that was retired, and the SSRC goes on above what it sent`() throws {
    let profile = SRTPProfile.aeadAES128GCM
    var receiver = try SRTPReceiver(profile, masterKey(profile))
    // Across a roll-over: the counter outlives the retirement.
    let first = try sealed(profile, 1, [65_533, 65_534, 65_535, 0, 1, 3, 2, 4])
    for packet in first.prefix(6) { _ = try receiver.unprotected(packet) }
    let reports = try reports(profile, 1, 3)
    for report in reports.prefix(2) { _ = try receiver.unprotectedRTCP(report) }
    let others = try (2...1_100).map { try sealed(profile, UInt32($0), [9])[0] }
    for packet in others { _ = try receiver.unprotected(packet) }
    #expect(receiver.sources.find(1) == nil)
    for packet in first.prefix(6) { #expect(throws: SRTPError.replayed) { try receiver.unprotected(packet) } }
    #expect(throws: SRTPError.replayed) { try receiver.unprotected(first[6]) }  // below the highest index: its window is gone
    for report in reports.prefix(2) { #expect(throws: SRTPError.replayed) { try receiver.unprotectedRTCP(report) } }
    #expect(receiver.sources.find(1) == nil, "a refused packet brings nothing back")
    for packet in others.prefix(50) { #expect(throws: SRTPError.replayed) { try receiver.unprotected(packet) } }
    #expect(try receiver.unprotected(first[7]) == rtpPacket(4, ssrc: 1))
    #expect(throws: SRTPError.replayed) { try receiver.unprotected(first[7]) }
    _ = try receiver.unprotectedRTCP(reports[2])
    #expect(throws: SRTPError.replayed) { try receiver.unprotectedRTCP(reports[2]) }
    for packet in others { #expect(throws: SRTPError.replayed) { try receiver.unprotected(packet) } }
  }

  @Test func `the least recent are retired, not those that speak`() throws {
    let profile = SRTPProfile.aeadAES128GCM
    var receiver = try SRTPReceiver(profile, masterKey(profile))
    var speaker = try SRTPSender(profile, masterKey(profile))
    for ssrc: UInt32 in 2...4_000 {
      _ = try receiver.unprotected(try speaker.protected(rtpPacket(UInt16(ssrc), ssrc: 1)))
      _ = try receiver.unprotected(try sealed(profile, ssrc, [1])[0])
    }
    #expect(receiver.sources.find(1) != nil && receiver.sources.find(4_000) != nil && receiver.sources.find(2) == nil)
  }

  @Test func `beyond what can be remembered an SSRC is refused as one too many, and those that are known are heard`() throws {
    let profile = SRTPProfile.aes128CM_HMAC_SHA1_80
    let most = Limits.sourcesReceived + Limits.sourcesRetired
    let oracle = try Oracle(profile, masterKey(profile), inbound: false)
    var receiver = try SRTPReceiver(profile, masterKey(profile))
    for ssrc in 1...UInt32(most) {
      _ = try receiver.unprotected(try #require(oracle.call(rtpPacket(1, ssrc: ssrc), srtp_protect)))
    }
    let further = try sealed(profile, UInt32(most) + 1, [1])[0]
    #expect(throws: SRTPError.tooManySources) { try receiver.unprotected(further) }
    #expect(throws: SRTPError.tooManySources) {
      try receiver.unprotectedRTCP(try reports(profile, UInt32(most) + 1, 1)[0])
    }
    for ssrc in [UInt32(1), UInt32(most)] {
      let packet = rtpPacket(2, ssrc: ssrc)
      #expect(try receiver.unprotected(try #require(oracle.call(packet, srtp_protect))) == packet)
    }
  }

  @Test func `new keys go on with the highest roll-over counter, also of a source that was retired`() throws {
    let profile = SRTPProfile.aeadAES128GCM
    var before = try SRTPReceiver(profile, masterKey(profile))
    for packet in try sealed(profile, 1, [40_000, 65_000, 20_000]) { _ = try before.unprotected(packet) }
    for ssrc: UInt32 in 2...1_100 { _ = try before.unprotected(try sealed(profile, ssrc, [1])[0]) }
    #expect(before.sources.find(1) == nil && before.sources.lastRollover == 1)
    var after = try SRTPReceiver(profile, masterKey(profile, seed: 9))
    after.followRollover(of: before)
    var sender = try SRTPSender(profile, masterKey(profile, seed: 9))
    var source = Source()
    (source.ssrc, source.usedAt) = (1, 1)
    source.rtp.record(1 << 16 | 20_000)
    _ = sender.sources.insert(source)
    // A report of the source comes before its RTP.
    _ = try after.unprotectedRTCP(try sender.protectedRTCP(rtcpPacket(ssrc: 1)))
    #expect(try after.unprotected(try sender.protected(rtpPacket(20_001, ssrc: 1))) == rtpPacket(20_001, ssrc: 1))
  }

  @Test func `a sender whose first packets were lost across its roll-over is heard beside forged packets`() throws {
    let profile = SRTPProfile.aeadAES128GCM
    var receiver = try SRTPReceiver(profile, masterKey(profile))
    var forger = try SRTPSender(profile, masterKey(profile, seed: 2))
    let packets = try sealed(profile, 1, [65_530] + (0..<20))
    let flood = try (0..<200).map { try forger.protected(rtpPacket(UInt16($0), ssrc: 8)) }
    for packet in flood { #expect(throws: SRTPError.authenticationFailed) { try receiver.unprotected(packet) } }
    var opened = 0
    for (index, packet) in packets.dropFirst().enumerated() {
      for number in 0..<3 {
        let forged = try forger.protected(rtpPacket(UInt16(3 * index + number), ssrc: 9))
        #expect(throws: SRTPError.authenticationFailed) { try receiver.unprotected(forged) }
      }
      if (try? receiver.unprotected(packet)) != nil { opened += 1 }
    }
    #expect(opened >= 12)
  }

  @Test func `a table finds what was put in and not taken out`() {
    var table = SSRCTable<Source>(limit: 600)
    var present: Set<UInt32> = []
    var random = SplitMix64(seed: 4)
    for _ in 0..<20_000 {
      let ssrc = UInt32(random.next() % 900) &* 0x1000_0001
      if present.remove(ssrc) != nil {
        table.remove(ssrc)
      } else {
        var source = Source()
        (source.ssrc, source.usedAt) = (ssrc, 1)
        if table.insert(source) != nil { present.insert(ssrc) } else { #expect(present.count == 600) }
      }
      #expect(table.count == present.count)
    }
    for ssrc in (0..<900).map({ UInt32($0) &* 0x1000_0001 }) {
      #expect((table.find(ssrc)?.pointee.ssrc == ssrc) == present.contains(ssrc))
    }
  }

  private func reports(_ profile: SRTPProfile, _ ssrc: UInt32, _ count: Int) throws -> [[UInt8]] {
    var sender = try SRTPSender(profile, masterKey(profile))
    return try (0..<count).map { _ in try sender.protectedRTCP(rtcpPacket(ssrc: ssrc)) }
  }
}
