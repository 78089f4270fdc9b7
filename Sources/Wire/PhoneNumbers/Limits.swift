enum Limits {
  /// Longer texts are not telephone numbers, whatever they contain; libphonenumber's own bound.
  static let textBytes = 250
  /// Digits, `*` and `#` of a number with all its prefixes.
  static let characters = 2...32
  /// National digits (ITU-T E.164 has 15 with the country code; a few plans have more inside of the country).
  static let nationalDigits = 2...17
  /// A number this short that the country does not have may belong to a private branch exchange, and stays as it is dialled.
  static let shortDigits = 6
  /// Digits of an extension after a number.
  static let extensionDigits = 20
  /// The least letters of a vanity number: fewer are typing errors.
  static let vanityLetters = 3
  /// Steps of the backtracking machine; the longest prefix of the table needs fewer than 200.
  static let steps = 2_000
}
