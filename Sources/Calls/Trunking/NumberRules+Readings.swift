extension NumberRules {
  /// How a trunk may read a number that the rules of `outgoing` have written, where it does not say what the number says: as an international
  /// one (`00`, and as in the trunk's country and the number's), or as a national one. A rule that strips `+1` makes `004930…` of
  /// `+1004930…`, which no carrier takes for a number in North America.
  ///
  ///     NumberRules(outgoing: [.init(prefix: "+1", strip: 2)]).readings(of: "+1004930123456")               // ["+4930123456"]
  ///     NumberRules(outgoing: [.init(prefix: "+", strip: 1, add: "00")]).readings(of: "+4930123456")        // []
  ///
  /// Empty where no rule writes it anew: what is sent is what was checked. A carrier that takes E.164 without `+`, and a private branch
  /// exchange's own numbers, have no other reading here.
  public func readings(of number: String) -> [String] {
    guard let (written, rest) = written(number) else { return [] }
    let countries = [country, Country(of: number)].compactMap(\.self)
    // what follows digits that are the carrier's own (`9` for an outside line) is read in their place
    let read = Self.readings(written, countries)
    let all = read.isEmpty && written != rest ? Self.readings(rest, countries) : read
    return all.contains(number) ? [] : all
  }

  /// The number as the rules write it, and without what they add; nil: no rule fits.
  public func written(_ number: String) -> (whole: String, rest: String)? {
    guard let rule = outgoing.first(where: { number.hasPrefix($0.prefix) }) else { return nil }
    let rest = String(number.dropFirst(max(0, rule.strip)))
    return (rule.add + rest, rest)
  }

  private static func readings(_ text: String, _ countries: [Country]) -> [String] {
    if text.hasPrefix("+") { return [text] }
    let prefixes = Set(["00"] + countries.map(\.international)).filter { !$0.isEmpty && text.hasPrefix($0) }
    guard prefixes.isEmpty else { return prefixes.sorted().map { "+" + text.dropFirst($0.count) } }
    return countries.filter { !$0.national.isEmpty && text.hasPrefix($0.national) }
      .map { "+" + $0.code + text.dropFirst($0.national.count) }
  }
}

extension NumberRules.Country {
  /// Of an E.164 number with `+`, by ITU-T's zones: one digit, two or three. Nil for anything else.
  init?(of number: String) {
    let digits = Array(number.utf8.dropFirst())
    guard number.hasPrefix("+"), digits.count >= 3, digits.allSatisfy({ (48...57).contains($0) }) else { return nil }
    let two = Int(digits[0] - 48) * 10 + Int(digits[1] - 48)
    let length = digits[0] == 49 || digits[0] == 55 ? 1 : Self.twoDigits.contains(two) ? 2 : 3
    self.init(code: String(number.dropFirst().prefix(length)))
  }

  private static let twoDigits: Set<Int> = [
    20, 27, 30, 31, 32, 33, 34, 36, 39, 40, 41, 43, 44, 45, 46, 47, 48, 49, 51, 52, 53, 54, 55, 56, 57, 58, 60, 61, 62, 63, 64,
    65,
    66, 81, 82, 84, 86, 90, 91, 92, 93, 94, 95, 98,
  ]
}
