import TrunklineAudioCodecs

/// Samples between decoder and tick: a first-in first-out queue of fixed capacity whose content always begins at the start of its
/// memory, so that time-scale modification can work in place. Moving the rest down costs a copy of at most a packet per tick.
struct DecodedAudio: ~Copyable {
  let capacity: Int
  private(set) var count = 0
  private let samples: UnsafeMutablePointer<Int16>

  init(capacity: Int) {
    self.capacity = capacity
    samples = .allocate(capacity: capacity)
    samples.initialize(repeating: 0, count: capacity)
  }

  deinit { samples.deallocate() }

  // Invariant of this file: 0 ≤ count ≤ capacity, and every access below stays in 0..<capacity.

  /// The unused part, to be written and then added by `append`. Valid while this value lives; a pointer, because a span could not
  /// be held while another property of the owner is mutated.
  var free: UnsafeMutableBufferPointer<Int16> { UnsafeMutableBufferPointer(start: samples + count, count: capacity &- count) }

  /// Adds what was written to `free`.
  mutating func append(_ written: Int) { count = min(capacity, count &+ max(0, written)) }

  /// Moves the oldest samples out; missing ones are silence.
  // HOT
  mutating func pop(into output: inout MutableSpan<Int16>) {
    let length = min(output.count, count)
    output.withUnsafeMutableBufferPointer { output in
      guard let base = output.baseAddress else { return }
      base.update(from: samples, count: length)
      (base + length).update(repeating: 0, count: output.count &- length)
    }
    count &-= length
    if count > 0 { samples.update(from: samples + length, count: count) }
  }

  /// Lets `modify` change the content in place and return the new count.
  mutating func modify(_ modify: (_ samples: UnsafeMutablePointer<Int16>, _ count: Int) -> Int) {
    count = max(0, min(capacity, modify(samples, count)))
  }

  func withSamples(_ read: (_ samples: UnsafePointer<Int16>, _ count: Int) -> Void) { read(UnsafePointer(samples), count) }

  /// Whether the content has a mean square below `power`.
  func isQuieter(than power: Float) -> Bool {
    Float(SampleSums.energy(samples, count)) < power * Float(max(1, count))
  }

  mutating func removeAll() { count = 0 }
}
