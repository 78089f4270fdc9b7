/// A telephone number as the Call Directory accepts it: country code and subscriber's digits as one integer, without "+" (E.164).
///
/// ```swift
/// let numbers = [
///   PhoneNumber("+1 (555) 000-9999")?.value,  // 15550009999
///   PhoneNumber("0049 30 1234567")?.value,  // 49301234567
///   PhoneNumber("+44 (0)20 7946 0018")?.value,  // 442079460018
///   PhoneNumber("020 7946 0018")?.value,  // nil: which country?
/// ]
/// ```
///
/// 7 to 15 digits; the first is not 0, because no country code begins with it. Numbers compare by value, which is the order of iOS.
public struct PhoneNumber: Sendable, Hashable, Comparable, CustomStringConvertible {
  /// Country code and subscriber's digits.
  public let value: Int64
  /// The values that 7 to 15 digits can have.
  public static let range: ClosedRange<Int64> = 1_000_000...999_999_999_999_999
  /// A longer text is not a telephone number, whatever it contains.
  static let maximumScalars = 64

  /// Country code and digits as an integer; nil out of `range`.
  public init?(_ value: Int64) {
    guard Self.range.contains(value) else { return nil }
    self.value = value
  }

  /// Parses a text as people and address books write it. Nil for a text that is not certainly a number:
  ///
  /// | text | read as |
  /// |---|---|
  /// | `+` at the start | international |
  /// | the plan's international prefix (`00` without a plan) | international |
  /// | anything else | national: trunk prefix off, calling code before; nil without a plan |
  /// | spaces, `-`, `.`, `/`, parentheses, no-break and zero-width characters, marks of direction | left out |
  /// | `(0)` inside of an international number | left out: it is dialled inside of the country only |
  /// | `(0)` inside of another number | nil: the digits before it may or may not be a country code |
  /// | full-width digits, plus, hyphen, parentheses (Japanese keyboards) | as their ASCII forms |
  /// | digits of other scripts, letters, `,` `;` `*` `#`, a second `+` | nil |
  ///
  /// Cost: one pass, no allocation beyond 16 digits.
  public init?(_ text: String, plan: NumberingPlan? = nil) {
    var reader = PhoneNumberReader()
    guard text.utf8.count <= Self.maximumScalars * 4 else { return nil }
    for scalar in text.unicodeScalars { guard reader.append(scalar) else { return nil } }
    guard let digits = reader.international(plan) else { return nil }
    guard (7...15).contains(digits.count), let first = digits.first, first != 0 else { return nil }
    value = digits.reduce(0) { $0 * 10 + Int64($1) }
  }

  public static func < (left: PhoneNumber, right: PhoneNumber) -> Bool { left.value < right.value }
  /// "+" and the digits.
  public var description: String { "+\(value)" }
}

/// Collects the digits of a text, character by character.
struct PhoneNumberReader {
  private var digits: [UInt8] = []
  private var hasPlus = false
  private var scalars = 0
  /// Index of the digit after an open parenthesis.
  private var opened: Int?
  /// Index of a 0 that is alone in parentheses, after other digits.
  private var optionalZero: Int?

  /// False: the text is not a number.
  mutating func append(_ scalar: Unicode.Scalar) -> Bool {
    scalars += 1
    guard scalars <= PhoneNumber.maximumScalars else { return false }
    switch Self.plain(scalar) {
    case 0x30...0x39:
      digits.append(UInt8(truncatingIfNeeded: Self.plain(scalar) - 0x30))
      return digits.count <= 24  // a national number with prefixes; E.164's 15 are checked at the end
    case 0x2B:  // +
      guard !hasPlus, digits.isEmpty else { return false }
      hasPlus = true
    case 0x28:  // (
      guard opened == nil else { return false }
      opened = digits.count
    case 0x29:  // )
      guard let start = opened else { return false }
      opened = nil
      guard start > 0, digits.count == start + 1, digits[start] == 0 else { break }
      guard optionalZero == nil else { return false }
      optionalZero = start
    case 0x20: break
    default: return false
    }
    return true
  }

  /// ASCII for full-width forms; a space for separators; other characters unchanged.
  private static func plain(_ scalar: Unicode.Scalar) -> UInt32 {
    switch scalar.value {
    case 0xFF10...0xFF19, 0xFF0B, 0xFF08, 0xFF09: scalar.value - 0xFEE0
    case 0x2D, 0x2E, 0x2F, 0x09, 0xA0, 0x3000, 0xFF0D, 0xFF0E, 0xFEFF, 0x2060, 0x2212: 0x20
    case 0x2000...0x200F, 0x2010...0x2015, 0x202A...0x202F, 0x2066...0x2069: 0x20
    default: scalar.value
    }
  }

  /// Country code and digits; nil if the country is unknown, or a parenthesis is open.
  func international(_ plan: NumberingPlan?) -> [UInt8]? {
    guard opened == nil, !digits.isEmpty else { return nil }
    var whole = digits
    if let optionalZero { whole.remove(at: optionalZero) }
    if hasPlus { return whole }
    for prefix in plan?.internationalPrefixes ?? ["00"] {
      if let rest = Self.without(prefix, whole) { return rest }
    }
    guard let plan, optionalZero == nil else { return nil }
    let national = plan.trunkPrefix.flatMap { Self.without($0, digits) } ?? digits
    guard !national.isEmpty else { return nil }
    return String(plan.callingCode).utf8.map { $0 - 0x30 } + national
  }

  private static func without(_ prefix: String, _ digits: [UInt8]) -> [UInt8]? {
    let prefix = prefix.utf8.map { $0 &- 0x30 }
    return digits.starts(with: prefix) ? Array(digits.dropFirst(prefix.count)) : nil
  }
}
