import AudioCodecs
import RTP

/// The decoder of the band that a stream had before, in use for some packets more: what it makes is heard, in the new band, until the new
/// decoder knows enough of the stream, and one frame of both joins them.
struct FormerDecoder: ~Copyable {
  enum Source { case packet, repair, conceal }

  private var decoder: AudioDecoder
  private var converter = BandInterpolator()
  /// Packets, and what is made up between them, until the new decoder takes over: 100 ms of packets of 20.
  private var left = 5
  // What it makes of a packet, and the same in the new band; freed in deinit.
  private let made: UnsafeMutablePointer<Int16>
  private let converted: UnsafeMutablePointer<Int16>
  private static let capacity = AudioBand.wideband.sampleRateHz / 1000 * AudioCodecs.Limits.packetMilliseconds

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

  /// Audio that it has made before; returns how many samples that is in the new band.
  mutating func convert(
    _ samples: UnsafePointer<Int16>, _ count: Int, to band: AudioBand, into output: UnsafeMutablePointer<Int16>
  ) -> Int {
    converter.convert(samples, count, from: decoder.band, to: band, into: output)
  }

  /// Takes what the new decoder was given, and puts its own audio in place of the `length` samples that one made.
  mutating func lead(
    _ source: Source, _ payload: Span<UInt8>, _ target: UnsafeMutablePointer<Int16>, _ length: Int, _ band: AudioBand
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
    // A packet that one of them cannot read.
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
