import COpus

/// Memory that decoders need only while they decode: one for all that a thread runs, in place of 21 KB in each of them. Used by one
/// thread at a time; freed with the last decoder that was given it.
public final class DecodingScratch {
  /// A decoder's state before a packet.
  let saved: UnsafeMutableRawPointer
  /// What a packet sounds like with more octets behind it, and the packet with those.
  let trial: UnsafeMutablePointer<Int16>
  let longer: UnsafeMutablePointer<UInt8>

  public init() {
    saved = .allocate(byteCount: Int(opus_decoder_get_size(1)), alignment: 16)
    trial = .allocate(capacity: Limits.samplesPerPacket)
    longer = .allocate(capacity: Limits.opusFrameLength + 3)
  }

  deinit {
    saved.deallocate()
    trial.deallocate()
    longer.deallocate()
  }
}
