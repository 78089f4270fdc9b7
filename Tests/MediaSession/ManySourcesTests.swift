import Testing
import TrunklineAudioCodecs
import TrunklineBytes
import TrunklineRTP
import TrunklineSRTP

@testable import TrunklineMediaSession

/// A queue that plays announcements begins an SSRC for each: all are heard, under keys that stay.
@Suite struct ManySourcesTests {
  private static let last: UInt32 = 1_030
  private static let listened: Set<UInt32> = [1, 17, 100, 1_025]

  /// Twelve 20 ms frames of a tone under an SSRC that is listened to, one of silence under another.
  private func frames(_ ssrc: UInt32) -> [[Int16]] {
    Self.listened.contains(ssrc) ? (0..<12).map { tone($0) } : [quiet]
  }

  @Test(arguments: [AudioEncoding.pcmu, .opus])
  func `app to trunk: the 17th, the 100th and the 1,025th SSRC of the app are heard`(_ app: AudioEncoding) throws {
    var bench = try Bench(app: app)
    bench.connect()
    for ssrc in 1...Self.last {
      bench.appSender = try SRTPSender(bench.keys.profile, bench.keys.client)
      bench.appSSRC = ssrc
      bench.appSequence = 500
      bench.heardByTrunk.removeAll()
      for frame in frames(ssrc) {
        try bench.appSays(frame)
        bench.tick()
      }
      guard Self.listened.contains(ssrc) else { continue }
      #expect(level(bench.heardByTrunk.suffix(960)) > 0.5 * level(tone(0)), "SSRC \(ssrc)")
    }
    bench.command(.close(Bench.id))
    #expect(bench.output.retiredSources == 128)
    for reason in [MediaDrop.badTag, .tooManySources, .replayed] { #expect(bench.output.drainDrops(reason) == 0) }
  }

  @Test(arguments: [AudioEncoding.pcmu, .opus], [SRTPProfile.aes128CM_HMAC_SHA1_80, .aeadAES128GCM])
  func `trunk to app under SDES: the 17th, the 100th and the 1,025th SSRC of the trunk are heard`(
    _ app: AudioEncoding, _ profile: SRTPProfile
  ) throws {
    let key = SRTPMasterKey(
      key: [UInt8](repeating: 1, count: profile.keyBytes), salt: [UInt8](repeating: 2, count: profile.saltBytes))
    var bench = try Bench(app: app) { $0.protection = TrunkProtection(profile: profile, ours: key, theirs: key) }
    bench.connect()
    for ssrc in 1...Self.last {
      var sender = try SRTPSender(profile, key)
      bench.heardByApp.removeAll()
      for (index, frame) in frames(ssrc).enumerated() {
        try send(frame, ssrc, UInt16(index), &sender, &bench)
        bench.tick()
      }
      guard Self.listened.contains(ssrc) else { continue }
      #expect(level(bench.heardByApp.suffix(960)) > 0.5 * level(tone(0)), "SSRC \(ssrc)")
    }
    for reason in [MediaDrop.badTag, .tooManySources, .replayed] { #expect(bench.output.drainDrops(reason) == 0) }
  }

  private func send(
    _ samples: [Int16], _ ssrc: UInt32, _ sequence: UInt16, _ sender: inout SRTPSender, _ bench: inout Bench
  ) throws {
    var octets = [UInt8](repeating: 0, count: 160)
    var span = octets.mutableSpan
    _ = G711.encode(samples.span, law: .mu, into: &span)
    func word(_ value: UInt32) -> [UInt8] { (0..<4).map { UInt8(truncatingIfNeeded: value >> UInt32(24 - 8 * $0)) } }
    let packet = [0x80, 0, 0, UInt8(sequence)] + word(UInt32(sequence) * 160) + word(ssrc) + octets
    var room = packet + [UInt8](repeating: 0, count: 32)
    var count = packet.count
    try room.withUnsafeMutableBytes { try sender.protect($0, count: &count) }
    room.withUnsafeMutableBytes {
      let bytes = UnsafeMutableRawBufferPointer(rebasing: $0[..<count])
      bench.session.handleTrunk(bytes, from: Bench.trunkAddress, at: bench.now, into: &bench.output)
    }
    bench.collect()
  }
}
