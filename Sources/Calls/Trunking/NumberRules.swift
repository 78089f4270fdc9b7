public import PhoneNumbers

/// How a trunk writes telephone numbers, in both directions.
public struct NumberRules: Sendable, Equatable {
  /// Numbers that begin with `prefix` lose their first `strip` characters and get `add` before the rest.
  public struct Rule: Sendable, Equatable {
    public var prefix: String
    public var strip: Int
    public var add: String
    public init(prefix: String, strip: Int = 0, add: String = "") { (self.prefix, self.strip, self.add) = (prefix, strip, add) }
  }
  /// Of numbers that the trunk sends us (caller and called): the first that fits.
  public var incoming: [Rule]
  /// Of the called number of our INVITEs.
  public var outgoing: [Rule]
  /// Of the caller's number of our INVITEs.
  public var caller: [Rule]
  /// Where the trunk is, to make E.164 of numbers as they are dialled there.
  public var country: NumberPlan?

  public init(incoming: [Rule] = [], outgoing: [Rule] = [], caller: [Rule] = [], country: NumberPlan? = nil) {
    (self.incoming, self.outgoing, self.caller, self.country) = (incoming, outgoing, caller, country)
  }

  /// A number of the trunk's, by its rules and then as E.164 if the country is known.
  public func received(_ number: String) -> String {
    let number = Self.apply(incoming, number)
    return country?.received(number) ?? number
  }
  public func called(_ number: String) -> String { Self.apply(outgoing, number) }
  public func calling(_ number: String) -> String { Self.apply(caller, number) }

  static func apply(_ rules: [Rule], _ number: String) -> String {
    guard let rule = rules.first(where: { number.hasPrefix($0.prefix) }) else { return number }
    return rule.add + number.dropFirst(max(0, rule.strip))
  }
}
