import Synchronization

/// Samples from one thread to one other: neither waits, allocates or locks. What does not fit is refused, what is not there is not read.
///
/// One thread writes, one reads; the rest of the type says nothing about which.
public final class AudioRing: @unchecked Sendable {
  // Unchecked: `samples` is written between `head` and `tail` + capacity by the writer only and read between `tail` and `head` by the reader
  // only; the acquiring and releasing pairs of the two counters order that.
  private let samples: UnsafeMutablePointer<Int16>
  /// Samples that fit.
  public let capacity: Int
  private let head = Atomic<Int>(0)
  private let tail = Atomic<Int>(0)

  /// - Parameter capacity: samples; a power of two is made of it.
  public init(capacity: Int) {
    var size = 64
    while size < capacity, size < 1 << 20 { size *= 2 }
    self.capacity = size
    samples = .allocate(capacity: size)
    samples.initialize(repeating: 0, count: size)
  }
  deinit { samples.deallocate() }

  /// Samples that wait. From either thread.
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

  /// Reader: throws away what waits.
  public func drain() { tail.store(head.load(ordering: .acquiring), ordering: .releasing) }
}
