/// How national numbers of one country are written, so that they differ from international ones.
///
/// ```swift
/// let germany = NumberingPlan(callingCode: 49, trunkPrefix: "0")
/// let number = PhoneNumber("030 1234567", plan: germany)?.value  // 49301234567
/// ```
public struct NumberingPlan: Sendable, Hashable {
  /// 1…999: 49, 1, 380.
  public let callingCode: Int
  /// The digits before a national number that are dropped after the calling code: "0" in most of Europe, "1" in North America,
  /// nil in Italy or Spain, where a number's first digit stays.
  public let trunkPrefix: String?
  /// What is dialled instead of "+": "00", in North America "011". The first that matches is used.
  public let internationalPrefixes: [String]

  /// Nil for a calling code out of 1…999, or prefixes that are not 1 to 5 digits.
  public init?(callingCode: Int, trunkPrefix: String? = nil, internationalPrefixes: [String] = ["00"]) {
    let prefixes = internationalPrefixes + (trunkPrefix.map { [$0] } ?? [])
    guard (1...999).contains(callingCode),
      prefixes.allSatisfy({ (1...5).contains($0.utf8.count) && $0.utf8.allSatisfy { (0x30...0x39).contains($0) } })
    else { return nil }
    (self.callingCode, self.trunkPrefix, self.internationalPrefixes) = (callingCode, trunkPrefix, internationalPrefixes)
  }
}
