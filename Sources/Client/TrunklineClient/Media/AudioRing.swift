import Synchronization

/// A ring of samples from one thread to another: neither waits, allocates or locks. A write that does not fit and a read of too
/// few samples are refused.
///
/// Exactly one thread writes and one reads; they need not be any particular threads.
public final class AudioRing: @unchecked Sendable {
  // Unchecked: only the writer writes `samples`, between `head` and `tail` + capacity; only the reader reads them, between `tail`
  // and `head`; the acquiring and releasing pairs of the two counters order that.
  private let samples: UnsafeMutablePointer<Int16>
  /// Number of samples that fit.
  public let capacity: Int
  private let head = Atomic<Int>(0)
  private let tail = Atomic<Int>(0)

  /// - Parameter capacity: number of samples; rounded up to a power of two.
  public init(capacity: Int) {
    var size = 64
    while size < capacity, size < 1 << 20 { size *= 2 }
    self.capacity = size
    samples = .allocate(capacity: size)
    samples.initialize(repeating: 0, count: size)
  }
  deinit { samples.deallocate() }

  /// Number of waiting samples. Either thread.
  public var count: Int { head.load(ordering: .acquiring) - tail.load(ordering: .acquiring) }

  /// Writer: all of `source`, or nothing.
  @discardableResult public func write(_ source: Span<Int16>) -> Bool {
    let at = head.load(ordering: .relaxed)
    guard capacity - (at - tail.load(ordering: .acquiring)) >= source.count else { return false }
    for index in 0..<source.count { samples[(at + index) & (capacity - 1)] = source[index] }
    head.store(at + source.count, ordering: .releasing)
    return true
  }

  /// Reader: fills `target` whole, or not at all.
  @discardableResult public func read(into target: inout MutableSpan<Int16>) -> Bool {
    let at = tail.load(ordering: .relaxed)
    guard head.load(ordering: .acquiring) - at >= target.count else { return false }
    for index in 0..<target.count { target[index] = samples[(at + index) & (capacity - 1)] }
    tail.store(at + target.count, ordering: .releasing)
    return true
  }

  /// Reader: discards the waiting samples.
  public func drain() { tail.store(head.load(ordering: .acquiring), ordering: .releasing) }
}
