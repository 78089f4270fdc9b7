import TrunklineBytes
import TrunklineRTP

/// Encodes one stream of samples of one band by any codec of the table; each sending leg owns one. G.711 costs nothing until a
/// switch to Opus allocates its encoder, so switching is for set-up and re-INVITE, not per packet.
public struct AudioEncoder: ~Copyable {
  public let encoding: AudioEncoding
  /// The band of the input samples.
  public private(set) var band: AudioBand
  /// The requested complexity; the ceiling may be lower.
  public let complexity: Int
  /// 0…10: the lower of this and `complexity` is used. A thread that is short of time lowers it for all its sessions.
  public private(set) var complexityCeiling = 10
  /// The adaptation of the stream to its receiver; no effect on G.711.
  public private(set) var control: EncoderControl
  private let isConstantRate: Bool
  private var opus: OpusEncoder?
  private var hasEncoded = false
  private var change = Change.none
  private var g722: G722Encoder?

  /// Throws only if libopus refuses its parameters.
  /// - Parameters:
  ///   - band: wideband only for codecs that have it; others are narrowband whatever is requested.
  ///   - isConstantRate: for Opus; the other codecs always have a constant rate.
  public init(
    encoding: AudioEncoding, band: AudioBand = .narrowband, control: EncoderControl = EncoderControl(), complexity: Int = 5,
    isConstantRate: Bool = false
  ) throws(OpusError) {
    (self.encoding, self.control, self.complexity) = (encoding, control, complexity)
    (self.band, self.isConstantRate) = (min(band, encoding.band), isConstantRate)
    opus = nil
    g722 = nil
    if encoding == .g722 { g722 = G722Encoder(sampleRateHz: self.band.sampleRateHz) }
    if encoding == .opus { try makeOpus() }
  }

  private mutating func makeOpus() throws(OpusError) {
    opus = try OpusEncoder(
      sampleRateHz: band.sampleRateHz, bitrate: control.bitrate, complexity: min(complexity, complexityCeiling),
      expectedLossPercent: control.expectedLossPercent)
    opus?.setRepair(control.repairs)
    opus?.setConstantRate(isConstantRate)
  }

  /// A pending change of Opus's band. An encoder cannot change its band, so a new one is made. It begins with silence, as does
  /// its receiver's decoder (RFC 6716 §4.2.7.1): the old encoder's last frame fades out and the new one's first fades in.
  private enum Change { case none, last(in: AudioBand), first }
  /// 60 ms of wideband.
  private static let longest = 960

  /// The next samples are of another band: a stream of G.722 continues, a stream of Opus has a frame of silence between the two.
  /// Opus allocates in the next but one `encode`.
  /// - Parameter control: the receiver's requests for this band; nil: as before.
  public mutating func setBand(_ band: AudioBand, control: EncoderControl? = nil) throws(OpusError) {
    let (band, before) = (min(band, encoding.band), self.band)
    guard band != before else { return }
    self.band = band
    self.control = control ?? self.control
    g722?.sampleRateHz = band.sampleRateHz
    guard opus != nil else { return }
    guard hasEncoded else { return try makeOpus() }
    // The band changed back before a frame was encoded.
    if case .last = change { change = .none } else { change = .last(in: before) }
  }

  private mutating func encodeOpus(_ samples: Span<Int16>, into payload: inout MutableSpan<UInt8>) throws(OpusError) -> Int {
    hasEncoded = true
    switch change {
    case .none: return try opus?.encode(samples, into: &payload) ?? 0
    case .first:
      change = .none
      return try opus?.encode(samples, .inwards, into: &payload) ?? 0
    case .last(let former):
      let count = BandConverter.count(min(samples.count, Self.longest &* band.sampleRateHz / 16_000), from: band, to: former)
      // the system may allocate memory of this length, which is acceptable: a new encoder, below, is allocated too
      let length = try withUnsafeTemporaryAllocation(of: Int16.self, capacity: Self.longest) {
        (converted) throws(OpusError) -> Int in
        samples.withUnsafeBufferPointer { from in
          guard let from = from.baseAddress, let to = converted.baseAddress else { return }
          var interpolator = BandInterpolator()
          interpolator.convert(from, BandConverter.count(count, from: former, to: band), from: band, to: former, into: to)
        }
        return try opus?.encode(converted.span.extracting(first: count), .outwards, into: &payload) ?? 0
      }
      change = .first
      try makeOpus()
      return length
    }
  }

  /// Encodes one tick (`band.samplesPerTick`; other legal frame lengths too) and returns the payload's length in octets.
  // HOT
  public mutating func encode(_ samples: Span<Int16>, into payload: inout MutableSpan<UInt8>) throws(OpusError) -> Int {
    switch encoding {
    case .opus: try encodeOpus(samples, into: &payload)
    case .g722: g722?.encode(samples, into: &payload) ?? 0
    default: encoding.encodeSamples(samples, into: &payload)
    }
  }

  /// RTP clock units of `samples` samples.
  public func units(ofSamples samples: Int) -> Int { samples &* Int(encoding.clockRateHz) / band.sampleRateHz }

  /// Adapts to one report of the receiver: loss that packets must cover, FEC, bitrate.
  public mutating func reported(lossFraction: Double, roundTripMilliseconds: Double?, at now: Instant) {
    let before = control
    control.reported(lossFraction: lossFraction, roundTripMilliseconds: roundTripMilliseconds, at: now)
    if control.expectedLossPercent != before.expectedLossPercent { opus?.setExpectedLoss(percent: control.expectedLossPercent) }
    if control.repairs != before.repairs { opus?.setRepair(control.repairs) }
    if control.bitrate != before.bitrate { opus?.setBitrate(control.bitrate) }
  }

  /// Limits the complexity to what the thread has time for, 0…10.
  public mutating func limitComplexity(to ceiling: Int) {
    let ceiling = max(0, min(10, ceiling))
    guard ceiling != complexityCeiling else { return }
    complexityCeiling = ceiling
    opus?.setComplexity(min(complexity, ceiling))
  }

  public mutating func reset() {
    opus?.reset()
    g722?.reset()
  }
}
