/// Keys in their order, each once. Kept in blocks: an insert or removal moves at most a block and costs a binary search,
/// regardless of the number of keys, and a walk can begin after any key, even one that is not contained.
///
///     var users = OrderedKeys<String>()
///     users.insert("bob")
///     var walk = users.walk(after: "alice")
///     walk.next()                              // "bob"
///
/// A value; owned by one thread.
public struct OrderedKeys<Key: Comparable & Sendable>: Sendable {
  /// None is empty; each key of a block is smaller than each of the next.
  private var blocks: [[Key]] = []
  public private(set) var count = 0
  /// A block with more keys is split in two.
  private static var blockKeys: Int { 512 }

  public init() {}

  public var isEmpty: Bool { count == 0 }
  public var first: Key? { blocks.first?.first }

  /// False: it is already contained.
  @discardableResult public mutating func insert(_ key: Key) -> Bool {
    guard !blocks.isEmpty else {
      blocks = [[key]]
      count = 1
      return true
    }
    let block = self.block(of: key)
    let index = Self.index(of: key, in: blocks[block])
    if index < blocks[block].count, blocks[block][index] == key { return false }
    blocks[block].insert(key, at: index)
    count += 1
    if blocks[block].count > Self.blockKeys {
      let half = blocks[block].count / 2
      let upper = Array(blocks[block][half...])
      blocks[block].removeSubrange(half...)
      blocks.insert(upper, at: block + 1)
    }
    return true
  }

  /// False: it is not contained.
  @discardableResult public mutating func remove(_ key: Key) -> Bool {
    guard !blocks.isEmpty else { return false }
    let block = self.block(of: key)
    let index = Self.index(of: key, in: blocks[block])
    guard index < blocks[block].count, blocks[block][index] == key else { return false }
    blocks[block].remove(at: index)
    if blocks[block].isEmpty { blocks.remove(at: block) }
    count -= 1
    return true
  }

  /// The keys after the given one, in order; nil: from the first.
  public func walk(after key: Key?) -> Walk {
    guard let key, !blocks.isEmpty else { return Walk(blocks: blocks, block: 0, index: 0) }
    let block = self.block(of: key)
    let index = Self.index(of: key, in: blocks[block])
    let isThere = index < blocks[block].count && blocks[block][index] == key
    return Walk(blocks: blocks, block: block, index: isThere ? index + 1 : index)
  }

  /// A walk over the keys as they were when it began.
  public struct Walk: IteratorProtocol {
    fileprivate let blocks: [[Key]]
    fileprivate var block: Int
    fileprivate var index: Int

    /// The next key, without advancing.
    public mutating func peek() -> Key? {
      while block < blocks.count {
        if index < blocks[block].count { return blocks[block][index] }
        block = block + 1
        index = 0
      }
      return nil
    }

    public mutating func next() -> Key? {
      guard let key = peek() else { return nil }
      index += 1
      return key
    }
  }

  /// The last block that begins at or before the key, else the first.
  private func block(of key: Key) -> Int {
    var (low, high) = (0, blocks.count)
    while high - low > 1 {
      let middle = (low + high) / 2
      if key < blocks[middle][0] { high = middle } else { low = middle }
    }
    return low
  }

  /// Of the first key of a block that is not smaller.
  private static func index(of key: Key, in block: [Key]) -> Int {
    var (low, high) = (0, block.count)
    while low < high {
      let middle = (low + high) / 2
      if block[middle] < key { low = middle + 1 } else { high = middle }
    }
    return low
  }
}
