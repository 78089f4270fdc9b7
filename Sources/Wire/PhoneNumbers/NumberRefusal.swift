/// Why a text is no number that can be called. `description` is for the person who dialled it.
public enum NumberRefusal: Error, Sendable, Equatable, CustomStringConvertible {
  /// No digits, fewer than two, or a text that is none, such as a name.
  case notANumber
  /// A character that no number has: digits of other scripts, a second `+`, `*` or `#` inside of a number.
  case character
  /// Letters in a number whose subscriber has none.
  case letters
  /// An ISDN subaddress (`;isub=`), which no trunk carries.
  case subaddress
  /// No region has this country code.
  case noSuchCode
  case tooLong
  case tooShort
  /// Not as many digits as numbers of the region have.
  case length(region: String)
  /// A subscriber's number without its area code.
  case local(region: String)
  /// A national number, where the trunks are of several countries and the user has none.
  case whichCountry
  /// A parameter that cannot be understood.
  case parameter
  /// The table of numbering plans is damaged.
  case noTable

  public var description: String {
    switch self {
    case .notANumber: "not a telephone number"
    case .character: "a character that no telephone number has"
    case .letters: "letters, where numbers have none: dial digits"
    case .subaddress: "an ISDN subaddress cannot be called"
    case .noSuchCode: "no region has this country code"
    case .tooLong: "too long for a telephone number"
    case .tooShort: "too short for a telephone number"
    case .length(let region): "no number of \(region) has as many digits"
    case .local(let region): "a local number: dial it with the area code, as from another town of \(region)"
    case .whichCountry: "of which country? dial it with + and the country code"
    case .parameter: "a parameter that is not understood"
    case .noTable: "the table of numbering plans is damaged"
    }
  }

  /// The text is not a number, such as a user's id.
  public var isOtherText: Bool { [.notANumber, .character, .letters].contains(self) }
}
