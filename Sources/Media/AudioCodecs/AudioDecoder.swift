import TrunklineRTP

/// Decodes one received stream of any codec of the table to samples of one band, and joins received, repaired and concealed audio
/// without clicks. The caller selects these, in the order of play-out. No allocation after `init`; one thread at a time.
public struct AudioDecoder: ~Copyable {
  public let encoding: AudioEncoding
  public let band: AudioBand
  private var opus: OpusDecoder?
  private var g722: G722Decoder?
  private var concealer: PitchConcealer?
  private let octetsPerUnit: Int
  private let isStateless: Bool
  /// 120 ms, and 2.5.
  private let longest: Int
  private let grain: Int

  /// - Parameter band: wideband only for codecs that have it; others are narrowband whatever is requested.
  /// - Throws: only if libopus refuses its parameters.
  public init(encoding: AudioEncoding, band: AudioBand = .narrowband) throws(OpusError) {
    let row = encoding.row
    (self.encoding, octetsPerUnit, isStateless) = (encoding, row.octetsPerUnit, row.isStateless)
    self.band = min(band, encoding.band)
    let rate = self.band.sampleRateHz
    (longest, grain) = (rate / 1000 * Limits.packetMilliseconds, rate / 400)
    opus = nil
    g722 = nil
    concealer = nil
    if encoding == .g722 { g722 = G722Decoder(sampleRateHz: rate) }
    if encoding == .opus { opus = try OpusDecoder(sampleRateHz: rate) } else { concealer = PitchConcealer(band: self.band) }
  }

  /// The same stream in another band. G.722 continues seamlessly, Opus adapts within some packets.
  public init(continuing other: borrowing AudioDecoder, band: AudioBand) throws(OpusError) {
    try self.init(encoding: other.encoding, band: band)
    switch other.g722 {
    case .some(let g722): self.g722 = G722Decoder(continuing: g722, sampleRateHz: self.band.sampleRateHz)
    case .none: break
    }
  }

  /// The duration of a payload in RTP clock units; nil for what the codec cannot have made: empty, longer than 120 ms, or with an
  /// incomplete unit.
  // HOT
  public func duration(_ payload: Span<UInt8>) -> Int? {
    if encoding == .opus { return OpusPacket.duration(payload) }
    let units = octetsPerUnit == 1 ? payload.count : wholeUnits(payload.count)
    return units <= 0 || units > Limits.packetMilliseconds * 8 ? nil : units
  }

  /// For codecs with units of several octets; 0 if the last unit is incomplete.
  private func wholeUnits(_ octets: Int) -> Int { octets % octetsPerUnit == 0 ? octets / octetsPerUnit : 0 }

  /// Decodes a payload and returns its samples; 0 for a damaged one, which the caller treats as lost.
  // HOT
  /// - Parameter format: the encoding of the payload, where it is another one that shares this decoder.
  public mutating func decode(
    _ payload: Span<UInt8>, as format: AudioEncoding? = nil, into samples: inout MutableSpan<Int16>
  ) -> Int {
    if encoding == .opus { return (try? opus?.decode(payload, into: &samples)) ?? 0 }
    let count =
      encoding == .g722
      ? g722?.decode(payload, into: &samples) ?? 0 : (format ?? encoding).decodeSamples(payload, into: &samples)
    concealer?.received(&samples, count: count)
    return count
  }

  /// Fills `count` lost samples from the copy in the next packet's payload (Opus FEC); conceals them where there is none.
  public mutating func repair(_ count: Int, from next: Span<UInt8>, into samples: inout MutableSpan<Int16>) -> Int {
    guard encoding == .opus else { return conceal(count, into: &samples) }
    return (try? opus?.repair(count, from: next, into: &samples)) ?? 0
  }

  /// Conceals `count` samples, for Opus rounded down to 2.5 ms steps, and returns how many.
  public mutating func conceal(_ count: Int, into samples: inout MutableSpan<Int16>) -> Int {
    let count = min(count, samples.count, longest)
    guard encoding == .opus else {
      concealer?.conceal(count, into: &samples)
      g722?.follow(samples.span.extracting(0..<count))
      return count
    }
    return (try? opus?.conceal(count / grain * grain, into: &samples)) ?? 0
  }

  /// As `conceal`, where `next` is the payload after the gap: a stateless codec conceals from both ends, others ignore it.
  public mutating func conceal(
    _ count: Int, before next: Span<UInt8>, as format: AudioEncoding? = nil, into samples: inout MutableSpan<Int16>
  ) -> Int {
    guard isStateless else { return conceal(count, into: &samples) }
    let count = min(count, samples.count, longest)
    withUnsafeTemporaryAllocation(of: Int16.self, capacity: AudioBand.narrowband.samplesPerTick) { room in
      var behind = room.mutableSpan
      let length = (format ?? encoding).decodeSamples(next, into: &behind)
      concealer?.conceal(count, into: &samples, before: room.span.extracting(first: length))
    }
    return count
  }

  public mutating func reset() {
    opus?.reset()
    g722?.reset()
    concealer?.reset()
  }
}
