import Foundation

extension Settings {
  /// `branding:`, of the web phone and the status page.
  public struct Branding: Sendable, Equatable {
    public struct Logo: Sendable, Equatable {
      public enum Format: String, Sendable { case svg, png }
      public var format: Format
      public var bytes: [UInt8]

      public var contentType: String { format == .svg ? "image/svg+xml" : "image/png" }
      /// The size for a web app manifest: of a PNG by its first chunk (PNG §11.2.2).
      public var sizes: String {
        guard format == .png, bytes.count >= 24 else { return "any" }
        func number(_ at: Int) -> UInt32 { bytes[at..<(at + 4)].reduce(0) { $0 << 8 | UInt32($1) } }
        return "\(number(16))x\(number(20))"
      }
    }
    public static let productName = "Trunkline"
    public var name = Self.productName
    /// The header's colour; nil: that of the pages.
    public var color: RGBColor?
    public var logo: Logo?
  }
}

/// A colour of the sRGB space, each part 0 to 255.
public struct RGBColor: Sendable, Equatable, CustomStringConvertible {
  public var (red, green, blue): (UInt8, UInt8, UInt8)

  /// `#rrggbb` or `#rgb`.
  public init?(_ text: String) {
    let digits = text.dropFirst().compactMap(\.hexDigitValue)
    guard text.hasPrefix("#"), text.utf8.count == digits.count + 1 else { return nil }
    switch digits.count {
    case 3: (red, green, blue) = (UInt8(digits[0] * 17), UInt8(digits[1] * 17), UInt8(digits[2] * 17))
    case 6:
      (red, green, blue) = (
        UInt8(digits[0] * 16 + digits[1]), UInt8(digits[2] * 16 + digits[3]), UInt8(digits[4] * 16 + digits[5])
      )
    default: return nil
    }
  }

  /// `#rrggbb`.
  public var description: String {
    "#" + [red, green, blue].map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
  }

  /// WCAG 2.2, relative luminance.
  public var luminance: Double {
    func linear(_ part: UInt8) -> Double {
      let part = Double(part) / 255
      return part <= 0.04045 ? part / 12.92 : pow((part + 0.055) / 1.055, 2.4)
    }
    return 0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue)
  }

  /// WCAG 2.2, contrast ratio: 1 to 21.
  public func contrast(to other: RGBColor) -> Double {
    let (one, two) = (luminance, other.luminance)
    return (max(one, two) + 0.05) / (min(one, two) + 0.05)
  }

  /// Black or white, whichever has the higher contrast to this colour. The worst case, a colour of luminance 0.18, has 4.58 : 1
  /// with both, so the 4.5 : 1 of WCAG 2.2 §1.4.3 are always reached.
  public var textColor: RGBColor {
    let (black, white) = (RGBColor("#000")!, RGBColor("#fff")!)
    return contrast(to: white) >= contrast(to: black) ? white : black
  }
}

/// `branding: { name: Acme Telephony, color: "#0a5c36", logo: acme.svg }`.
extension ConfigurationKeys {
  static let branding = KeyTable<Settings.Branding>(
    .init(), .atRestart, about: "How it looks: docs/operate/branding.md.",
    [
      .value(
        "name", \.name, "1 to \(Limits.brandName) characters", default: .value(Settings.Branding.productName),
        expected: "1 to \(Limits.brandName) characters that can be seen", "The name of the pages and of the installed web phone.",
        parse: seenName),
      .optional(
        "color", \.color, "colour such as `\"#0a5c36\"`, in quotes", default: .none("that of the pages"),
        expected: "a colour such as \"#0a5c36\", in quotes, as # begins a comment",
        "Of the header, in light and dark; what is written on it is black or white, whichever reads better."
      ) { RGBColor($0) },
      .init(
        "logo", .file("SVG or PNG, \(Limits.logoBytes >> 10) KiB at most"), default: .none("a handset"),
        "Square: it is seen 26 px wide, and as the icon of the tab and of the installed web phone."
      ) { field, out in
        guard let bytes = field.fileContent(limit: Limits.logoBytes) else { return }
        out.logo = logo(bytes)
        if out.logo == nil { field.problem("\(field.parser.resolve(field.text ?? "")) is neither SVG nor PNG") }
      },
    ])

  @Sendable private static func seenName(_ text: String) -> String? {
    let isSeen = text.unicodeScalars.allSatisfy {
      ![.control, .format, .lineSeparator, .paragraphSeparator].contains($0.properties.generalCategory)
    }
    return text.count <= Limits.brandName && text.utf8.count <= Limits.brandName * 4 && isSeen && text.contains { $0 != " " }
      ? text : nil
  }

  /// Recognises the format by the content, whatever the file's name is.
  private static func logo(_ bytes: [UInt8]) -> Settings.Branding.Logo? {
    if bytes.starts(with: [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]) { return .init(format: .png, bytes: bytes) }
    guard let text = String(validating: bytes, as: UTF8.self), text.contains("<svg"),
      let first = text.first(where: { !$0.isWhitespace && $0 != "\u{FEFF}" }), first == "<"
    else { return nil }
    return .init(format: .svg, bytes: bytes)
  }
}
