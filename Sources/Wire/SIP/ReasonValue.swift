/// One value of a `Reason` header (RFC 3326), such as `Q.850;cause=41;text="temporary failure"`.
public struct ReasonValue: Hashable, Sendable, CustomStringConvertible {
  /// `Q.850`, `SIP` or another token, in the spelling that was read.
  public var protocolName: String
  /// The cause number in the protocol's own table; nil if absent.
  public var cause: Int?
  /// Text for people; nil if absent.
  public var text: String?

  public init(protocolName: String, cause: Int?, text: String? = nil) {
    (self.protocolName, self.cause, self.text) = (protocolName, cause, text)
  }

  /// An ISDN cause, `Q.850;cause=N`.
  public static func q850(_ cause: Int, _ text: String? = nil) -> ReasonValue {
    ReasonValue(protocolName: "Q.850", cause: cause, text: text)
  }

  /// A SIP status code as a cause, `SIP;cause=N`.
  public static func sip(_ code: Int, _ text: String? = nil) -> ReasonValue {
    ReasonValue(protocolName: "SIP", cause: code, text: text)
  }

  public var description: String {
    var out = protocolName
    if let cause { out += ";cause=\(cause)" }
    if let text {
      out += ";text=\""
      for character in text.unicodeScalars {
        if character == "\"" || character == "\\" { out += "\\" }
        if character.value >= 32, character.value != 127 { out.unicodeScalars.append(character) }
      }
      out += "\""
    }
    return out
  }
}
