import PhoneNumbers

extension NumberRules {
  /// The ways in which a trunk may read a number that the rules of `outgoing` have rewritten, if they differ from the number: as
  /// an international one (`00`, and as in the trunk's country and the number's), or as a national one. A rule that strips `+1`
  /// makes `004930…` of `+1004930…`, which no carrier reads as a number in North America.
  ///
  ///     NumberRules(outgoing: [.init(prefix: "+1", strip: 2)]).readings(of: "+1004930123456")               // ["+4930123456"]
  ///     NumberRules(outgoing: [.init(prefix: "+", strip: 1, add: "00")]).readings(of: "+4930123456")        // []
  ///
  /// Empty if no rule rewrites the number: the number sent is the one that was checked. A carrier that expects E.164 without `+`,
  /// and a private branch exchange's own numbers, have no other reading here.
  public func readings(of number: String) -> [String] {
    guard let (written, rest) = written(number) else { return [] }
    let countries = [country, NumberPlan(of: number)].compactMap(\.self)
    // If the carrier's own digits come first (`9` for an outside line), the digits after them are read instead.
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

  private static func readings(_ text: String, _ countries: [NumberPlan]) -> [String] {
    if text.hasPrefix("+") { return [text] }
    // A carrier accepts 00 anywhere.
    let whole = countries.compactMap { $0.withoutInternational(text) } + (text.hasPrefix("00") ? [String(text.dropFirst(2))] : [])
    guard whole.isEmpty else { return Set(whole).sorted().map { "+" + $0 } }
    return countries.compactMap { country in country.withoutNational(text).map { "+" + country.code + $0 } }
  }
}
