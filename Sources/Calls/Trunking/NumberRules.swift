/// How a trunk writes telephone numbers, in both directions.
public struct NumberRules: Sendable, Equatable {
  /// Numbers that begin with `prefix` lose their first `strip` characters and get `add` before the rest.
  public struct Rule: Sendable, Equatable {
    public var prefix: String
    public var strip: Int
    public var add: String
    public init(prefix: String, strip: Int = 0, add: String = "") { (self.prefix, self.strip, self.add) = (prefix, strip, add) }
  }
  /// How numbers are dialled in a country, to make E.164 of them.
  public struct Country: Sendable, Equatable {
    /// Without `+`.
    public var code: String
    /// `00`, in North America `011`.
    public var international: String
    /// `0`, in North America `1`; empty where there is none.
    public var national: String

    /// With the prefixes of the country (ITU-T Operational Bulletin, dialling procedures), if it is not as in most.
    public init(code: String) {
      self.code = code
      (international, national) =
        switch code {
        case "1": ("011", "1")
        case "7": ("810", "8")
        case "30", "34", "39", "45", "47", "48", "351", "352", "354", "356", "371", "372", "420": ("00", "")
        default: ("00", "0")
        }
    }

    /// E.164 of a number as it is dialled in the country: `0049…`, `0301…`, `49301…` and `+49301…` are one. Short numbers, and what is
    /// no number, stay as they are. `isDialled`: by a user, who writes no country code without a prefix where there is no national one.
    public func e164(_ number: String, isDialled: Bool = false) -> String {
      guard !number.hasPrefix("+"), number.utf8.count > Self.longestShortNumber,
        number.utf8.allSatisfy({ (48...57).contains($0) })
      else { return number }
      if !international.isEmpty, number.hasPrefix(international) { return "+" + number.dropFirst(international.count) }
      if !national.isEmpty, number.hasPrefix(national) { return "+" + code + number.dropFirst(national.count) }
      if number.hasPrefix(code), !(isDialled && national.isEmpty) { return "+" + number }
      return "+" + code + number
    }

    /// Emergency and service numbers have no E.164 form.
    private static let longestShortNumber = 6
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
  public func received(_ number: String) -> String {
    let number = Self.apply(incoming, number)
    return country?.e164(number) ?? number
  }
  public func called(_ number: String) -> String { Self.apply(outgoing, number) }
  public func calling(_ number: String) -> String { Self.apply(caller, number) }

  static func apply(_ rules: [Rule], _ number: String) -> String {
    guard let rule = rules.first(where: { number.hasPrefix($0.prefix) }) else { return number }
    return rule.add + number.dropFirst(max(0, rule.strip))
  }
}
