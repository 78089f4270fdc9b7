import TrunklineBytes
import TrunklineRTP
import TrunklineSDP

/// Our RTP stream: the numbers of its packets, and the room in which one is made.
///
/// | state | input | → | returns |
/// |---|---|---|---|
/// | not agreed | `send`, `skip` | same | false |
/// | any | `agree` | agreed; the numbers continue | – |
/// | agreed | `send` | the next number and timestamp | true: the packet was given to `body` |
/// | agreed | `send` of what the keys do not protect, or `skip` | the next timestamp | false |
struct SentStream {
  private static let headerBytes = 12
  private struct Format {
    let payloadType: UInt8
    /// Units of the RTP clock in 20 ms.
    let units: UInt32
  }

  let ssrc: UInt32
  private(set) var packets: UInt64 = 0
  /// The payload of those packets.
  private(set) var octets: UInt64 = 0
  private var format: Format?
  private var sequence: UInt16
  private(set) var timestamp: UInt32
  // `Array.span` needs iOS 26; a ContiguousArray has it on every system.
  private var room = ContiguousArray<UInt8>(repeating: 0, count: Limits.packetBytes)

  init(ssrc: UInt32, random: RandomSource) {
    self.ssrc = ssrc
    sequence = UInt16(truncatingIfNeeded: random.next()) & 0x7fff
    timestamp = UInt32(truncatingIfNeeded: random.next())
  }

  @inline(__always) var isAgreed: Bool { format != nil }

  mutating func agree(_ media: AppMedia) { format = Format(payloadType: media.payloadType, units: media.codec.clockRateHz / 50) }

  /// Adds the header and the protection to the payload of 20 ms. HOT
  @discardableResult mutating func send(
    _ payload: UnsafeRawBufferPointer, under keys: inout ClientKeys, _ body: (UnsafeRawBufferPointer) -> Void
  ) -> Bool {
    guard let format, payload.count <= room.count - Self.headerBytes else { return false }
    defer { timestamp &+= format.units }
    let header = RTPHeader(
      payloadType: format.payloadType, marker: packets == 0, sequence: SequenceNumber(raw: sequence),
      timestamp: RTPTimestamp(raw: timestamp), ssrc: SSRC(raw: ssrc))
    var whole = room.mutableSpan
    _ = header.write(into: &whole)
    var count = Self.headerBytes + payload.count
    let isProtected = room.withUnsafeMutableBytes { buffer -> Bool in
      UnsafeMutableRawBufferPointer(rebasing: buffer[Self.headerBytes...]).copyMemory(from: payload)
      return keys.protect(buffer, count: &count)
    }
    guard isProtected else { return false }
    sequence &+= 1
    packets += 1
    octets += UInt64(payload.count)
    room.withUnsafeBytes { bytes in body(UnsafeRawBufferPointer(rebasing: bytes[..<count])) }
    return true
  }

  /// 20 ms are not sent: there is no path or there are no keys.
  mutating func skip() { if let format { timestamp &+= format.units } }
  /// - Parameter units: of a frame that the encoder did not code.
  mutating func skip(units: Int) { if format != nil { timestamp &+= UInt32(truncatingIfNeeded: units) } }
}
