import PhoneNumbers

/// A directory's entry for one number.
public struct Contact: Sendable, Hashable {
  /// Country code and digits as one integer (E.164 without `+`), 7 to 15 digits.
  public var number: Int64
  /// The text on the call screen; nil: the number is not identified.
  public var label: String?
  /// Calls from this number ring no device.
  public var isBlocked: Bool
  public init(_ number: Int64, label: String? = nil, isBlocked: Bool = false) {
    (self.number, self.label, self.isBlocked) = (number, label, isBlocked)
  }
}

/// A list of contacts in memory, ascending and each number once: an import replaces or changes a directory with it.
///
/// Costs 18 bytes per contact and the bytes of its label.
public struct ContactList: Sendable {
  /// Why a contact is refused.
  public enum Fault: Error, Sendable, Equatable, CustomStringConvertible {
    case notANumber(String)
    /// The indices of both contacts, in the order of arrival from 0.
    case twice(Int64, first: Int, second: Int)
    case nothingSaid(Int64)
    case unknownKind(String)
    case labelTooLong
    case labelMalformed
    case full(limit: Int)

    public var description: String {
      switch self {
      case .notANumber(let text): "\"\(text.prefix(40))\" is not a number: + and 7 to 15 digits, country code first"
      case .twice(let number, _, _): "+\(number) occurs twice"
      case .nothingSaid(let number): "+\(number) is neither blocked nor has a label"
      case .unknownKind(let text): "\"\(text.prefix(40))\" is not a kind of contact"
      case .labelTooLong: "the label has more than \(Limits.labelBytes) bytes"
      case .labelMalformed: "the label holds a control character"
      case .full(let limit): "more than \(limit) contacts"
      }
    }
  }

  /// After `finish`, in ascending order.
  private(set) var numbers: [Int64] = []
  private var flags: [UInt8] = []
  /// Ends of the labels in `bytes`, in the order of arrival: contact i has those from `ends[i - 1]`.
  private var ends: [UInt32] = []
  private var bytes: [UInt8] = []
  private var order: [UInt32] = []
  private let limit: Int

  private static let blocked: UInt8 = 1
  private static let removed: UInt8 = 2

  /// - Parameter limit: the maximum of contacts; tests use a lower one.
  public init(limit: Int = Limits.contacts) { self.limit = limit }

  public var count: Int { numbers.count }

  /// Any order. A contact must have a label, a block or both, unless it `isRemoved` from the directory.
  public mutating func add(_ contact: Contact, isRemoved: Bool = false) throws(Fault) {
    guard isRemoved || contact.isBlocked || contact.label?.isEmpty == false else { throw .nothingSaid(contact.number) }
    let label = isRemoved ? "" : contact.label ?? ""
    guard label.utf8.count <= Limits.labelBytes else { throw .labelTooLong }
    guard label.utf8.allSatisfy({ $0 >= 32 && $0 != 127 }) else { throw .labelMalformed }
    guard numbers.count < limit else { throw .full(limit: limit) }
    numbers.append(contact.number)
    flags.append(isRemoved ? Self.removed : contact.isBlocked ? Self.blocked : 0)
    bytes.append(contentsOf: label.utf8)
    ends.append(UInt32(bytes.count))
  }

  /// Sorts the list; call it once, after the last `add`. Throws `twice`.
  public mutating func finish() throws(Fault) {
    order = (0..<UInt32(numbers.count)).map { $0 }
    let isSorted = zip(numbers, numbers.dropFirst()).allSatisfy { $0 < $1 }
    guard !isSorted else { return }
    order.sort { [numbers] in (numbers[Int($0)], $0) < (numbers[Int($1)], $1) }
    for (left, right) in zip(order, order.dropFirst()) where numbers[Int(left)] == numbers[Int(right)] {
      throw .twice(numbers[Int(left)], first: Int(left), second: Int(right))
    }
  }

  /// The contact at a position in the order of numbers, and whether it is to be removed.
  public func contact(_ position: Int) -> (contact: Contact, isRemoved: Bool) {
    let index = Int(order[position])
    let start = index == 0 ? 0 : Int(ends[index - 1])
    let label = start == Int(ends[index]) ? nil : String(decoding: bytes[start..<Int(ends[index])], as: UTF8.self)
    return (Contact(numbers[index], label: label, isBlocked: flags[index] == Self.blocked), flags[index] == Self.removed)
  }

  /// Parses a number of a file: an optional `+`, and 7 to 15 digits of which the first is not 0; after `+` also with usual
  /// separators.
  public static func number(_ text: some StringProtocol) throws(Fault) -> Int64 {
    var digits = text.utf8[...]
    if digits.first == UInt8(ascii: "+"), !digits.dropFirst().allSatisfy({ (48...57).contains($0) }) {
      guard let read = try? DialledNumber(String(text), in: nil), read.kind == .international else {
        throw .notANumber(String(text))
      }
      return try number(read.text)
    }
    if digits.first == UInt8(ascii: "+") { digits = digits.dropFirst() }
    guard (7...15).contains(digits.count), digits.first != UInt8(ascii: "0") else { throw .notANumber(String(text)) }
    var value: Int64 = 0
    for byte in digits {
      guard (48...57).contains(byte) else { throw .notANumber(String(text)) }
      value = value * 10 + Int64(byte - 48)
    }
    return value
  }
}
