/// How a trunk writes telephone numbers, in both directions.
public struct NumberRules: Sendable, Equatable {
  /// Numbers that begin with `prefix` lose their first `strip` characters and get `add` before the rest.
  public struct Rule: Sendable, Equatable {
    public var prefix: String
    public var strip: Int
    public var add: String
    public init(prefix: String, strip: Int = 0, add: String = "") { (self.prefix, self.strip, self.add) = (prefix, strip, add) }
  }
  /// How numbers are dialled in the trunk's country, to make E.164 of them.
  public struct Country: Sendable, Equatable {
    /// Without `+`.
    public var code: String
    /// `00`, in North America `011`.
    public var international: String
    /// `0`, in North America `1`; empty where there is none.
    public var national: String
    public init(code: String, international: String = "00", national: String = "0") {
      (self.code, self.international, self.national) = (code, international, national)
    }
  }

  /// Of numbers that the trunk sends us (caller and called): the first that fits.
  public var incoming: [Rule]
  /// Of the called number of our INVITEs.
  public var outgoing: [Rule]
  /// Of the caller's number of our INVITEs.
  public var caller: [Rule]
  public var country: Country?

  public init(incoming: [Rule] = [], outgoing: [Rule] = [], caller: [Rule] = [], country: Country? = nil) {
    (self.incoming, self.outgoing, self.caller, self.country) = (incoming, outgoing, caller, country)
  }

  /// A number of the trunk's, by its rules and then as E.164 if the country is known.
  public func received(_ number: String) -> String { normalised(Self.apply(incoming, number)) }
  public func called(_ number: String) -> String { Self.apply(outgoing, number) }
  public func calling(_ number: String) -> String { Self.apply(caller, number) }

  static func apply(_ rules: [Rule], _ number: String) -> String {
    guard let rule = rules.first(where: { number.hasPrefix($0.prefix) }) else { return number }
    return rule.add + number.dropFirst(max(0, rule.strip))
  }

  /// E.164 of a number as it is dialled in the country: `0049…`, `0301…`, `49301…` and `+49301…` are one. Short numbers, and what is
  /// no number, stay as they are.
  private func normalised(_ number: String) -> String {
    guard let country, !number.hasPrefix("+"), number.utf8.count > Self.longestShortNumber,
      number.utf8.allSatisfy({ (48...57).contains($0) })
    else { return number }
    if !country.international.isEmpty, number.hasPrefix(country.international) {
      return "+" + number.dropFirst(country.international.count)
    }
    if !country.national.isEmpty, number.hasPrefix(country.national) {
      return "+" + country.code + number.dropFirst(country.national.count)
    }
    if number.hasPrefix(country.code) { return "+" + number }
    return "+" + country.code + number
  }

  /// Emergency and service numbers have no E.164 form.
  private static let longestShortNumber = 6
}
