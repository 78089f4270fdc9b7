/// Reads digits as a country code and a national number, as libphonenumber's `parse` does.
extension PlanTable {
  struct Reading {
    /// The main region of the country code.
    var region: Int
    var national: ArraySlice<UInt8>
    /// With `+` or the international prefix.
    var isInternational: Bool
  }

  enum Length: Equatable { case possible, local, tooShort, tooLong, between }

  func length(_ digits: some Collection<UInt8>, _ region: Int) -> Length {
    let (count, row) = (digits.count, regions[region])
    guard count < 32 else { return .tooLong }
    let bit = UInt32(1) << UInt32(count)
    if row.localLengths & bit != 0 { return .local }
    if row.lengths & bit != 0 { return .possible }
    if count < row.lengths.trailingZeroBitCount { return .tooShort }
    return count > 31 - row.lengths.leadingZeroBitCount ? .tooLong : .between
  }

  /// Reads the digits behind a `+` or an international prefix.
  func read(international digits: ArraySlice<UInt8>) throws(NumberRefusal) -> Reading {
    guard digits.count > Limits.nationalDigits.lowerBound else { throw .tooShort }
    guard let (region, length) = code(of: digits) else { throw .noSuchCode }
    return try finish(digits.dropFirst(length), region, nil, isInternational: true)
  }

  /// Reads digits as dialled in a region.
  func read(_ digits: ArraySlice<UInt8>, as plan: NumberPlan) throws(NumberRefusal) -> Reading {
    if let prefix = plan.internationalPrefix(of: digits) { return try read(international: digits.dropFirst(prefix)) }
    let own = regions[plan.index].code
    if let (main, length) = code(of: digits), regions[main].code == own {
      let rest = withoutPrefix(digits.dropFirst(length), plan.index, plan.national)
      let isNational = marks(national: digits, plan.index).contains(.general)
      if !isNational && marks(national: rest, plan.index).contains(.general) || self.length(digits, plan.index) == .tooLong {
        return try finish(rest, main, nil, isInternational: false)
      }
    }
    return try finish(digits, plan.index, plan.national, isInternational: false)
  }

  private func finish(
    _ digits: ArraySlice<UInt8>, _ region: Int, _ prefix: String?, isInternational: Bool
  ) throws(NumberRefusal) -> Reading {
    guard digits.count >= Limits.nationalDigits.lowerBound else { throw .tooShort }
    var national = digits
    let rest = withoutPrefix(digits, region, prefix)
    if [.possible, .tooLong].contains(length(rest, region)) { national = rest }
    guard national.count >= Limits.nationalDigits.lowerBound else { throw .tooShort }
    guard national.count <= Limits.nationalDigits.upperBound else { throw .tooLong }
    let main = self.region(code: Int(regions[region].code)) ?? region
    return Reading(region: main, national: national, isInternational: isInternational)
  }

  /// Whether the national number is in its one spelling: not if it still begins with a prefix and would be read as another
  /// number.
  func isSettled(_ reading: Reading) -> Bool {
    let rest = withoutPrefix(reading.national, reading.region, nil)
    return rest == reading.national || ![.possible, .tooLong].contains(length(rest, reading.region))
  }

  /// The number without the national prefix, as the region transforms it. The prefix stays if the number is valid with it and not
  /// without it.
  private func withoutPrefix(_ digits: ArraySlice<UInt8>, _ index: Int, _ written: String?) -> ArraySlice<UInt8> {
    if let written {
      return !written.isEmpty && digits.starts(with: written.utf8.map { $0 &- 48 })
        ? digits.dropFirst(written.utf8.count) : digits
    }
    let row = regions[index]
    guard !digits.isEmpty, let match = match(row.prefix, digits) else { return digits }
    var rest = digits.dropFirst(match.end)
    if let transform = row.transform, match.group(row.groups) != nil {
      var whole: [UInt8] = []
      var isGroup = false
      for character in text(transform) {
        if character == UInt8(ascii: "$") {
          isGroup = true
        } else if isGroup {
          isGroup = false
          let group = match.group(Int(character - 48)) ?? 0..<0
          whole += digits.dropFirst(group.lowerBound).prefix(group.count)
        } else {
          whole.append(character - 48)
        }
      }
      rest = (whole + rest)[...]
    }
    return marks(national: digits, index).contains(.general) && !marks(national: rest, index).contains(.general) ? digits : rest
  }

  /// The marks of a national number in the region of its code that has it; empty: it is not valid in any.
  func validMarks(_ national: ArraySlice<UInt8>, _ main: Int) -> Marks {
    for index in regions(sharing: main) {
      let marks = marks(national: national, index)
      if let leading = regions[index].leadingDigits {
        if match(leading, national) != nil { return marks.intersection(.anyType) }
      } else if !marks.isDisjoint(with: .anyType) {
        return marks.intersection(.anyType)
      }
    }
    return []
  }
}
