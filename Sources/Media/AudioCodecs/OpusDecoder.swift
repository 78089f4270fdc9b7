import COpus

/// One voice stream from Opus at the 8 kHz API rate, mono (stereo packets are mixed down), in its own 18 KB: no allocation after
/// `init`. About 8 µs of CPU per 20 ms frame of narrow band. One thread at a time.
public struct OpusDecoder: ~Copyable {
  private let state: UnsafeMutableRawPointer
  // Kept for its memory, which the three below are.
  private let scratch: DecodingScratch
  private let saved: UnsafeMutableRawPointer
  private let trial: UnsafeMutablePointer<Int16>
  private let longer: UnsafeMutablePointer<UInt8>
  private let stateBytes: Int
  private var decoder: OpaquePointer { OpaquePointer(state) }

  /// - Parameter scratch: of the thread that decodes; nothing is kept there between two calls.
  public init(scratch: DecodingScratch = DecodingScratch()) throws(OpusError) {
    stateBytes = Int(opus_decoder_get_size(1))
    state = .allocate(byteCount: stateBytes, alignment: 16)
    self.scratch = scratch
    (saved, trial, longer) = (scratch.saved, scratch.trial, scratch.longer)
    let result = opus_decoder_init(OpaquePointer(state), Int32(Limits.sampleRateHz), 1)
    guard result == OPUS_OK else { throw OpusError(code: result) }
    _ = copus_decoder_set(decoder, OPUS_SET_GAIN_REQUEST, Limits.opusGain)
  }

  deinit { state.deallocate() }

  /// Decodes a whole packet and returns its samples (20…960). An empty packet is refused: libopus would take it for a loss.
  // HOT
  public mutating func decode(_ packet: Span<UInt8>, into samples: inout MutableSpan<Int16>) throws(OpusError) -> Int {
    guard !packet.isEmpty else { throw OpusError(code: OPUS_INVALID_PACKET) }
    return try run(packet, Int32(clamping: samples.count), repair: false, into: &samples)
  }

  /// Decodes like the other, but refuses a packet that is louder than `alarm` (mean square) and that no encoder can have made; the
  /// decoder is then as if it had not come.
  ///
  /// An encoder's range coder ends in a frame's last octet: what stands behind it is never looked at. Random octets end too
  /// early, and the decoder takes the rest for a CELT frame (RFC 6716 §4.5.1), or too late, and it reads on. So the audio is the same
  /// with one more octet (or two, as zeros at the end are not sent) if the frame is an encoder's, and of 100 others in 4. CELT
  /// alone uses all octets there are: of its packets nothing is known. Costs 18 KB of copying, and two decodings where it is louder.
  // HOT
  public mutating func decode(_ packet: Span<UInt8>, into samples: inout MutableSpan<Int16>, alarm: Float) throws(OpusError)
    -> Int
  {
    saved.copyMemory(from: state, byteCount: stateBytes)
    let count: Int
    do throws(OpusError) { count = try decode(packet, into: &samples) } catch {
      restore()
      throw error
    }
    let power = Float(LevelMeter.meanSquare(samples.span.extracting(0..<count))) * 1_073_741_824
    guard power > alarm, OpusPacket.isOneSILKFrame(packet), packet.count <= Limits.opusFrameLength else { return count }
    // Where it sounds the same, the decoder is behind the packet as it was before the trial.
    if sounds(packet, with: (0xa5, 0), 1, like: samples.span.extracting(0..<count)) { return count }
    guard sounds(packet, with: (0, 0xa5), 2, like: samples.span.extracting(0..<count)) else {
      restore()
      throw OpusError(code: OPUS_INVALID_PACKET)
    }
    return count
  }

  /// From the saved state, the packet with `count` octets behind it sounds like `expected`.
  private func sounds(_ packet: Span<UInt8>, with octets: (UInt8, UInt8), _ count: Int, like expected: Span<Int16>) -> Bool {
    restore()
    for index in 0..<packet.count { longer[index] = packet[index] }
    (longer[packet.count], longer[packet.count + 1]) = octets
    let length = opus_decode(
      decoder, longer, Int32(clamping: packet.count + count), trial, Int32(clamping: Limits.samplesPerPacket), 0)
    guard Int(length) == expected.count else { return false }
    for index in 0..<expected.count where trial[index] != expected[index] { return false }
    return true
  }

  private func restore() { state.copyMemory(from: saved, byteCount: stateBytes) }

  /// Decodes the copy of the lost `duration` samples (a multiple of 20) that the packet after the loss carries; where it carries
  /// none, libopus conceals.
  public mutating func repair(_ duration: Int, from next: Span<UInt8>, into samples: inout MutableSpan<Int16>) throws(OpusError)
    -> Int
  {
    guard !next.isEmpty else { throw OpusError(code: OPUS_INVALID_PACKET) }
    guard duration > 0, duration % 20 == 0, duration <= samples.count else { throw OpusError(code: OPUS_BAD_ARG) }
    return try run(next, Int32(clamping: duration), repair: true, into: &samples)
  }

  /// Extrapolates `duration` lost samples (a multiple of 20 up to 960); fades by itself. In a DTX pause this is comfort noise.
  public mutating func conceal(_ duration: Int, into samples: inout MutableSpan<Int16>) throws(OpusError) -> Int {
    guard duration > 0, duration % 20 == 0, duration <= samples.count else { throw OpusError(code: OPUS_BAD_ARG) }
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

  /// Forgets the past, for another source.
  public mutating func reset() { _ = copus_decoder_reset(decoder) }
}
