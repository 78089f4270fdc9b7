import TrunklineBytes
public import TrunklineRTP

#if canImport(Darwin)
  import Darwin
#else
  import Glibc
#endif

/// Converts RIFF WAVE bytes to mono samples at the rates of calls, and samples of a call to RIFF WAVE bytes.
public enum WAVFile {
  /// Longest file that is read, in bytes: 10 minutes of 48 kHz stereo.
  static let sizeLimit = 120_000_000

  public struct FormatError: Error, CustomStringConvertible {
    public let description: String
  }

  private struct Format {
    var tag = 0, channels = 0, rateHz = 0, bits = 0
  }

  /// The samples of a WAV file at 8 kHz: PCM 16 bit, G.711 µ-law or A-law; any whole multiple of 8 kHz up to 48 kHz; the first
  /// channel.
  public static func samples(of bytes: [UInt8]) throws(FormatError) -> [Int16] {
    let (samples, rateHz) = try content(of: bytes)
    return resampled(samples, rateHz, to: 8_000)
  }

  /// The samples in both bands.
  public static func recording(of bytes: [UInt8]) throws(FormatError) -> Recording {
    let (samples, rateHz) = try content(of: bytes)
    let narrow = resampled(samples, rateHz, to: 8_000)
    // At rates that are not a multiple of 16 kHz, audio above 4 kHz is left out.
    guard rateHz % 16_000 == 0 else { return Recording(narrow) }
    return Recording(narrow: narrow, wide: resampled(samples, rateHz, to: 16_000))
  }

  private static func resampled(_ samples: [Int16], _ rateHz: Int, to wanted: Int) -> [Int16] {
    rateHz == wanted ? samples : decimated(samples, by: rateHz / wanted)
  }

  private static func content(of bytes: [UInt8]) throws(FormatError) -> (samples: [Int16], rateHz: Int) {
    func word(_ at: Int) -> Int { at + 1 < bytes.count ? Int(bytes[at]) | Int(bytes[at + 1]) << 8 : 0 }
    func long(_ at: Int) -> Int { word(at) | word(at + 2) << 16 }
    func tag(_ at: Int) -> String { at + 4 <= bytes.count ? String(decoding: bytes[at..<at + 4], as: UTF8.self) : "" }
    guard bytes.count <= sizeLimit, tag(0) == "RIFF", tag(8) == "WAVE" else {
      throw FormatError(description: "not a RIFF WAVE file (or over \(sizeLimit / 1_000_000) MB)")
    }
    var format = Format()
    var offset = 12
    while offset + 8 <= bytes.count {
      let size = long(offset + 4)
      let body = offset + 8
      switch tag(offset) {
      case "fmt ":
        format = Format(tag: word(body), channels: word(body + 2), rateHz: long(body + 4), bits: word(body + 14))
        if format.tag == 0xfffe { format.tag = word(body + 24) }
      case "data":
        return try decode(bytes[body..<min(bytes.count, body + max(0, size))], format)
      default: break
      }
      offset = body + size + size % 2
    }
    throw FormatError(description: "no data chunk")
  }

  private static func decode(_ data: ArraySlice<UInt8>, _ format: Format) throws(FormatError) -> (samples: [Int16], rateHz: Int) {
    guard (1...2).contains(format.channels), [8000, 16000, 24000, 32000, 40000, 48000].contains(format.rateHz) else {
      throw FormatError(
        description: "\(format.channels) channels at \(format.rateHz) Hz: mono or stereo at a multiple of 8000 Hz is required; "
          + "convert with: sox in.wav -r 16000 -c 1 -b 16 out.wav")
    }
    var samples: [Int16]
    switch (format.tag, format.bits) {
    case (1, 16):
      let step = 2 * format.channels
      samples = stride(from: data.startIndex, to: data.endIndex - step + 1, by: step).map {
        Int16(bitPattern: UInt16(data[$0]) | UInt16(data[$0 + 1]) << 8)
      }
    case (6, 8), (7, 8):
      samples = stride(from: data.startIndex, to: data.endIndex, by: format.channels).map {
        decoded(data[$0], format.tag == 7 ? .mu : .a)
      }
    default:
      throw FormatError(description: "format \(format.tag) with \(format.bits) bits: PCM 16, µ-law or A-law is wanted")
    }
    return (samples, format.rateHz)
  }

  private static func decoded(_ octet: UInt8, _ law: G711.Law) -> Int16 { samples(ofG711: [octet], law: law).first ?? 0 }

  /// G.711 octets as samples.
  public static func samples(ofG711 octets: [UInt8], law: G711.Law) -> [Int16] {
    [Int16](unsafeUninitializedCapacity: octets.count) { samples, count in
      var room = samples.mutableSpan
      octets.withUnsafeBufferPointer { count = G711.decode($0.span, law: law, into: &room) }
    }
  }

  /// Low-pass (windowed sinc, 0.425 of the new rate: 3.4 kHz at 8) and keep every `factor`-th sample.
  private static func decimated(_ samples: [Int16], by factor: Int) -> [Int16] {
    let halfWidth = 16 * factor
    let cutoff = 0.425 / Double(factor)
    let taps = (-halfWidth...halfWidth).map { n -> Double in
      let x = Double(n)
      let sinc = n == 0 ? 2 * cutoff : sin(2 * .pi * cutoff * x) / (.pi * x)
      return sinc * (0.5 + 0.5 * cos(.pi * x / Double(halfWidth)))
    }
    return stride(from: 0, to: samples.count, by: factor).map { centre in
      var sum = 0.0
      for (index, tap) in taps.enumerated() {
        let at = centre + index - halfWidth
        if samples.indices.contains(at) { sum += tap * Double(samples[at]) }
      }
      return Int16(max(-32768, min(32767, sum.rounded())))
    }
  }

  /// A PCM 16-bit mono WAV file of samples of this band.
  public static func bytes(of samples: [Int16], _ band: AudioBand = .narrowband) -> [UInt8] {
    func little(_ value: Int, bytes count: Int) -> [UInt8] { (0..<count).map { UInt8(truncatingIfNeeded: value >> (8 * $0)) } }
    var out: [UInt8] = Array("RIFF".utf8) + little(36 + samples.count * 2, bytes: 4) + Array("WAVEfmt ".utf8)
    out +=
      little(16, bytes: 4) + little(1, bytes: 2) + little(1, bytes: 2) + little(band.sampleRateHz, bytes: 4)
      + little(2 * band.sampleRateHz, bytes: 4) + little(2, bytes: 2)
      + little(16, bytes: 2)
    out += Array("data".utf8) + little(samples.count * 2, bytes: 4)
    out.reserveCapacity(out.count + samples.count * 2)
    for sample in samples { out += little(Int(sample), bytes: 2) }
    return out
  }
}
