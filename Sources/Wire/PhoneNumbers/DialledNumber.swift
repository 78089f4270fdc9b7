/// A number that a user, a program or a trunk's REFER has dialled, in the one spelling that routes, `allow`, limits, records and
/// trunks use. Only this parser makes one, and every number that is sent to a trunk is one.
///
///     let germany = NumberPlan(country: "DE")
///     try DialledNumber("030 123456", in: germany).text          // "+4930123456"
///     try DialledNumber("0011 49 30 123456", in: NumberPlan(country: "AU")).text  // "+4930123456"
///     try DialledNumber("112", in: germany).kind                 // .emergency
///     try DialledNumber("1-800-FLOWERS", in: NumberPlan(country: "US")).text  // "+18003569377"
///     try DialledNumber("030 123456", in: nil).text              // "030123456": of which country?
///
/// Costs about 1 µs; any thread.
public struct DialledNumber: Sendable, Hashable {
  public enum Kind: Sendable {
    /// E.164, `+` and digits.
    case international
    /// Of the region, or of those that the operator names.
    case emergency
    /// A short number of the region, such as 115.
    case short
    /// Digits of a private branch exchange, `*21#`, or a number where no country is known.
    case asDialled
  }

  public let text: String
  public let kind: Kind
  /// Digits after the number that are for the callee, not for a trunk; nil: none.
  public let extensionDigits: String?

  /// - Parameters:
  ///   - plan: the numbering plan where it is dialled; nil: not known, so that only text that begins with `+` is read as a number
  ///     of a country.
  ///   - emergency: further emergency numbers, compared as dialled.
  ///   - isOneCountry: false: digits without `+` could be of several countries, and are refused.
  public init(
    _ text: String, in plan: NumberPlan?, emergency: Set<String> = [], isOneCountry: Bool = true
  ) throws(NumberRefusal) {
    guard let table = PlanTable.shared else { throw .noTable }
    let written = try NumberText(text)
    extensionDigits = written.extensionDigits
    if Self.isEmergency(written, plan, emergency) {
      (self.text, kind) = (written.asDialled, .emergency)
      return
    }
    if written.hasSymbols {
      guard written.beginsWithSymbol || plan == nil else { throw .character }
      (self.text, kind) = (written.asDialled, .asDialled)
      return
    }
    if !written.isInternational, plan == nil || Self.isShort(written, plan, table) {
      guard written.letters == 0 else { throw .letters }
      guard isOneCountry || written.digits.count <= Limits.shortDigits else { throw .whichCountry }
      (self.text, kind) = (written.asDialled, plan == nil ? .asDialled : .short)
      return
    }
    let mayBeExtension = written.letters == 0 && !written.isInternational && written.digits.count <= Limits.shortDigits
    let reading: PlanTable.Reading
    do {
      reading = try Self.read(written, plan, table)
    } catch {
      guard mayBeExtension else { throw error }
      (self.text, kind) = (written.asDialled, .asDialled)
      return
    }
    if mayBeExtension, !reading.isInternational, table.validMarks(reading.national, reading.region).isEmpty {
      (self.text, kind) = (written.asDialled, .asDialled)
      return
    }
    if written.letters > 0 {
      let marks = table.validMarks(reading.national, reading.region)
      guard table.regions[reading.region].code == 1 ? !marks.isEmpty : !marks.isDisjoint(with: .vanity) else { throw .letters }
    }
    self.text = try Self.international(reading, table)
    kind = .international
  }

  private static func read(_ written: NumberText, _ plan: NumberPlan?, _ table: PlanTable) throws(NumberRefusal)
    -> PlanTable.Reading
  {
    guard let plan, !written.isInternational else { return try table.read(international: written.digits[...]) }
    return try table.read(written.digits[...], as: plan)
  }

  /// E.164; throws where no number of the region has as many digits.
  private static func international(_ reading: PlanTable.Reading, _ table: PlanTable) throws(NumberRefusal) -> String {
    let region = table.regions[reading.region]
    switch table.length(reading.national, reading.region) {
    case .possible where table.isSettled(reading): break
    case .possible: throw .length(region: region.name)
    case .local: throw .local(region: region.name)
    case .tooLong: throw .tooLong
    case .tooShort: throw .tooShort
    case .between: throw .length(region: region.name)
    }
    var out: [UInt8] = [UInt8(ascii: "+")]
    out.reserveCapacity(24)
    for divisor in [100, 10, 1] as [UInt16] where region.code >= divisor { out.append(UInt8(region.code / divisor % 10) + 48) }
    for digit in reading.national { out.append(digit + 48) }
    return String(decoding: out, as: UTF8.self)
  }

  /// Also with the `+` that some dialling pads add before every number.
  private static func isEmergency(_ written: NumberText, _ plan: NumberPlan?, _ emergency: Set<String>) -> Bool {
    guard written.letters == 0, !written.hasSymbols else { return false }
    if written.digits.count <= Limits.shortDigits, plan?.isEmergency(written.digits) ?? false { return true }
    guard !emergency.isEmpty else { return false }
    let plain = written.asDialled
    return emergency.contains(plain) || written.isInternational && emergency.contains("+" + plain)
  }

  private static func isShort(_ written: NumberText, _ plan: NumberPlan?, _ table: PlanTable) -> Bool {
    guard let plan else { return false }
    return table.marks(short: written.digits, plan.index).contains(.short)
  }
}
