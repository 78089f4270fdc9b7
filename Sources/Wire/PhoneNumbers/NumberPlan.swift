/// How numbers are dialled in a region: what `country` of trunks and users names.
///
///     NumberPlan(country: "DE")         // by ISO 3166-1
///     NumberPlan(country: "49")         // the same: by calling code, of several regions the main one
///     NumberPlan(country: "1")?.region  // "US"
///
/// A value of a few words; read from any thread.
public struct NumberPlan: Sendable, Equatable {
  /// Of `PlanTable.shared`.
  let index: Int
  /// What is dialled in place of `+`, if the operator says it; empty: nothing is. Nil: as in the region.
  public var international: String?
  /// What is dialled before a national number, if the operator says it; empty: nothing is. Nil: as in the region.
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

  /// Of a number with `+`, by its calling code. Nil for anything else.
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

  /// Exactly such a number of the region.
  public func isEmergency(_ number: String) -> Bool {
    let digits = number.utf8.map { $0 &- 48 }
    return digits.count <= Limits.shortDigits && digits.allSatisfy { $0 < 10 } && isEmergency(digits)
  }
  func isEmergency(_ digits: [UInt8]) -> Bool {
    PlanTable.shared?.marks(short: digits, index).contains(.emergency) ?? false
  }

  /// What follows the international prefix in digits; nil: they do not begin with it.
  public func withoutInternational(_ text: some StringProtocol) -> String? {
    let digits = text.utf8.map { $0 &- 48 }
    guard digits.allSatisfy({ $0 < 10 }), let length = internationalPrefix(of: digits[...]), length < digits.count else {
      return nil
    }
    return String(text.dropFirst(length))
  }

  /// The national number behind the national prefix; nil: the text does not begin with it.
  public func withoutNational(_ text: some StringProtocol) -> String? {
    guard let prefix = national ?? usualNational, !prefix.isEmpty, text.hasPrefix(prefix) else { return nil }
    return String(text.dropFirst(prefix.count))
  }

  /// A number of a trunk as E.164; what is none, is short or can never ring stays as it is.
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

  /// How many digits the international prefix has that a number begins with. A zero behind it is none of a country code.
  func internationalPrefix(of digits: ArraySlice<UInt8>) -> Int? {
    if let international {
      return !international.isEmpty && digits.starts(with: international.utf8.map { $0 &- 48 }) ? international.utf8.count : nil
    }
    guard let table = PlanTable.shared, let match = table.match(table.regions[index].international, digits) else { return nil }
    return digits.dropFirst(match.end).first == 0 ? nil : match.end
  }

  /// Whether some calling code begins like `+49…`, or the other way round.
  public static func mayBegin(_ prefix: String) -> Bool {
    let digits = prefix.utf8.dropFirst().map { $0 &- 48 }
    guard prefix.hasPrefix("+"), digits.allSatisfy({ $0 < 10 }), let table = PlanTable.shared else { return false }
    if digits.isEmpty || table.code(of: digits) != nil { return true }
    let text = prefix.dropFirst()
    return table.regions.contains { String($0.code).hasPrefix(text) }
  }

  /// Of this version of PyPI's phonenumbers; empty: the table is damaged.
  public static var version: String { PlanTable.shared?.version ?? "" }
}
