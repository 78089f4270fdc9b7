enum Limits {
  /// Longer texts are no telephone numbers, whatever they hold; libphonenumber's own bound.
  static let textBytes = 250
  /// Digits, `*` and `#` of a number with all its prefixes.
  static let characters = 2...32
  /// National digits (ITU-T E.164 has 15 with the country code; a few plans have more inside of the country).
  static let nationalDigits = 2...17
  /// What is as short and no number of the country may be one of a private branch exchange, and stays as it is dialled.
  static let shortDigits = 6
  /// Of an extension behind a number.
  static let extensionDigits = 20
  /// A vanity number has so many letters at least: fewer are typing errors.
  static let vanityLetters = 3
  /// Steps of the backtracking machine; the longest prefix of the table takes fewer than 200.
  static let steps = 2_000
}
