import TrunklineAudioCodecs
import TrunklineRTP

/// The decoder of a stream's previous band, used for some more packets: its audio is heard, converted to the new band, until the
/// new decoder has enough state; one blended frame joins them.
struct FormerDecoder: ~Copyable {
  enum Source { case packet, repair, conceal }

  private var decoder: AudioDecoder
  private var converter = BandInterpolator()
  /// Packets, and made-up pieces between them, until the new decoder takes over: 100 ms of 20 ms packets.
  private var left = 5
  // Its decoded samples, and the same in the new band; freed in deinit.
  private let made: UnsafeMutablePointer<Int16>
  private let converted: UnsafeMutablePointer<Int16>
  private static let capacity = AudioBand.wideband.sampleRateHz / 1000 * TrunklineAudioCodecs.Limits.packetMilliseconds

  init(_ decoder: consuming AudioDecoder) {
    self.decoder = decoder
    made = .allocate(capacity: Self.capacity)
    made.initialize(repeating: 0, count: Self.capacity)
    converted = .allocate(capacity: Self.capacity)
    converted.initialize(repeating: 0, count: Self.capacity)
  }
  deinit {
    made.deallocate()
    converted.deallocate()
  }

  var isDone: Bool { left <= 0 }

  /// Converts audio that it decoded earlier; returns the number of samples in the new band.
  mutating func convert(
    _ samples: UnsafePointer<Int16>, _ count: Int, to band: AudioBand, into output: UnsafeMutablePointer<Int16>
  ) -> Int {
    converter.convert(samples, count, from: decoder.band, to: band, into: output)
  }

  /// Decodes the new decoder's input, and writes its own audio over the `length` samples that the new decoder made.
  mutating func lead(
    _ source: Source, payload: Span<UInt8>, into target: UnsafeMutablePointer<Int16>, length: Int, band: AudioBand
  ) {
    let wanted = BandConverter.count(length, from: band, to: decoder.band)
    guard wanted <= Self.capacity, length <= Self.capacity else { return left = 0 }
    var room = MutableSpan<Int16>(_unsafeStart: made, count: source == .packet ? Self.capacity : wanted)
    let count =
      switch source {
      case .packet: decoder.decode(payload, into: &room)
      case .repair: decoder.repair(wanted, from: payload, into: &room)
      case .conceal: decoder.conceal(wanted, into: &room)
      }
    left -= 1
    // A packet that one of the two decoders cannot read.
    guard count == wanted else { return left = 0 }
    converter.convert(made, wanted, from: decoder.band, to: band, into: converted)
    guard isDone else { return target.update(from: converted, count: length) }
    let blended = min(length, band.samplesPerTick)
    for index in 0..<blended {
      let mixed = Int(converted[index]) &* (blended &- index) &+ Int(target[index]) &* index
      target[index] = Int16(truncatingIfNeeded: mixed / blended)
    }
  }
}
