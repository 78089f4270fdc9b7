import CTrunklineOpus

/// Decodes one Opus stream to voice at the 8 or 16 kHz API rate, mono (stereo packets are mixed down), in its own 18 KB: no
/// allocation after `init`. About 8 µs of CPU per 20 ms frame of narrow band. One thread at a time.
public struct OpusDecoder: ~Copyable {
  private let state: UnsafeMutableRawPointer
  private var decoder: OpaquePointer { OpaquePointer(state) }
  /// 2.5 ms, the shortest audio that libopus conceals.
  private let grain: Int

  public init(sampleRateHz: Int = 8_000) throws(OpusError) {
    grain = sampleRateHz / 400
    state = .allocate(byteCount: Int(opus_decoder_get_size(1)), alignment: 16)
    let result = opus_decoder_init(OpaquePointer(state), Int32(clamping: sampleRateHz), 1)
    guard result == OPUS_OK else { throw OpusError(code: result) }
    _ = copus_decoder_set(decoder, OPUS_SET_GAIN_REQUEST, Limits.opusGain)
  }

  deinit { state.deallocate() }

  /// Decodes a whole packet and returns its samples (2.5…120 ms). An empty packet is refused: libopus would handle it as a loss.
  // HOT
  public mutating func decode(_ packet: Span<UInt8>, into samples: inout MutableSpan<Int16>) throws(OpusError) -> Int {
    guard !packet.isEmpty else { throw OpusError(code: OPUS_INVALID_PACKET) }
    return try run(packet, Int32(clamping: samples.count), repair: false, into: &samples)
  }

  /// Decodes the copy of the lost `duration` samples (a multiple of 2.5 ms) in the packet after the loss; without a copy
  /// libopus conceals.
  public mutating func repair(_ duration: Int, from next: Span<UInt8>, into samples: inout MutableSpan<Int16>) throws(OpusError)
    -> Int
  {
    guard !next.isEmpty else { throw OpusError(code: OPUS_INVALID_PACKET) }
    guard duration > 0, duration % grain == 0, duration <= samples.count else { throw OpusError(code: OPUS_BAD_ARG) }
    return try run(next, Int32(clamping: duration), repair: true, into: &samples)
  }

  /// Extrapolates `duration` lost samples (a multiple of 2.5 up to 120 ms), fading. In a DTX pause this is comfort noise.
  public mutating func conceal(_ duration: Int, into samples: inout MutableSpan<Int16>) throws(OpusError) -> Int {
    guard duration > 0, duration % grain == 0, duration <= samples.count else { throw OpusError(code: OPUS_BAD_ARG) }
    let result = samples.withUnsafeMutableBufferPointer { target in
      guard let base = target.baseAddress else { return OPUS_BAD_ARG }
      return opus_decode(decoder, nil, 0, base, Int32(clamping: duration), 0)
    }
    guard result > 0 else { throw OpusError(code: result) }
    return Int(result)
  }

  private func run(_ packet: Span<UInt8>, _ capacity: Int32, repair: Bool, into samples: inout MutableSpan<Int16>)
    throws(OpusError)
    -> Int
  {
    let result = packet.withUnsafeBufferPointer { source in
      samples.withUnsafeMutableBufferPointer { target in
        guard let base = target.baseAddress else { return OPUS_BAD_ARG }
        return opus_decode(decoder, source.baseAddress, Int32(clamping: source.count), base, capacity, repair ? 1 : 0)
      }
    }
    guard result > 0 else { throw OpusError(code: result) }
    return Int(result)
  }

  /// Clears the decoder's state, for another source.
  public mutating func reset() { _ = copus_decoder_reset(decoder) }
}
