import CSRTP
import Glibc
import Testing
import TrunklineBytes

@testable import TrunklineSRTP

/// A million packets, half of them protected by us and read by libsrtp2, half the other way: random sizes, contributing sources,
/// header extensions and padding, with losses across roll-overs. Works in two buffers, since the test build is not optimised.
@Suite(.serialized) struct MillionTests {
  static let packetsEachWay = 125_000

  @Test(arguments: SRTPProfile.allCases)
  func `a quarter million packets each profile are read by the other side as they were`(_ profile: SRTPProfile) throws {
    _ = Oracle.started
    let sink = try Oracle(profile, masterKey(profile), inbound: true)
    let source = try Oracle(profile, masterKey(profile), inbound: false)
    var sender = try SRTPSender(profile, masterKey(profile))
    var receiver = try SRTPReceiver(profile, masterKey(profile))
    var stream = PacketStream(seed: UInt64(profile.rawValue))
    let work = UnsafeMutableRawBufferPointer.allocate(byteCount: PacketStream.room, alignment: 16)
    defer { work.deallocate() }
    var (wrong, rollovers, octets): (Int, UInt64, Int) = (0, 0, 0)
    for packet in 0..<(2 * Self.packetsEachWay) {
      stream.next(isControl: packet % 32 > 29)
      let plain = UnsafeRawBufferPointer(rebasing: stream.packet[..<stream.count])
      work.copyMemory(from: plain)
      var count = stream.count
      let isRead =
        packet % 2 == 0
        ? try ours(&sender, sink, work, &count, isControl: stream.isControl)
        : try theirs(source, &receiver, work, &count, isControl: stream.isControl)
      if !isRead || count != stream.count || !isSame(work, plain) { wrong += 1 }
      (rollovers, octets) = (stream.index >> 16, octets + count)
    }
    #expect(wrong == 0)
    #expect(rollovers >= 3 && octets > 100 * Self.packetsEachWay)
  }

  private func isSame(_ work: UnsafeMutableRawBufferPointer, _ plain: UnsafeRawBufferPointer) -> Bool {
    guard let left = work.baseAddress, let right = plain.baseAddress else { return false }
    return memcmp(left, right, plain.count) == 0
  }

  private func ours(
    _ sender: inout SRTPSender, _ sink: Oracle, _ work: UnsafeMutableRawBufferPointer, _ count: inout Int, isControl: Bool
  ) throws -> Bool {
    if isControl { try sender.protectRTCP(work, count: &count) } else { try sender.protect(work, count: &count) }
    return sink.apply(work, &count, isControl ? srtp_unprotect_rtcp : srtp_unprotect)
  }

  private func theirs(
    _ source: Oracle, _ receiver: inout SRTPReceiver, _ work: UnsafeMutableRawBufferPointer, _ count: inout Int, isControl: Bool
  ) throws -> Bool {
    guard source.apply(work, &count, isControl ? srtp_protect_rtcp : srtp_protect) else { return false }
    if isControl { try receiver.unprotectRTCP(work, count: &count) } else { try receiver.unprotect(work, count: &count) }
    return true
  }
}

/// Random packets of one stream, written where they lie.
private struct PacketStream: ~Copyable {
  static let room = 2_048
  private(set) var index: UInt64 = 60_000
  private(set) var count = 0
  private(set) var isControl = false
  let packet = UnsafeMutableRawBufferPointer.allocate(byteCount: room, alignment: 16)
  private let pool: [UInt8]
  private var random: SplitMix64

  init(seed: UInt64) {
    random = SplitMix64(seed: seed)
    pool = RandomSource.seeded(seed).bytes(4_096)
  }
  deinit { packet.deallocate() }

  mutating func next(isControl: Bool) {
    let word = random.next()
    self.isControl = isControl
    // Most packets are a telephone's; some are as large as a path carries.
    let body = word & 15 == 0 ? Int(word >> 8 % 1_300) : Int(word >> 8 % 180)
    let start = Int(word >> 40 % 2_000)
    pool.withUnsafeBytes { packet.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[start..<(start + 2_000)])) }
    if isControl { control(body) } else { media(body, word) }
  }

  private mutating func control(_ body: Int) {
    count = 8 + body / 4 * 4
    (packet[0], packet[1], packet[2], packet[3]) = (0x80, 201, 0, UInt8(truncatingIfNeeded: count / 4 - 1))
    packet.storeBytes(of: UInt32(0x1234_5678).bigEndian, toByteOffset: 4, as: UInt32.self)
  }

  private mutating func media(_ body: Int, _ word: UInt64) {
    // One in ten is lost, and now and then a thousand.
    index += word >> 24 % 4_000 == 0 ? 1_000 : (word >> 52 % 10 == 0 ? 2 : 1)
    let csrcs = word >> 4 & 3 == 0 ? Int(word >> 16 & 15) : 0
    let hasExtension = word >> 6 & 3 == 0
    let words = hasExtension ? Int(word >> 20 & 7) : 0
    let isPadded = body > 8 && word >> 30 & 15 == 0
    packet[0] = 0x80 | (isPadded ? 0x20 : 0) | (hasExtension ? 0x10 : 0) | UInt8(csrcs)
    packet.storeBytes(of: UInt16(truncatingIfNeeded: index).bigEndian, toByteOffset: 2, as: UInt16.self)
    packet.storeBytes(of: UInt32(0x1234_5678).bigEndian, toByteOffset: 8, as: UInt32.self)
    var header = 12 + 4 * csrcs
    if hasExtension {
      packet.storeBytes(of: UInt32(0xbede_0000 | UInt32(words)).bigEndian, toByteOffset: header, as: UInt32.self)
      header += 4 + 4 * words
    }
    count = header + body
    if isPadded { packet[count - 1] = 4 }
  }
}
