import PhoneNumbers
import TrunklineBytes

/// Numbers of users in packed arrays, for more than a configuration file can list: a hash of the digits leads to the number, the
/// number to its user. About 40 bytes a number beside the users' ids. A look-up in either direction costs one probe or a few, and
/// allocates only the strings that it returns. A value; read from any thread.
///
///     var builder = NumberTable.Builder()
///     try builder.add(number: "+15551230001", user: "alice")
///     let table = try builder.finish()
///     table.owner(of: "0015551230001")      // (user: "alice", number: "+15551230001")
///     table.numbers(of: "alice")            // ["+15551230001"]
public struct NumberTable: Sendable {
  /// Why a number is refused; `description` explains it to the author of the list.
  public enum Fault: Error, Equatable, CustomStringConvertible {
    case notANumber(String)
    case noUser
    case userTooLong
    /// The user's id holds a control character.
    case userMalformed
    /// `first`: the index of the `add` that had it, from 0.
    case twice(String, first: Int)
    case tooManyOfUser(String)
    case full(limit: Int)

    public var description: String {
      switch self {
      case .notANumber(let text):
        "\"\(text.prefix(40))\" is not a number: 1 to \(Limits.tableDigits) digits, with + in front of a country code"
      case .noUser: "the user is missing"
      case .userTooLong: "the user's id is longer than \(Limits.tableUserBytes) bytes"
      case .userMalformed: "the user's id has a control character"
      case .twice(let number, _): "\(number) is given twice"
      case .tooManyOfUser(let user): "\(user) has more than \(Limits.tableNumbersPerUser) numbers"
      case .full(let limit): "more than \(limit) numbers"
      }
    }
  }

  /// Maximum count of numbers of a table.
  public static let limit = Limits.tableNumbers

  /// Digits and their count by number, in the order in which they were added; the top bit: written with `+`.
  fileprivate var keys: [UInt64] = []
  fileprivate var userOfKey: [UInt32] = []
  /// Numbers of a user together: those of user `u` are `byUser[firstOfUser[u]..<firstOfUser[u + 1]]`, in the order in which they
  /// were added.
  fileprivate var byUser: [UInt32] = []
  fileprivate var firstOfUser: [UInt32] = [0]
  /// The ids one after another: that of user `u` is `ids[startOfID[u]..<startOfID[u + 1]]`.
  fileprivate var ids: [UInt8] = []
  fileprivate var startOfID: [UInt32] = [0]
  /// Open addressing; 0: free, else an index plus 1.
  fileprivate var keySlots: [UInt32] = []
  fileprivate var userSlots: [UInt32] = []

  public init() {}

  /// Count of numbers.
  public var count: Int { keys.count }
  public var userCount: Int { startOfID.count - 1 }
  public var isEmpty: Bool { keys.isEmpty }
  /// Bytes of memory of all arrays.
  public var bytes: Int {
    keys.capacity * 8 + ids.capacity
      + 4
      * (userOfKey.capacity + byUser.capacity + firstOfUser.capacity + startOfID.capacity + keySlots.capacity + userSlots.capacity)
  }

  /// The user of a number, and its spelling in the list; compared by `Routing.canonical`.
  public func owner(of number: String) -> (user: String, number: String)? {
    guard let key = Self.key(number), let index = find(key) else { return nil }
    return (user(Int(userOfKey[index])), Self.text(keys[index]))
  }

  /// In the order of the list; empty for a user without one.
  public func numbers(of user: String) -> [String] {
    guard let index = self.index(of: user) else { return [] }
    return byUser[Int(firstOfUser[index])..<Int(firstOfUser[index + 1])].map { Self.text(keys[Int($0)]) }
  }

  public func contains(user: String) -> Bool { index(of: user) != nil }

  /// Every number in the order of the list; `body` gets the number as written and its user.
  public func forEach(_ body: (String, String) throws -> Void) rethrows {
    for index in keys.indices { try body(Self.text(keys[index]), user(Int(userOfKey[index]))) }
  }

  private func user(_ index: Int) -> String {
    String(decoding: ids[Int(startOfID[index])..<Int(startOfID[index + 1])], as: UTF8.self)
  }
}

extension NumberTable {
  /// Builds a table from a list, in its order. A fault changes nothing.
  public struct Builder {
    private var table = NumberTable()
    private var numbersOfUser: [UInt16] = []
    private let limit: Int

    /// - Parameter limit: of numbers; tests set a lower one, as two million take a minute without optimisation.
    public init(limit: Int = NumberTable.limit) { self.limit = limit }
    public var count: Int { table.count }

    public mutating func add(number: some StringProtocol, user: some StringProtocol) throws(Fault) {
      let number = Self.spelling(number)
      guard let key = NumberTable.key(number) else { throw .notANumber(number) }
      let id = user.utf8
      guard !id.isEmpty else { throw .noUser }
      guard id.count <= Limits.tableUserBytes else { throw .userTooLong }
      guard id.allSatisfy({ $0 >= 32 && $0 != 127 }) else { throw .userMalformed }
      guard table.count < limit else { throw .full(limit: limit) }
      if let first = table.find(key) { throw .twice(number, first: first) }
      let known = table.index(of: user)
      if let known, Int(numbersOfUser[known]) >= Limits.tableNumbersPerUser { throw .tooManyOfUser(String(user)) }
      let index = known ?? table.append(user: id)
      if known == nil { numbersOfUser.append(0) }
      numbersOfUser[index] += 1
      let hasPlus = number.utf8.first == UInt8(ascii: "+") || number.hasPrefix("00")
      table.append(hasPlus ? key | NumberTable.plus : key, of: index)
    }

    /// After `+` a number may be written as people write it: `+49 (0)30 123456`. Without `+` it could be of any country, and
    /// stays as it is.
    private static func spelling(_ number: some StringProtocol) -> String {
      let text = String(number)
      guard text.utf8.first == UInt8(ascii: "+"), !text.utf8.dropFirst().allSatisfy({ (48...57).contains($0) }),
        let read = try? DialledNumber(text, in: nil), read.kind == .international
      else { return text }
      return read.text
    }

    /// The table; the builder is empty afterwards.
    public mutating func finish() -> NumberTable {
      var out = table
      table = NumberTable()
      var next: [UInt32] = [0]
      next.reserveCapacity(numbersOfUser.count + 1)
      for count in numbersOfUser { next.append(next[next.count - 1] + UInt32(count)) }
      out.firstOfUser = next
      out.byUser = [UInt32](repeating: 0, count: out.keys.count)
      for (number, user) in out.userOfKey.enumerated() {
        out.byUser[Int(next[Int(user)])] = UInt32(number)
        next[Int(user)] += 1
      }
      numbersOfUser = []
      // Arrays that grew have up to twice the capacity that they need; a copy has only what it contains.
      out.keys = Self.tight(out.keys)
      out.userOfKey = Self.tight(out.userOfKey)
      out.ids = Self.tight(out.ids)
      out.startOfID = Self.tight(out.startOfID)
      return out
    }

    private static func tight<Element>(_ array: [Element]) -> [Element] {
      [Element](unsafeUninitializedCapacity: array.count) { buffer, count in
        _ = buffer.initialize(from: array)
        count = array.count
      }
    }
  }
}

// MARK: keys and slots

extension NumberTable {
  fileprivate static let plus: UInt64 = 1 << 63

  /// The canonical digits and their count, so that `089` and `89` differ; nil: not 1 to 15 digits.
  fileprivate static func key(_ number: some StringProtocol) -> UInt64? {
    var (value, count): (UInt64, UInt64) = (0, 0)
    var digits = number.utf8[...]
    if digits.first == UInt8(ascii: "+") {
      digits = digits.dropFirst()
    } else if digits.starts(with: [48, 48]) {
      digits = digits.dropFirst(2)
    }
    for byte in digits {
      guard (48...57).contains(byte), count < UInt64(Limits.tableDigits) else { return nil }
      value = value * 10 + UInt64(byte - 48)
      count += 1
    }
    return count == 0 ? nil : value << 4 | count
  }

  /// The number that `key` was made from.
  private static func text(_ key: UInt64) -> String {
    let digits = String((key & ~plus) >> 4)
    let missing = Int(key & 15) - digits.utf8.count
    return (key & plus != 0 ? "+" : "") + String(repeating: "0", count: max(0, missing)) + digits
  }

  /// The finalizer of MurmurHash3: numbers of one block differ in their last digits only.
  private static func hash(_ key: UInt64) -> Int {
    var hash = key
    hash = (hash ^ hash >> 33) &* 0xff51_afd7_ed55_8ccd
    hash = (hash ^ hash >> 33) &* 0xc4ce_b9fe_1a85_ec53
    return Int(truncatingIfNeeded: (hash ^ hash >> 33) & 0x7fff_ffff)
  }

  /// FNV-1a, then as above.
  private static func hash(_ id: some Sequence<UInt8>) -> Int {
    Self.hash(FNV1a(id).value)
  }

  fileprivate func find(_ key: UInt64) -> Int? {
    guard !keySlots.isEmpty else { return nil }
    var slot = Self.hash(key) & (keySlots.count - 1)
    while keySlots[slot] != 0 {
      let index = Int(keySlots[slot] - 1)
      if keys[index] & ~Self.plus == key { return index }
      slot = (slot + 1) & (keySlots.count - 1)
    }
    return nil
  }

  fileprivate func index(of user: some StringProtocol) -> Int? {
    guard !userSlots.isEmpty else { return nil }
    var slot = Self.hash(user.utf8) & (userSlots.count - 1)
    while userSlots[slot] != 0 {
      let index = Int(userSlots[slot] - 1)
      let range = Int(startOfID[index])..<Int(startOfID[index + 1])
      if range.count == user.utf8.count, ids[range].elementsEqual(user.utf8) { return index }
      slot = (slot + 1) & (userSlots.count - 1)
    }
    return nil
  }

  fileprivate mutating func append(_ key: UInt64, of user: Int) {
    keys.append(key)
    userOfKey.append(UInt32(user))
    if Self.isFull(keySlots, keys.count) {
      keySlots = Self.slots(keys.count) { Self.hash(keys[$0] & ~Self.plus) }
    } else {
      Self.put(keys.count - 1, hash: Self.hash(key & ~Self.plus), in: &keySlots)
    }
  }

  fileprivate mutating func append(user id: some Collection<UInt8>) -> Int {
    ids.append(contentsOf: id)
    startOfID.append(UInt32(ids.count))
    if Self.isFull(userSlots, userCount) {
      userSlots = Self.slots(userCount) { Self.hash(ids[Int(startOfID[$0])..<Int(startOfID[$0 + 1])]) }
    } else {
      Self.put(userCount - 1, hash: Self.hash(id), in: &userSlots)
    }
    return userCount - 1
  }

  /// At most three of four slots are used.
  private static func isFull(_ slots: [UInt32], _ count: Int) -> Bool { 4 * count > 3 * slots.count }

  private static func slots(_ count: Int, _ hash: (Int) -> Int) -> [UInt32] {
    var size = 16
    while 4 * count > 3 * size { size *= 2 }
    var out = [UInt32](repeating: 0, count: size)
    for index in 0..<count { put(index, hash: hash(index), in: &out) }
    return out
  }

  private static func put(_ index: Int, hash: Int, in slots: inout [UInt32]) {
    var slot = hash & (slots.count - 1)
    while slots[slot] != 0 { slot = (slot + 1) & (slots.count - 1) }
    slots[slot] = UInt32(index + 1)
  }
}
