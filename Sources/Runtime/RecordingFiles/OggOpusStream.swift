import TrunklineAudioCodecs
import TrunklineRTP

/// Ogg Opus of two channels (RFC 7845), each a separate stream: with mapping family 1 without coupling, neither side is audible
/// in the other's channel.
struct OggOpusStream: ~Copyable {
  private let band: AudioBand
  private var pages: OggPages
  private var left: OpusEncoder
  private var right: OpusEncoder
  /// Granule position after the last packet, in samples at 48 kHz.
  private var granule: UInt64 = 0

  /// The encoder's delay, in samples at 48 kHz: libopus's look-ahead at 8 and 16 kHz (`OPUS_GET_LOOKAHEAD`) is 6.5 ms.
  static let preSkip = 312

  init(_ band: AudioBand, serial: UInt32) throws(OpusError) {
    let left = try OpusEncoder(sampleRateHz: band.sampleRateHz, expectedLossPercent: 0)
    let right = try OpusEncoder(sampleRateHz: band.sampleRateHz, expectedLossPercent: 0)
    self.band = band
    pages = OggPages(serial: serial)
    self.left = left
    self.right = right
  }

  /// Returns OpusHead and OpusTags, one page each (RFC 7845 §5).
  mutating func header() -> [UInt8] {
    var head = Array("OpusHead".utf8) + [1, 2] + OggPages.little(UInt64(Self.preSkip), 2)
    head += OggPages.little(UInt64(band.sampleRateHz), 4) + [0, 0]
    // family 1: two streams, none of them coupled; the first channel is the first stream
    head += [1, 2, 0, 0, 1]
    _ = pages.add(head)
    var out = pages.page(granule: 0, isFirst: true)
    let vendor = Array("trunkline".utf8)
    _ = pages.add(Array("OpusTags".utf8) + OggPages.little(UInt64(vendor.count), 4) + vendor + OggPages.little(0, 4))
    out += pages.page(granule: 0)
    return out
  }

  /// Adds 20 ms of both channels, interleaved. Returns the page that they complete, or an empty array.
  mutating func add(_ pair: [Int16]) -> [UInt8] {
    let count = band.samplesPerTick
    let first = Self.packet((0..<count).map { pair[2 * $0] }, &left)
    let second = Self.packet((0..<count).map { pair[2 * $0 + 1] }, &right)
    let packet = Self.delimited(first) + second
    var out: [UInt8] = []
    if !pages.add(packet) {
      out = pages.page(granule: granule)
      _ = pages.add(packet)
    }
    granule += 960
    if pages.packets >= Limits.packetsPerPage { out += pages.page(granule: granule) }
    return out
  }

  /// The last page, which may be empty.
  mutating func end() -> [UInt8] { pages.page(granule: granule, isLast: true) }

  private static func packet(_ samples: [Int16], _ encoder: inout OpusEncoder) -> [UInt8] {
    var room = [UInt8](repeating: 0, count: Limits.packetBytes)
    var span = room.mutableSpan
    // libopus refuses only wrong parameters, and ours are constant; an empty SILK frame is a pause
    guard let count = try? encoder.encode(samples.span, into: &span), count > 0 else { return [0x08] }
    return Array(room.prefix(count))
  }

  /// The self-delimiting form of a packet with one frame (RFC 6716 appendix B): its length follows the first octet. libopus makes
  /// packets of one frame for 20 ms at a variable rate.
  static func delimited(_ packet: [UInt8]) -> [UInt8] {
    guard let first = packet.first, first & 3 == 0 else { return [0x08, 0] }
    let count = packet.count - 1
    let length = count < 252 ? [UInt8(count)] : [UInt8(252 + count & 3), UInt8((count - (252 + count & 3)) / 4)]
    return [first] + length + packet.dropFirst()
  }
}
