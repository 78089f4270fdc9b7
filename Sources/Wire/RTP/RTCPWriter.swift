/// Builds a compound RTCP datagram (RFC 3550 §6.1) in the caller's buffer: report first, then SDES, then BYE. Each method returns
/// false, and writes nothing, when the packet does not fit. `count` octets are to be sent.
public struct RTCPWriter: Sendable {
  /// Octets written so far, a multiple of 4.
  public private(set) var count = 0

  public init() {}

  /// An SR when `sender` is given, else an RR; with at most one report block, as a gateway's leg has one remote source.
  public mutating func report(
    from source: SSRC, sender: SenderInfo?, block: ReportBlock?, into datagram: inout MutableSpan<UInt8>
  ) -> Bool {
    let length = 8 &+ (sender == nil ? 0 : 20) &+ (block == nil ? 0 : ReportBlock.length)
    guard begin(type: sender == nil ? 201 : 200, items: block == nil ? 0 : 1, length: length, into: &datagram) else {
      return false
    }
    put(source.raw, into: &datagram)
    if let sender {
      put(UInt32(truncatingIfNeeded: sender.ntp.raw >> 32), into: &datagram)
      put(UInt32(truncatingIfNeeded: sender.ntp.raw), into: &datagram)
      put(sender.timestamp.raw, into: &datagram)
      put(sender.packets, into: &datagram)
      put(sender.octets, into: &datagram)
    }
    if let block {
      put(block.source.raw, into: &datagram)
      put(UInt32(block.fractionLost) << 24 | UInt32(bitPattern: block.cumulativeLost) & 0x00ff_ffff, into: &datagram)
      put(block.highestSequence, into: &datagram)
      put(block.jitter, into: &datagram)
      put(block.lastSenderReport, into: &datagram)
      put(block.delaySinceLastSenderReport, into: &datagram)
    }
    return true
  }

  /// One chunk with a CNAME of 1…255 octets.
  public mutating func description(of source: SSRC, cname: Span<UInt8>, into datagram: inout MutableSpan<UInt8>) -> Bool {
    guard !cname.isEmpty, cname.count <= Limits.descriptionLength else { return false }
    // Items end with at least one zero octet, then to the next word (§6.5).
    let chunk = (4 &+ 2 &+ cname.count &+ 1 &+ 3) & ~3
    guard begin(type: 202, items: 1, length: 4 &+ chunk, into: &datagram) else { return false }
    let end = count &+ chunk
    put(source.raw, into: &datagram)
    datagram[count] = 1
    datagram[count &+ 1] = UInt8(truncatingIfNeeded: cname.count)
    for index in 0..<cname.count { datagram[count &+ 2 &+ index] = cname[index] }
    for index in (count &+ 2 &+ cname.count)..<end { datagram[index] = 0 }
    count = end
    return true
  }

  /// BYE of one source, without a reason.
  public mutating func goodbye(from source: SSRC, into datagram: inout MutableSpan<UInt8>) -> Bool {
    guard begin(type: 203, items: 1, length: 8, into: &datagram) else { return false }
    put(source.raw, into: &datagram)
    return true
  }

  mutating func begin(type: UInt8, items: UInt8, length: Int, into datagram: inout MutableSpan<UInt8>) -> Bool {
    guard count &+ length <= min(datagram.count, Limits.datagramLength) else { return false }
    let words = UInt32(truncatingIfNeeded: length / 4 &- 1)
    put(UInt32(0x80 | items) << 24 | UInt32(type) << 16 | words, into: &datagram)
    return true
  }

  mutating func put(_ word: UInt32, into datagram: inout MutableSpan<UInt8>) {
    var bytes = datagram.mutableBytes
    bytes.storeBytes(of: word.bigEndian, toByteOffset: count, as: UInt32.self)
    count &+= 4
  }
}
