import Synchronization
import TrunklineBytes

/// A `FairQueue` from many threads to one without a loop: keys are served round-robin, and each has a share.
///
/// Policy: a post beyond the capacity or the key's share is refused and counted, and its sender reports that to the requester.
/// Only the reader waits.
///
///     let box = try FairMailbox<String, Request>(capacity: 32_768, share: 64)
///     box.post(request, of: user)                          // any thread; false: refused
///     while let request = box.wait(timeout: .seconds(1), heartbeat: heartbeat) { … }
public final class FairMailbox<Key: Hashable & Sendable, Element: Sendable>: Sendable {
  private struct State {
    var queue: FairQueue<Key, Element>
    /// The reader sleeps, or is about to.
    var isIdle = true
  }
  /// Wakes the reader.
  private let event: EventDescriptor
  private let state: Mutex<State>
  /// Posts refused because the box was full or the key's share was used.
  public let refused = Counter()
  /// The largest number of elements ever queued.
  public let highWater = Gauge()

  public init(capacity: Int, share: Int) throws(SystemError) {
    event = try EventDescriptor()
    state = Mutex(State(queue: FairQueue(capacity: capacity, share: share)))
  }

  /// Any thread. False: the element was refused. `isExempt`: see `FairQueue.append`.
  @discardableResult public func post(_ element: Element, of key: Key, isExempt: Bool = false) -> Bool {
    let (isUsed, count, wakes) = state.withLock { state in
      guard state.queue.append(element, of: key, isExempt: isExempt) else { return (false, 0, false) }
      defer { state.isIdle = false }
      return (true, state.queue.count, state.isIdle)
    }
    guard isUsed else {
      refused.increment()
      return false
    }
    highWater.raise(to: Int64(count))
    if wakes { event.signal() }
    return true
  }

  /// The reader: dequeues the next element; nil if the box is empty.
  public func next() -> Element? { state.withLock { $0.queue.next() } }

  /// The reader: sleeps until an element is queued or `timeout` has passed, and dequeues the next one. `heartbeat`, the reader's,
  /// begins a step with each element, and waits while the reader sleeps.
  public func wait(timeout: Duration? = nil, heartbeat: Heartbeat? = nil) -> Element? {
    if let element = next() {
      heartbeat?.woke()
      return element
    }
    event.clear()
    let isEmpty = state.withLock { state in
      state.isIdle = state.queue.isEmpty
      return state.isIdle
    }
    if isEmpty {
      let milliseconds = timeout.map { Int32(clamping: max(0, ($0.nanoseconds + 999_999) / 1_000_000)) } ?? -1
      heartbeat?.waits()
      _ = event.wait(milliseconds: milliseconds)
    }
    heartbeat?.woke()
    return next()
  }

  /// Elements queued now; for gauges.
  public var depth: Int { state.withLock { $0.queue.count } }

  /// This box's metrics; see `MailboxReading.families`.
  public func reading(_ name: String) -> MailboxReading {
    MailboxReading(name: name, depth: { self.depth }, highWater: highWater, refused: refused)
  }
}
