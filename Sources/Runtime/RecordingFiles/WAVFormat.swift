import TrunklineAudioCodecs

/// RIFF WAVE of two channels of 16 bit.
enum WAVFormat {
  static let headerBytes = 44
  /// Of the sizes in the header.
  static let mostBytes = Int(UInt32.max) - headerBytes

  /// `dataBytes`: of the samples behind the header.
  static func header(rateHz: Int, dataBytes: Int) -> [UInt8] {
    let data = min(max(0, dataBytes), mostBytes)
    return Array("RIFF".utf8) + long(data + headerBytes - 8) + Array("WAVEfmt ".utf8) + long(16) + short(1) + short(2)
      + long(rateHz)
      + long(4 * rateHz) + short(4) + short(16) + Array("data".utf8) + long(data)
  }

  static func octets(_ pair: [Int16]) -> [UInt8] {
    var out = [UInt8]()
    out.reserveCapacity(2 * pair.count)
    for sample in pair {
      let bits = UInt16(bitPattern: sample)
      out.append(UInt8(truncatingIfNeeded: bits))
      out.append(UInt8(truncatingIfNeeded: bits >> 8))
    }
    return out
  }

  private static func short(_ value: Int) -> [UInt8] { (0..<2).map { UInt8(truncatingIfNeeded: value >> (8 * $0)) } }
  private static func long(_ value: Int) -> [UInt8] { (0..<4).map { UInt8(truncatingIfNeeded: value >> (8 * $0)) } }
}
