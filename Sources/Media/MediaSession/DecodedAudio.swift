import AudioCodecs

/// Samples on their way from decoder to tick: a first-in first-out of fixed capacity that always begins at its memory's
/// beginning, so that time-scale modification can work on it in place. Moving the rest down costs a copy of at most a packet per
/// tick.
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

  /// The unused part, to be written and then taken in by `append`. Valid while this value lives; a pointer, as a span of it could
  /// not be held while another property of the owner is mutated.
  var free: UnsafeMutableBufferPointer<Int16> { UnsafeMutableBufferPointer(start: samples + count, count: capacity &- count) }

  /// Takes in what was written to `free`.
  mutating func append(_ written: Int) { count = min(capacity, count &+ max(0, written)) }

  /// Moves the oldest samples out; what is missing is silence.
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

  /// All of it has a mean square below `power`.
  func isQuieter(than power: Float) -> Bool {
    Float(SampleSums.energy(samples, count)) < power * Float(max(1, count))
  }

  mutating func removeAll() { count = 0 }
}
