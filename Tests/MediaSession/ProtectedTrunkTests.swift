import Testing
import TrunklineAudioCodecs
import TrunklineBytes
import TrunklineRTP
import TrunklineSRTP

@testable import TrunklineMediaSession

/// SRTP on the trunk leg (RFC 4568 keys): nothing in clear goes out or is taken, in every way that packets are made.
@Suite struct ProtectedTrunkTests {
  private static let profile = SRTPProfile.aes128CM_HMAC_SHA1_80
  private static func master(_ seed: UInt8) -> SRTPMasterKey {
    SRTPMasterKey(key: [UInt8](repeating: seed, count: 16), salt: [UInt8](repeating: seed &+ 1, count: 14))
  }
  private static func protection(ours: UInt8 = 1, theirs: UInt8 = 101) -> TrunkProtection {
    TrunkProtection(profile: profile, ours: master(ours), theirs: master(theirs))
  }
  private static func parameters(_ protection: TrunkProtection?, remote: SocketAddress = Bench.trunkAddress) -> TrunkLegParameters
  {
    var parameters = TrunkLegParameters(remote: remote, encoding: .pcmu, payloadType: 0, telephoneEventPayloadType: 101)
    parameters.protection = protection
    return parameters
  }

  /// A connected session, and everything that it sent to the trunk since the last look, as it was on the wire.
  private struct Rig: ~Copyable {
    var bench: Bench
    var sender: SRTPSender
    var receiver: SRTPReceiver
    var sequence: UInt16 = 1

    init(app: AppEncoding, _ protection: TrunkProtection = ProtectedTrunkTests.protection()) throws {
      var bench = try Bench(app: app == .same ? .pcmu : .opus, adjust: { $0.protection = protection })
      let sender = try SRTPSender(protection.profile, protection.theirs)
      let receiver = try SRTPReceiver(protection.profile, protection.ours)
      bench.connect()
      self.bench = bench
      self.sender = sender
      self.receiver = receiver
    }

    /// What the trunk sends, protected.
    mutating func trunkSays(_ samples: [Int16]) throws {
      var octets = [UInt8](repeating: 0, count: samples.count)
      var span = octets.mutableSpan
      _ = G711.encode(samples.span, law: .mu, into: &span)
      try send(
        [0x80, 0, UInt8(sequence >> 8), UInt8(sequence & 255), 0, 0, UInt8(sequence >> 8), UInt8(sequence & 255), 0, 0, 9, 9]
          + octets)
      sequence &+= 1
    }

    mutating func send(_ packet: [UInt8], isControl: Bool = false) throws {
      let room = UnsafeMutableRawBufferPointer.allocate(byteCount: 1_600, alignment: 8)
      defer { room.deallocate() }
      room.copyBytes(from: packet)
      var count = packet.count
      if isControl { try sender.protectRTCP(room, count: &count) } else { try sender.protect(room, count: &count) }
      deliver(UnsafeMutableRawBufferPointer(rebasing: room[..<count]), isControl: isControl)
    }

    mutating func deliver(_ bytes: UnsafeMutableRawBufferPointer, isControl: Bool = false) {
      if isControl {
        let source = SocketAddress(Bench.trunkAddress.ip, Bench.trunkAddress.port + 1)
        bench.session.handleTrunkControl(bytes, from: source, at: bench.now, into: &bench.output)
      } else {
        bench.session.handleTrunk(bytes, from: Bench.trunkAddress, at: bench.now, into: &bench.output)
      }
      bench.collect()
    }

    /// What went to the trunk since the last call, in clear; nil for a packet that the trunk cannot open.
    mutating func opened() throws -> [[UInt8]?] {
      defer { bench.toTrunk.removeAll() }
      return bench.toTrunk.map { packet in
        var header = [UInt8](repeating: 0, count: 12)
        var span = header.mutableSpan
        _ = packet.header.write(into: &span)
        let room = UnsafeMutableRawBufferPointer.allocate(byteCount: 1_600, alignment: 8)
        defer { room.deallocate() }
        let bytes = header + packet.payload
        room.copyBytes(from: bytes)
        var count = bytes.count
        guard (try? receiver.unprotect(UnsafeMutableRawBufferPointer(rebasing: room[..<count]), count: &count)) != nil else {
          return nil
        }
        return Array(room[..<count])
      }
    }
  }
  enum AppEncoding: CaseIterable { case same, other }

  @Test(arguments: AppEncoding.allCases)
  func `relayed and transcoded audio goes both ways under the leg's keys`(_ encoding: AppEncoding) throws {
    var rig = try Rig(app: encoding)
    for frame in 0..<100 {
      try rig.trunkSays(tone(frame))
      try rig.bench.appSays(tone(frame, hertz: 700))
      rig.bench.tick()
    }
    let packets = try rig.opened()
    #expect(packets.count > 80 && packets.allSatisfy { $0 != nil })
    let heard = packets.suffix(40).compactMap { $0?.dropFirst(12) }.flatMap { octets -> [Int16] in
      var samples = [Int16](repeating: 0, count: octets.count)
      var span = samples.mutableSpan
      _ = G711.decode(Array(octets).span, law: .mu, into: &span)
      return samples
    }
    #expect(abs(level(heard) / level(tone(3)) - 1) < 0.25)
    #expect(abs(level(rig.bench.heardByApp.suffix(6_000)) / level(tone(3)) - 1) < 0.25)
  }

  @Test func `digits, silence and reports are protected too`() throws {
    var rig = try Rig(app: .other)
    rig.bench.command(.sendDigits(Bench.id, DigitRequest(digits: "5")))
    for frame in 0..<300 {
      try rig.trunkSays(tone(frame))
      rig.bench.tick()
    }
    let packets = try rig.opened()
    #expect(packets.allSatisfy { $0 != nil } && packets.contains { $0?[1] ?? 0 & 0x7f == 101 })
    let report = try #require(rig.bench.toTrunkControl.first)
    let room = UnsafeMutableRawBufferPointer.allocate(byteCount: 1_600, alignment: 8)
    defer { room.deallocate() }
    room.copyBytes(from: report)
    var count = report.count
    try rig.receiver.unprotectRTCP(UnsafeMutableRawBufferPointer(rebasing: room[..<count]), count: &count)
    #expect(count < report.count)
    rig.bench.command(.close(Bench.id))
    #expect(rig.bench.toTrunkControl.count > 1)
  }

  @Test func `plain, forged and replayed packets are dropped, and nothing is learnt from them`() throws {
    var rig = try Rig(app: .same)
    let before = rig.bench.toApp.count
    rig.bench.trunkSays(tone(0))  // the way in for bytes that cannot be decrypted
    #expect(rig.bench.output.drainDrops(.noKeys) == 1)
    var plain: [UInt8] = [0x80, 0, 0, 1, 0, 0, 0, 1, 0, 0, 9, 9] + [UInt8](repeating: 0x55, count: 160)
    plain.withUnsafeMutableBytes { rig.deliver($0) }
    #expect(rig.bench.output.drainDrops(.badTag) == 1 && rig.bench.toApp.count == before)
    plain = [0x80, 201, 0, 1, 0, 0, 9, 9]
    plain.withUnsafeMutableBytes { rig.deliver($0, isControl: true) }
    #expect(rig.bench.output.drainDrops(.malformed) + rig.bench.output.drainDrops(.badTag) == 1)
    #expect(rig.bench.session.statistics().fromTrunk.packets == 0)
  }

  @Test func `new keys of a re-INVITE: both are heard until the first packet under the new one, ours changes at once`() throws {
    var rig = try Rig(app: .same)
    try rig.trunkSays(tone(0))
    try rig.bench.appSays(tone(0))
    #expect(try rig.opened().allSatisfy { $0 != nil })
    let next = Self.protection(ours: 2, theirs: 102)
    rig.bench.command(.setTrunk(Bench.id, Self.parameters(next)))
    let before = rig.bench.toApp.count
    try rig.trunkSays(tone(1))  // still under the old key
    #expect(rig.bench.toApp.count == before + 1)
    try rig.bench.appSays(tone(1))
    rig.receiver = try SRTPReceiver(Self.profile, next.ours)
    #expect(try rig.opened().allSatisfy { $0 != nil })
    var old = try SRTPSender(Self.profile, Self.master(101))
    swap(&rig.sender, &old)
    rig.sender = try SRTPSender(Self.profile, next.theirs)
    try rig.trunkSays(tone(2))
    #expect(rig.bench.toApp.count == before + 2)
    rig.sender = old
    try rig.trunkSays(tone(3))  // too late for the old key
    #expect(rig.bench.toApp.count == before + 2 && rig.bench.output.drainDrops(.badTag) == 1)
  }

  @Test func `the same keys again change nothing, and plain RTP comes back where both sides agree on it`() throws {
    var rig = try Rig(app: .same)
    try rig.trunkSays(tone(0))
    rig.bench.command(.setTrunk(Bench.id, Self.parameters(Self.protection())))
    try rig.trunkSays(tone(1))
    try rig.bench.appSays(tone(1))
    #expect(try rig.opened().allSatisfy { $0 != nil })
    rig.bench.command(.setTrunk(Bench.id, Self.parameters(nil)))
    let before = rig.bench.toApp.count
    rig.bench.trunkSays(tone(2))
    #expect(rig.bench.toApp.count == before + 1)
  }
}
