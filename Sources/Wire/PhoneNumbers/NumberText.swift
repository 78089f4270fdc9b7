/// A number as people write it, before it is read as one of a country: its digits, with `+` or not, and what follows them.
///
/// | text | is |
/// |---|---|
/// | digits, also full-width ones | digits |
/// | `+`, also full-width, before them | an international number |
/// | spaces, dashes, dots, slashes, brackets, `~`, zero-width characters, marks of direction | left out |
/// | `tel:` | left out |
/// | letters behind three digits | the digits of their keys |
/// | `ext. 12`, `x12`, ` #12`, `,12`, `;12`, `;ext=12` at the end | an extension |
/// | `;phone-context=+49` | put before the digits |
/// | other parameters | left out, but for `;isub=` |
/// | `*` and `#` | kept, without letters or `+` |
struct NumberText {
  /// 0 to 9.
  private(set) var digits: [UInt8] = []
  private(set) var isInternational = false
  private(set) var letters = 0
  private(set) var hasSymbols = false
  private(set) var beginsWithSymbol = false
  private(set) var extensionDigits: String?
  /// With `*` or `#`: 10 and 11 between the digits.
  private var symbols: [UInt8] = []

  /// The text to dial where it is not interpreted, in ASCII.
  var asDialled: String {
    String(decoding: (hasSymbols ? symbols : digits).map { $0 < 10 ? $0 + 48 : $0 == 10 ? 42 : 35 }, as: UTF8.self)
  }
  private var count: Int { hasSymbols ? symbols.count : digits.count }

  init(_ text: String) throws(NumberRefusal) {
    guard text.utf8.count <= Limits.textBytes else { throw .tooLong }
    digits.reserveCapacity(20)
    var rest = Substring(text).unicodeScalars
    if text.utf8.first.map({ $0 | 0x20 == 0x74 }) ?? false, text.prefix(4).lowercased() == "tel:" { rest = rest.dropFirst(4) }
    if text.utf8.contains(0x3B), let start = rest.firstIndex(of: ";") {
      let parameters = String(Substring(rest[start...]))
      rest = rest[..<start]
      try read(parameters)
    }
    try read(rest)
    guard !digits.isEmpty else { throw .notANumber }
    guard count <= Limits.characters.upperBound else { throw .tooLong }
    guard count >= Limits.characters.lowerBound else { throw .tooShort }
  }

  private mutating func read(_ scalars: Substring.UnicodeScalarView) throws(NumberRefusal) {
    var wasSeparator = false
    var index = scalars.startIndex
    while index < scalars.endIndex {
      let plain = Self.plain(scalars[index])
      switch plain {
      case 0x30...0x39:
        append(UInt8(plain - 0x30))
      case 0x2B:
        guard !isInternational, count == 0 else { throw .character }
        isInternational = true
      case 0x20: break
      case 0x2A, 0x23:
        if plain == 0x23, wasSeparator, digits.count >= 3, parseExtension(scalars[index...]) { return }
        guard !isInternational, letters == 0 else { throw .character }
        if !hasSymbols { (beginsWithSymbol, symbols) = (digits.isEmpty, digits) }
        hasSymbols = true
        symbols.append(plain == 0x2A ? 10 : 11)
      default:
        if digits.count >= 3, parseExtension(scalars[index...]) { return }
        guard let digit = Self.key(plain) else { throw plain == 0x2C ? .notANumber : .character }
        guard digits.count >= 3, !hasSymbols else { throw .letters }
        letters += 1
        append(digit)
      }
      guard count <= Limits.characters.upperBound else { throw .tooLong }
      wasSeparator = plain == 0x20
      index = scalars.index(after: index)
    }
    guard letters == 0 || letters >= Limits.vanityLetters else { throw .letters }
  }

  private mutating func append(_ digit: UInt8) {
    digits.append(digit)
    if hasSymbols { symbols.append(digit) }
  }

  // MARK: extensions and parameters

  private static let labels = ["extension", "extensión", "extn", "ext", "xtn", "anexo", "int", "доб", "x", "#", ","]

  /// A mark, then digits up to the end.
  private mutating func parseExtension(_ scalars: Substring.UnicodeScalarView) -> Bool {
    let text = Substring(scalars).lowercased()
    guard let label = Self.labels.first(where: text.hasPrefix) else { return false }
    var rest = text.dropFirst(label.count).drop { ",:. \u{a0}\t-".contains($0) }
    if rest.last == "#" { rest.removeLast() }
    guard (1...Limits.extensionDigits).contains(rest.utf8.count), rest.utf8.allSatisfy({ (48...57).contains($0) }) else {
      return false
    }
    extensionDigits = String(rest)
    return true
  }

  /// `;ext=12;phone-context=+49`, or `;12`.
  private mutating func read(_ parameters: String) throws(NumberRefusal) {
    for parameter in parameters.split(separator: ";") {
      let name = parameter.prefix { $0 != "=" }.lowercased().filter { $0 != " " }
      let value = parameter.dropFirst(parameter.prefix { $0 != "=" }.count).dropFirst()
      let isNumber = { (text: String) in
        (1...Limits.extensionDigits).contains(text.utf8.count) && text.utf8.allSatisfy { (48...57).contains($0) }
      }
      switch name {
      case "isub": throw .subaddress
      case "ext":
        guard isNumber(String(value)) else { throw .parameter }
        extensionDigits = String(value)
      case "phone-context" where value.hasPrefix("+"):
        let context = try NumberText(context: value)
        isInternational = true
        digits = context.digits
      case "phone-context":
        guard !value.isEmpty, value.utf8.allSatisfy({ $0 < 127 && $0 > 32 }) else { throw .parameter }
      case _ where isNumber(name): extensionDigits = name
      default:
        guard !name.isEmpty, name.utf8.allSatisfy({ $0 < 127 && $0 > 32 }) else { throw .parameter }
      }
    }
  }

  private init(context: Substring) throws(NumberRefusal) {
    try read(context.unicodeScalars)
    guard !digits.isEmpty, letters == 0, !hasSymbols, extensionDigits == nil else { throw .parameter }
  }

  // MARK: characters

  /// ASCII for full-width forms; a space for separators that people put between digits; other characters unchanged.
  private static func plain(_ scalar: Unicode.Scalar) -> UInt32 {
    switch scalar.value {
    case 0xFF10...0xFF19, 0xFF0B, 0xFF0A, 0xFF03: scalar.value - 0xFEE0
    case 0x7E, 0xFF5E, 0x2053, 0x223C, 0x28, 0x29, 0x2D, 0x2E, 0x2F, 0x09, 0x5B, 0x5D, 0xA0, 0xAD, 0x3000, 0x30FC: 0x20
    case 0xFF08, 0xFF09, 0xFF0D, 0xFF0E, 0xFF0F, 0xFEFF, 0x2060, 0x2212: 0x20
    case 0x2000...0x200F, 0x2010...0x2015, 0x202A...0x202F, 0x2066...0x2069: 0x20
    default: scalar.value
    }
  }

  /// ITU-T E.161.
  private static func key(_ scalar: UInt32) -> UInt8? {
    let letter = scalar | 0x20
    guard scalar < 128, (0x61...0x7A).contains(letter) else { return nil }
    return [2, 2, 2, 3, 3, 3, 4, 4, 4, 5, 5, 5, 6, 6, 6, 7, 7, 7, 7, 8, 8, 8, 9, 9, 9, 9][Int(letter - 0x61)]
  }
}
