import CTrunklineOpus

/// libopus returned an error: a fault of ours (encoder) or a damaged packet (decoder). The number is libopus's `OPUS_*` error.
public struct OpusError: Error, Sendable, Equatable {
  public let code: Int32
  public init(code: Int32) { self.code = code }
}

/// One voice stream to Opus at the 8 or 16 kHz API rate, mono, in its own 43 KB of memory: no allocation after `init`.
///
/// In-band FEC is on at first: with `expectedLoss` above zero each packet carries a coarse copy of the previous frame.
/// `EncoderControl` decides when. libopus's own DTX is off, because it runs the whole encoder to detect silence;
/// `SilenceDetector`, before the encoder, does not. About 142 µs of CPU per 20 ms frame at complexity 5 and 8 kHz. One thread at
/// a time.
public struct OpusEncoder: ~Copyable {
  private let state: UnsafeMutableRawPointer
  /// 120 ms.
  private let frameLimit: Int
  // One frame, amplified for the encoder; freed in deinit.
  private let louder: UnsafeMutablePointer<Int16>
  private var encoder: OpaquePointer { OpaquePointer(state) }

  /// - Parameters:
  ///   - sampleRateHz: 8000 (telephone band) or 16000 (wide band).
  ///   - bitrate: target in bit/s, variable rate.
  ///   - complexity: 0…10.
  ///   - expectedLossPercent: 0…100; how much FEC is spent.
  public init(
    sampleRateHz: Int = 8_000, bitrate: Int = 24_000, complexity: Int = 5, expectedLossPercent: Int = 5
  ) throws(OpusError) {
    state = .allocate(byteCount: Int(opus_encoder_get_size(1)), alignment: 16)
    frameLimit = sampleRateHz * 6 / 50
    louder = .allocate(capacity: frameLimit)
    let result = opus_encoder_init(OpaquePointer(state), Int32(clamping: sampleRateHz), 1, OPUS_APPLICATION_VOIP)
    guard result == OPUS_OK else { throw OpusError(code: result) }
    try set(OPUS_SET_BITRATE_REQUEST, bitrate)
    try set(OPUS_SET_COMPLEXITY_REQUEST, complexity)
    try set(OPUS_SET_VBR_REQUEST, 1)
    try set(OPUS_SET_INBAND_FEC_REQUEST, 1)
    try set(OPUS_SET_PACKET_LOSS_PERC_REQUEST, expectedLossPercent)
    try set(OPUS_SET_DTX_REQUEST, 0)
    try set(OPUS_SET_SIGNAL_REQUEST, Int(OPUS_SIGNAL_VOICE))
    try set(OPUS_SET_MAX_BANDWIDTH_REQUEST, Int(sampleRateHz > 8_000 ? OPUS_BANDWIDTH_WIDEBAND : OPUS_BANDWIDTH_NARROWBAND))
  }

  deinit {
    state.deallocate()
    louder.deallocate()
  }

  private func set(_ request: Int32, _ value: Int) throws(OpusError) {
    let result = copus_encoder_set(encoder, request, Int32(clamping: value))
    guard result == OPUS_OK else { throw OpusError(code: result) }
  }

  /// Whether a frame fades in from silence, or out to silence.
  enum Fade { case none, inwards, outwards }

  /// Encodes one frame of 2.5, 5, 10, 20, 40 or 60 ms and returns the packet's length in octets.
  // HOT
  public mutating func encode(_ samples: Span<Int16>, into packet: inout MutableSpan<UInt8>) throws(OpusError) -> Int {
    try encode(samples, .none, into: &packet)
  }

  mutating func encode(_ samples: Span<Int16>, _ fade: Fade, into packet: inout MutableSpan<UInt8>) throws(OpusError) -> Int {
    let capacity = Int32(clamping: min(packet.count, Limits.opusFrameLength))
    guard samples.count <= frameLimit else { throw OpusError(code: OPUS_BAD_ARG) }
    makeUp(samples)
    if fade != .none { apply(fade, samples.count) }
    let result = packet.withUnsafeMutableBufferPointer { target in
      guard let base = target.baseAddress else { return OPUS_BAD_ARG }
      return opus_encode(encoder, louder, Int32(clamping: samples.count), base, capacity)
    }
    guard result > 0 else { throw OpusError(code: result) }
    return Int(result)
  }

  /// Compensates the level that SILK loses, as far as the frame's peak allows.
  private func makeUp(_ samples: Span<Int16>) {
    var peak: Int32 = 1
    for index in 0..<samples.count { peak = max(peak, abs(Int32(samples[index]))) }
    let factor = min(Limits.opusMakeUp, (32_767 << 14) / peak)
    for index in 0..<samples.count {
      louder[index] = Int16(truncatingIfNeeded: (Int32(samples[index]) &* factor &+ 8192) >> 14)
    }
  }

  private func apply(_ fade: Fade, _ count: Int) {
    for index in 0..<count {
      let share = fade == .inwards ? index : count &- 1 &- index
      louder[index] = Int16(truncatingIfNeeded: Int(louder[index]) &* share / count)
    }
  }

  /// Adapts to the receiver's reports; libopus spends more on FEC the more loss it expects.
  public mutating func setExpectedLoss(percent: Int) {
    _ = copus_encoder_set(encoder, OPUS_SET_PACKET_LOSS_PERC_REQUEST, Int32(clamping: max(0, min(100, percent))))
  }

  /// Whether packets carry a copy of the previous frame.
  public mutating func setRepair(_ on: Bool) { _ = copus_encoder_set(encoder, OPUS_SET_INBAND_FEC_REQUEST, on ? 1 : 0) }

  /// True: constant rate, so that packets have one length as long as the bitrate does not change. False: variable rate.
  public mutating func setConstantRate(_ on: Bool) { _ = copus_encoder_set(encoder, OPUS_SET_VBR_REQUEST, on ? 0 : 1) }

  /// 0…10; takes effect with the next frame.
  public mutating func setComplexity(_ complexity: Int) {
    _ = copus_encoder_set(encoder, OPUS_SET_COMPLEXITY_REQUEST, Int32(clamping: max(0, min(10, complexity))))
  }

  public mutating func setBitrate(_ bitsPerSecond: Int) {
    _ = copus_encoder_set(encoder, OPUS_SET_BITRATE_REQUEST, Int32(clamping: max(6000, min(128_000, bitsPerSecond))))
  }

  /// Resets the encoder's state, for another talker on the same leg.
  public mutating func reset() { _ = copus_encoder_reset(encoder) }
}
