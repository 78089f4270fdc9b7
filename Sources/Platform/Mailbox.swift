import Synchronization
import TrunklineBytes

/// A bounded queue from many threads to one.
///
/// Policy: a post to a full box is refused and counted; the sender decides what follows (drop, end the call, try later). No
/// element is ever overwritten and no sender waits. The reader is woken once per batch: only a post that finds the box idle (the
/// last `drain` emptied it) calls `wake`, by default an eventfd.
///
///     let box = try Mailbox<Input>(capacity: 4096)
///     box.post(.packet)                       // any thread; false when full
///     loop.register(box.event.fd, .readable) { _ in box.drain(into: &batch) }   // the reader
///
/// A post costs an uncontended lock and no allocation by the box.
public final class Mailbox<Element: Sendable>: Sendable {
  /// Memory for `capacity` elements, of which the `count` from `head` on, wrapping around, are initialized. It is never cleared
  /// as a whole and an emptied ring starts at its beginning again: pages beyond the high-water mark are never touched, so a large
  /// bound costs no memory.
  private struct Ring: ~Copyable {
    let slots: UnsafeMutablePointer<Element>
    let capacity: Int
    var head = 0
    var count = 0
    var idle = true
    /// The reader sleeps, with a time-out.
    var includesDeferred = false

    init(capacity: Int) {
      self.capacity = capacity
      slots = .allocate(capacity: capacity)
    }

    deinit {
      for offset in 0..<count { (slots + (head + offset) % capacity).deinitialize(count: 1) }
      slots.deallocate()
    }

    mutating func append(_ element: Element) {
      precondition(count < capacity)
      var index = head &+ count
      if index >= capacity { index &-= capacity }
      (slots + index).initialize(to: element)
      count &+= 1
    }

    mutating func removeFirst() -> Element {
      precondition(count > 0)
      let element = (slots + head).move()
      head &+= 1
      count &-= 1
      if head == capacity || count == 0 { head = 0 }
      return element
    }
  }

  /// Wakes the reader, unless `wake` replaces it.
  public let event: EventDescriptor
  public let capacity: Int
  /// Posts refused because the box was full.
  public let refused = Counter()
  /// The largest number of elements ever queued.
  public let highWater = Gauge()
  private let ring: Mutex<Ring>
  private let waker: (@Sendable () -> Void)?

  /// `wake` replaces the eventfd for a reader that sleeps elsewhere; it is called outside the lock.
  public init(capacity: Int, wake: (@Sendable () -> Void)? = nil) throws(SystemError) {
    precondition(capacity > 0)
    self.capacity = capacity
    waker = wake
    event = try EventDescriptor()
    ring = Mutex(Ring(capacity: capacity))
  }

  /// Any thread. False if the box is full: the element was refused.
  @discardableResult public func post(_ element: Element, _ urgency: MailboxUrgency = .now) -> Bool {
    let (used, count, wasIdle) = ring.withLock { ring -> (Bool, Int, Bool) in
      guard ring.count < capacity else { return (false, ring.count, false) }
      ring.append(element)
      let wakes =
        switch urgency {
        case .now: ring.idle
        case .gathered: false
        case .deferred: ring.idle && !ring.includesDeferred
        }
      if wakes { ring.idle = false }
      return (true, ring.count, wakes)
    }
    guard used else {
      refused.increment()
      return false
    }
    highWater.raise(to: Int64(count))
    if wasIdle { signal() }
    return true
  }

  /// After `gathered` posts: wakes the reader if elements are queued and it was not woken. Any thread; a lock, and seldom a
  /// system call.
  public func wake() {
    let wakes = ring.withLock { ring -> Bool in
      guard ring.idle, ring.count > 0 else { return false }
      ring.idle = false
      return true
    }
    if wakes { signal() }
  }

  /// The reader's thread: appends up to `limit` elements in the order of their posts and returns how many. Elements left in the
  /// box wake the reader again.
  @discardableResult public func drain(into batch: inout [Element], limit: Int = .max) -> Int {
    event.clear()
    let (used, left) = ring.withLock { ring -> (Int, Int) in
      let count = min(ring.count, limit)
      for _ in 0..<count { batch.append(ring.removeFirst()) }
      ring.idle = ring.count == 0
      ring.includesDeferred = false
      return (count, ring.count)
    }
    if left > 0 { signal() }
    return used
  }

  /// For a reader without a loop: sleeps until an element is queued or `timeout` has passed, then drains. With `includesDeferred`
  /// a `deferred` post does not end the sleep. `heartbeat`, the reader's, waits while the reader sleeps.
  @discardableResult public func wait(
    into batch: inout [Element], timeout: Duration? = nil, includesDeferred: Bool = false, limit: Int = .max,
    heartbeat: Heartbeat? = nil
  ) -> Int {
    precondition(!includesDeferred || timeout != nil, "a reader of deferred posts must wake by itself")
    let milliseconds = timeout.map { Int32(clamping: max(0, ($0.nanoseconds + 999_999) / 1_000_000)) } ?? -1
    if includesDeferred { ring.withLock { $0.includesDeferred = true } }
    heartbeat?.waits()
    _ = event.wait(milliseconds: milliseconds)
    heartbeat?.woke()
    return drain(into: &batch, limit: limit)
  }

  /// Elements queued now; for gauges.
  public var depth: Int { ring.withLock { $0.count } }

  private func signal() {
    if let waker { waker() } else { event.signal() }
  }
}

/// When the reader of a mailbox must see a post.
public enum MailboxUrgency: Sendable {
  case now
  /// The poster has more to post and calls `wake` then: one system call, and one thread switch, for all of them.
  case gathered
  /// Does not wake a reader that waits with `includesDeferred`: it is read after the time-out.
  case deferred
}

extension Mailbox {
  /// This box's metrics; see `MailboxReading.families`.
  public func reading(_ name: String) -> MailboxReading {
    MailboxReading(name: name, depth: { self.depth }, highWater: highWater, refused: refused)
  }
}

/// A mailbox's metrics, without its element type.
public struct MailboxReading: Sendable {
  public let name: String
  public let depth: @Sendable () -> Int
  public let highWater: Gauge
  public let refused: Counter

  /// Depth, high-water mark and refusals over all boxes of the process, with the label `mailbox`.
  public static func families(_ boxes: [MailboxReading]) -> [MetricFamily] {
    func family(_ name: String, help: String, _ kind: MetricFamily.Kind, _ value: @escaping @Sendable (MailboxReading) -> Int64)
      -> MetricFamily
    {
      MetricFamily(name: name, help: help, kind: kind, labelNames: ["mailbox"]) {
        boxes.map { MetricSample([$0.name], .integer(value($0))) }
      }
    }
    return [
      family("trunkline_mailbox_depth", help: "Messages waiting in a queue between two threads.", .gauge) { Int64($0.depth()) },
      family("trunkline_mailbox_high_water", help: "The most messages that ever waited in a queue.", .gauge) {
        $0.highWater.value
      },
      family("trunkline_mailbox_refused_total", help: "Messages refused because a queue was full.", .counter) {
        Int64(clamping: $0.refused.value)
      },
    ]
  }
}
