import TrunklineBytes

/// A bounded queue of keys in the order of insertion, each once.
struct KeyQueue<Key: Hashable & Sendable>: Sendable {
  private var keys = Fifo<Key>()
  private var waiting: Set<Key> = []
  let most: Int

  init(most: Int) { self.most = most }

  var isEmpty: Bool { keys.isEmpty }
  var count: Int { keys.count }

  /// Some of the keys, in their order.
  func keys(from index: Int, most: Int) -> ArraySlice<Key> { keys.all.dropFirst(index).prefix(most) }

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
  /// The number of elements that were removed so far.
  private var removed = 0

  mutating func append(_ element: Element, at now: Instant) {
    elements.append((element, now))
    while let first = elements.first, now - first.at > Limits.recent || elements.count > Limits.recentWrites {
      _ = elements.popFirst()
      removed += 1
    }
  }

  var isEmpty: Bool { elements.isEmpty }

  /// Removes the `most` oldest elements, at most, and returns those that are recent.
  mutating func pop(most: Int, at now: Instant) -> [Element] {
    var out: [Element] = []
    for _ in 0..<most {
      guard let (element, at) = elements.popFirst() else { break }
      removed += 1
      if now - at <= Limits.recent { out.append(element) }
    }
    return out
  }

  /// Oldest first: those that are recent of the `most` that follow a position (0: the first), and the position to go on from; nil:
  /// these were the last.
  func page(from position: Int, most: Int, at now: Instant) -> (elements: [Element], next: Int?) {
    let skipped = max(0, position - removed)
    let page = elements.all.dropFirst(skipped).prefix(most)
    let isLast = skipped + page.count >= elements.count
    return (page.filter { now - $0.at <= Limits.recent }.map(\.element), isLast ? nil : removed + skipped + page.count)
  }

  mutating func removeAll() {
    removed += elements.count
    elements.removeAll()
  }
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
