import CallModel

/// Rows of the shared store that were read and are to be applied, the latest token first. A binary heap: a row costs a few
/// comparisons when it is read and when it is popped, and no step sorts all rows.
struct GrantRows: Sendable {
  /// The order of popping: the latest token first; of two with one time, the later user name.
  struct Key: Comparable, Sendable {
    let issuedAt: Int64
    let user: String
    static func < (a: Key, b: Key) -> Bool { (a.issuedAt, a.user) > (b.issuedAt, b.user) }
  }

  private var rows: [String: SharedGrant] = [:]
  /// Outdated keys stay until they are popped.
  private var heap = Heap<Key>()

  var isEmpty: Bool { rows.isEmpty }
  var count: Int { rows.count }

  /// A row that is read twice has changed meanwhile, and the later one counts.
  mutating func insert(_ row: SharedGrant) {
    rows[row.user] = row
    heap.insert(Key(issuedAt: row.issuedAt, user: row.user))
  }

  /// At most `most` rows, and no more once they have `octets`.
  mutating func pop(most: Int, octets: Int) -> [SharedGrant] {
    var (out, size) = ([SharedGrant](), 0)
    for _ in 0..<most {
      guard size < octets, let key = heap.popFirst() else { break }
      guard let row = rows[key.user], row.issuedAt == key.issuedAt else { continue }
      rows[key.user] = nil
      out.append(row)
      size += row.octets
    }
    return out
  }
}

/// A binary heap: the smallest element first. An insertion or removal costs at most two comparisons for each doubling of the
/// number of elements.
struct Heap<Element: Comparable & Sendable>: Sendable {
  private var elements: [Element] = []

  mutating func insert(_ element: Element) {
    elements.append(element)
    var child = elements.count - 1
    while child > 0, elements[child] < elements[(child - 1) / 2] {
      elements.swapAt(child, (child - 1) / 2)
      child = (child - 1) / 2
    }
  }

  mutating func popFirst() -> Element? {
    guard let last = elements.popLast() else { return nil }
    guard let first = elements.first else { return last }
    elements[0] = last
    var parent = 0
    while 2 * parent + 1 < elements.count {
      let (left, right) = (2 * parent + 1, 2 * parent + 2)
      let child = right < elements.count && elements[right] < elements[left] ? right : left
      guard elements[child] < elements[parent] else { break }
      elements.swapAt(child, parent)
      parent = child
    }
    return first
  }
}
