import Bytes
import RTP

/// One stream of 8 kHz samples to any codec of the table: what a sending leg owns. G.711 costs nothing until a switch to Opus
/// allocates its encoder, so switching is for set-up and re-INVITE, not per packet.
public struct AudioEncoder: ~Copyable {
  public let encoding: AudioEncoding
  /// What is asked for when nothing presses; the ceiling may be lower.
  public let complexity: Int
  /// 0…10: what is used is the lower of this and `complexity`. A thread that is short of time lowers it for all its sessions.
  public private(set) var complexityCeiling = 10
  /// How the stream follows its receiver; no effect on G.711.
  public private(set) var control: EncoderControl
  private var opus: OpusEncoder?
  private var g722: G722Encoder?

  /// Throws only if libopus refuses its parameters.
  /// - Parameter isConstantRate: of Opus; the other codecs know nothing else.
  public init(
    encoding: AudioEncoding, control: EncoderControl = EncoderControl(), complexity: Int = 5, isConstantRate: Bool = false
  ) throws(OpusError) {
    (self.encoding, self.control, self.complexity) = (encoding, control, complexity)
    opus = nil
    g722 = nil
    if encoding == .g722 { g722 = G722Encoder(sampleRateHz: Limits.sampleRateHz) }
    if encoding == .opus {
      opus = try OpusEncoder(
        bitrate: control.bitrate, complexity: complexity, expectedLossPercent: control.expectedLossPercent)
      opus?.setRepair(control.repairs)
      opus?.setConstantRate(isConstantRate)
    }
  }

  /// Encodes one tick (160 samples; other legal frame lengths too) and returns the payload's length in octets.
  // HOT
  public mutating func encode(_ samples: Span<Int16>, into payload: inout MutableSpan<UInt8>) throws(OpusError) -> Int {
    switch encoding {
    case .opus: try opus?.encode(samples, into: &payload) ?? 0
    case .g722: g722?.encode(samples, into: &payload) ?? 0
    default: encoding.encodeSamples(samples, into: &payload)
    }
  }

  /// RTP clock units of `samples` samples at 8 kHz.
  public func units(ofSamples samples: Int) -> Int { samples &* Int(encoding.clockRateHz) / Limits.sampleRateHz }

  /// Follows one report of the receiver: loss that packets must cover, FEC, bitrate.
  public mutating func reported(lossFraction: Double, roundTripMilliseconds: Double?, at now: Instant) {
    let before = control
    control.reported(lossFraction: lossFraction, roundTripMilliseconds: roundTripMilliseconds, at: now)
    if control.expectedLossPercent != before.expectedLossPercent { opus?.setExpectedLoss(percent: control.expectedLossPercent) }
    if control.repairs != before.repairs { opus?.setRepair(control.repairs) }
    if control.bitrate != before.bitrate { opus?.setBitrate(control.bitrate) }
  }

  /// The most complexity there is time for, 0…10.
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
