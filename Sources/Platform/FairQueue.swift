/// A bounded queue whose keys (a user, a token, an address) take turns: one element of each in a round, however many one key has. A key has a share
/// of the room. Elements of one key keep their order.
///
///     var queue = FairQueue<String, Work>(capacity: 4_096, share: 16)
///     queue.append(work, of: "alice")          // false: no room, or alice has her share
///     queue.next()                             // the first of whoever's turn it is
///
/// A value without lock. Costs a dictionary access each way.
public struct FairQueue<Key: Hashable & Sendable, Element> {
  private struct Line {
    var elements: [Element] = []
    var head = 0
    var count: Int { elements.count - head }

    mutating func removeFirst() -> Element {
      let element = elements[head]
      head += 1
      // never more than twice as many slots as elements, and a few
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
  /// Keys with elements, each once, the next one first.
  private var order = FairQueueRing<Key>()

  public init(capacity: Int, share: Int) {
    precondition(capacity > 0 && share > 0)
    (self.capacity, self.share) = (capacity, share)
  }

  public var isEmpty: Bool { count == 0 }
  public func count(of key: Key) -> Int { lines[key]?.count ?? 0 }

  /// False: it was not taken. `isExempt`: neither the share nor the room counts, for what its sender cannot do without and sends no more of than
  /// there is of something else that is bounded.
  @discardableResult public mutating func append(_ element: Element, of key: Key, isExempt: Bool = false) -> Bool {
    let waiting = count(of: key)
    guard isExempt || (count < capacity && waiting < share) else { return false }
    lines[key, default: Line()].elements.append(element)
    if waiting == 0 { order.append(key) }
    count += 1
    return true
  }

  /// Nil: it is empty.
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
