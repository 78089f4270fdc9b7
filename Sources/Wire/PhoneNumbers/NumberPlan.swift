/// How numbers are dialled in a region: the value of `country` of trunks and users.
///
///     NumberPlan(country: "DE")         // by ISO 3166-1
///     NumberPlan(country: "49")         // the same, by calling code: the main one of several regions
///     NumberPlan(country: "1")?.region  // "US"
///
/// A value of a few words; read from any thread.
public struct NumberPlan: Sendable, Equatable {
  /// Index in `PlanTable.shared`.
  let index: Int
  /// The prefix dialled instead of `+`, if the operator configured it; empty: none. Nil: the region's.
  public var international: String?
  /// The prefix dialled before a national number, if the operator configured it; empty: none. Nil: the region's.
  public var national: String?

  /// Two letters, or a calling code without `+`. Nil: there is no such region.
  public init?(country: String) {
    guard let table = PlanTable.shared else { return nil }
    if let code = Int(country), String(code) == country {
      guard let index = table.region(code: code), table.regions[index].isRegion else { return nil }
      self.index = index
    } else {
      guard let index = table.region(country.uppercased()) else { return nil }
      self.index = index
    }
  }

  /// The plan of a number with `+`, by its calling code. Nil for anything else.
  public init?(of number: String) {
    let digits = number.utf8.dropFirst().prefix(3).map { $0 &- 48 }
    guard number.hasPrefix("+"), digits.allSatisfy({ $0 < 10 }), let found = PlanTable.shared?.code(of: digits) else {
      return nil
    }
    index = found.region
  }

  /// ISO 3166-1, two letters.
  public var region: String { row?.name ?? "" }
  /// The calling code, without `+`.
  public var code: String { row.map { String($0.code) } ?? "" }
  /// All regions of the calling code, the main one first.
  public var sharing: [String] {
    guard let table = PlanTable.shared, let main = table.region(code: Int(table.regions[index].code)) else { return [] }
    return table.regions(sharing: main).map { table.regions[$0].name }
  }

  /// Whether the number is exactly an emergency number of the region.
  public func isEmergency(_ number: String) -> Bool {
    let digits = number.utf8.map { $0 &- 48 }
    return digits.count <= Limits.shortDigits && digits.allSatisfy { $0 < 10 } && isEmergency(digits)
  }
  func isEmergency(_ digits: [UInt8]) -> Bool {
    PlanTable.shared?.marks(short: digits, index).contains(.emergency) ?? false
  }

  /// The digits after the international prefix; nil: the text does not begin with it.
  public func withoutInternational(_ text: some StringProtocol) -> String? {
    let digits = text.utf8.map { $0 &- 48 }
    guard digits.allSatisfy({ $0 < 10 }), let length = internationalPrefix(of: digits[...]), length < digits.count else {
      return nil
    }
    return String(text.dropFirst(length))
  }

  /// The national number after the national prefix; nil: the text does not begin with it.
  public func withoutNational(_ text: some StringProtocol) -> String? {
    guard let prefix = national ?? usualNational, !prefix.isEmpty, text.hasPrefix(prefix) else { return nil }
    return String(text.dropFirst(prefix.count))
  }

  /// Converts a trunk's number to E.164; a text that is not a number, is a short number or can never ring stays unchanged.
  public func received(_ number: String) -> String {
    guard number.utf8.allSatisfy({ (48...57).contains($0) || $0 == 43 }),
      let read = try? DialledNumber(number, in: self), read.kind == .international
    else { return number }
    return read.text
  }

  private var usualNational: String? {
    guard let table = PlanTable.shared, let offset = table.regions[index].nationalPrefix else { return nil }
    return String(decoding: table.text(offset), as: UTF8.self)
  }

  private var row: PlanTable.Region? { PlanTable.shared?.regions[index] }

  /// Length of the international prefix of a number. Nil if there is none, or if a zero follows, which begins no country code.
  func internationalPrefix(of digits: ArraySlice<UInt8>) -> Int? {
    if let international {
      return !international.isEmpty && digits.starts(with: international.utf8.map { $0 &- 48 }) ? international.utf8.count : nil
    }
    guard let table = PlanTable.shared, let match = table.match(table.regions[index].international, digits) else { return nil }
    return digits.dropFirst(match.end).first == 0 ? nil : match.end
  }

  /// Whether a calling code begins with the text (`+49…`), or the text with a calling code.
  public static func mayBegin(_ prefix: String) -> Bool {
    let digits = prefix.utf8.dropFirst().map { $0 &- 48 }
    guard prefix.hasPrefix("+"), digits.allSatisfy({ $0 < 10 }), let table = PlanTable.shared else { return false }
    if digits.isEmpty || table.code(of: digits) != nil { return true }
    let text = prefix.dropFirst()
    return table.regions.contains { String($0.code).hasPrefix(text) }
  }

  /// Version of PyPI's phonenumbers that the table was made from; empty: the table is damaged.
  public static var version: String { PlanTable.shared?.version ?? "" }
}
