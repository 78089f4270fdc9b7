/// A bounded queue that serves its keys (a user, a token, an address) round-robin: one element of each per round, however many a
/// key has. A key has a share of the capacity. Elements of one key keep their order.
///
///     var queue = FairQueue<String, Work>(capacity: 4_096, share: 16)
///     queue.append(work, of: "alice")          // false: the queue is full, or alice's share is used
///     queue.next()                             // the first element of the next key
///
/// A value without lock. Append and removal cost a dictionary access each.
public struct FairQueue<Key: Hashable & Sendable, Element> {
  private struct Line {
    var elements: [Element] = []
    var head = 0
    var count: Int { elements.count - head }

    mutating func removeFirst() -> Element {
      let element = elements[head]
      head += 1
      // the array has at most twice as many slots as elements, and a few
      if head > 16, head * 2 > elements.count {
        elements.removeFirst(head)
        head = 0
      }
      return element
    }
  }

  public let capacity: Int
  public let share: Int
  public private(set) var count = 0
  private var lines: [Key: Line] = [:]
  /// Keys with elements, each once, in order of service.
  private var order = FairQueueRing<Key>()

  public init(capacity: Int, share: Int) {
    precondition(capacity > 0 && share > 0)
    (self.capacity, self.share) = (capacity, share)
  }

  public var isEmpty: Bool { count == 0 }
  public func count(of key: Key) -> Int { lines[key]?.count ?? 0 }

  /// False: the element was refused. `isExempt`: ignores share and capacity, for elements that are indispensable to the sender
  /// and bounded by another limit.
  @discardableResult public mutating func append(_ element: Element, of key: Key, isExempt: Bool = false) -> Bool {
    let waiting = count(of: key)
    guard isExempt || (count < capacity && waiting < share) else { return false }
    lines[key, default: Line()].elements.append(element)
    if waiting == 0 { order.append(key) }
    count += 1
    return true
  }

  /// Dequeues the next element; nil if the queue is empty.
  public mutating func next() -> Element? {
    guard let key = order.removeFirst(), let element = lines[key]?.removeFirst() else { return nil }
    count -= 1
    if lines[key]?.count == 0 { lines[key] = nil } else { order.append(key) }
    return element
  }
}

/// First in, first out.
private struct FairQueueRing<Key> {
  private var keys: [Key] = []
  private var head = 0

  mutating func append(_ key: Key) { keys.append(key) }

  mutating func removeFirst() -> Key? {
    guard head < keys.count else { return nil }
    let key = keys[head]
    head += 1
    if head > 16, head * 2 > keys.count {
      keys.removeFirst(head)
      head = 0
    }
    return key
  }
}
