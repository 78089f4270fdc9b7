import TrunklineAudioCodecs
import TrunklineBytes
import TrunklineJitterBuffer
import TrunklineMediaSession
import TrunklineRTP

/// Bytes as a network: packets with any number, time and payload into a receive path, ticks in between. The first byte chooses
/// the codec and the band; then each step takes one byte of what to do and what it needs.
@Sendable func fuzzReceiver(_ bytes: [UInt8]) {
  guard let first = bytes.first else { return }
  let encoding = AudioEncoding.allCases[Int(first) % AudioEncoding.allCases.count]
  let band = first & 0x80 == 0 ? AudioBand.narrowband : .wideband
  guard var receiver = try? AudioReceiver(encoding: encoding, band: band) else { return }
  var position = 1
  func byte() -> Int {
    guard position < bytes.count else { return 0 }
    position += 1
    return Int(bytes[position - 1])
  }
  var (number, timestamp, now) = (65_530, 0xffff_fff0, Instant.zero)
  var output = [Int16](repeating: 0, count: 320)
  while position < bytes.count {
    let step = byte()
    switch step & 3 {
    case 0:
      now = now + .milliseconds(Int64(step >> 2))
      output.withUnsafeMutableBufferPointer { output in
        var span = UnsafeMutableBufferPointer(rebasing: output.prefix(receiver.band.samplesPerTick)).mutableSpan
        _ = receiver.pull(into: &span, at: now)
      }
    case 1:
      // An ordinary next packet, in most cases.
      number += step >> 6 == 3 ? byte() - 128 : 1
      timestamp += step >> 4 & 3 == 3 ? byte() << 10 - 64 : Int(encoding.clockRateHz) / 50
      let length = step & 4 == 0 ? min(160, byte()) : min(bytes.count - position, byte() * 6)
      let end = min(bytes.count, position + length)
      let header = RTPHeader(
        payloadType: 0, marker: false, sequence: SequenceNumber(raw: UInt16(truncatingIfNeeded: number)),
        timestamp: RTPTimestamp(raw: UInt32(truncatingIfNeeded: timestamp)), ssrc: SSRC(raw: UInt32(step >> 3 & 1)))
      _ = receiver.insert(header, payload: bytes.span.extracting(position..<end), at: now)
      position = end
    case 2:
      let header = RTPHeader(
        payloadType: 101, marker: false, sequence: SequenceNumber(raw: UInt16(truncatingIfNeeded: number + byte())),
        timestamp: RTPTimestamp(raw: UInt32(truncatingIfNeeded: timestamp)), ssrc: SSRC(raw: 0))
      receiver.skip(header, at: now)
    default:
      now = now + .milliseconds(Int64(step) * 8)
      if step == 255 { receiver.reset() }
      if step == 251 { try? receiver.setBand(receiver.band == .wideband ? .narrowband : .wideband) }
    }
    let depth = receiver.depth
    precondition(depth >= 0 && depth <= TrunklineJitterBuffer.Limits.packets, "memory is bounded")
  }
}
