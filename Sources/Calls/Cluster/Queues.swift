import TrunklineBytes

/// A bounded queue of keys in the order of insertion, each once.
struct KeyQueue<Key: Hashable & Sendable>: Sendable {
  private var keys = Fifo<Key>()
  private var waiting: Set<Key> = []
  let most: Int

  init(most: Int) { self.most = most }

  var isEmpty: Bool { keys.isEmpty }
  var count: Int { keys.count }

  /// False: full.
  mutating func append(_ key: Key) -> Bool {
    guard !waiting.contains(key) else { return true }
    guard count < most else { return false }
    keys.append(key)
    waiting.insert(key)
    return true
  }

  mutating func popFirst() -> Key? {
    guard let key = keys.popFirst() else { return nil }
    waiting.remove(key)
    return key
  }
}

/// What happened within the last `Limits.recent`, `Limits.recentWrites` at most: a failover may have lost it.
struct Recent<Element: Sendable>: Sendable {
  private var elements = Fifo<(element: Element, at: Instant)>()

  mutating func append(_ element: Element, at now: Instant) {
    elements.append((element, now))
    while let first = elements.first, now - first.at > Limits.recent || elements.count > Limits.recentWrites {
      _ = elements.popFirst()
    }
  }

  /// Oldest first.
  func all(at now: Instant) -> [Element] { elements.all.filter { now - $0.at <= Limits.recent }.map(\.element) }

  mutating func removeAll() { elements.removeAll() }
}

/// A queue whose first element is removed at constant cost, on average.
struct Fifo<Element: Sendable>: Sendable {
  private var elements: [Element] = []
  private var head = 0

  var isEmpty: Bool { head == elements.count }
  var count: Int { elements.count - head }
  var first: Element? { head < elements.count ? elements[head] : nil }
  var all: ArraySlice<Element> { elements[head...] }

  mutating func append(_ element: Element) { elements.append(element) }
  mutating func append(contentsOf new: [Element]) { elements += new }

  mutating func popFirst() -> Element? {
    guard head < elements.count else { return nil }
    let element = elements[head]
    head += 1
    if head == elements.count {
      removeAll()
    } else if head > 1_024, head * 2 > elements.count {
      elements.removeFirst(head)
      head = 0
    }
    return element
  }

  mutating func removeAll() {
    elements.removeAll(keepingCapacity: true)
    head = 0
  }
}
