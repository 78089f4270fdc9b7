/// Named facts about a call beside caller and callee: a ticket, a campaign, a customer's number. They come from header fields
/// that the trunk's `parameters` lists, from the routing webhook, or from an app; they go to the called app, or into the INVITE.
///
/// Names are those of header fields (RFC 3261 §25.1) of 1 to 64 octets, each once, case-insensitively. Values have no control
/// characters. At most 16 pairs with 1,024 octets in total.
public struct CallParameters: Hashable, Sendable, Codable {
  public let values: [String: String]

  /// Nil if a rule is broken.
  public init?(_ values: [String: String]) {
    guard Self.fault(of: values) == nil else { return nil }
    self.values = values
  }

  public init(from decoder: any Decoder) throws {
    values = try decoder.singleValueContainer().decode([String: String].self)
    if let fault = Self.fault(of: values) {
      throw DecodingError.dataCorrupted(.init(codingPath: decoder.codingPath, debugDescription: fault))
    }
  }

  public func encode(to encoder: any Encoder) throws {
    var box = encoder.singleValueContainer()
    try box.encode(values)
  }

  public var isEmpty: Bool { values.isEmpty }

  /// These, with others replacing those of the same name; nil if together they exceed the limits.
  public func merging(_ others: CallParameters) -> CallParameters? {
    let replaced = Set(others.values.keys.map { $0.lowercased() })
    return CallParameters(
      values.filter { !replaced.contains($0.key.lowercased()) }.merging(others.values) { _, new in new })
  }

  /// Whether a text can be a name.
  public static func isName(_ text: String) -> Bool {
    (1...Limits.parameterNameBytes).contains(text.utf8.count)
      && text.utf8.allSatisfy { byte in
        (48...57).contains(byte) || (65...90).contains(byte) || (97...122).contains(byte) || "-.!%*_+`'~".utf8.contains(byte)
      }
  }

  /// Whether a text can be a value.
  public static func isValue(_ text: String) -> Bool {
    text.unicodeScalars.allSatisfy { $0.value >= 32 && !(127...159).contains($0.value) }
  }

  /// The rule that they break, as a sentence's end; nil if none.
  public static func fault(of values: [String: String]) -> String? {
    if values.count > Limits.parameters { return "parameters: at most \(Limits.parameters)" }
    if let name = values.keys.first(where: { !isName($0) }) {
      return
        "parameters: \"\(name.prefix(Limits.parameterNameBytes))\" is not a name of a header field of 1 to \(Limits.parameterNameBytes) characters"
    }
    if Set(values.keys.map { $0.lowercased() }).count < values.count { return "parameters: a name occurs twice" }
    if let (name, _) = values.first(where: { !isValue($0.value) }) { return "parameters: \(name) has a control character" }
    let bytes = values.reduce(0) { $0 + $1.key.utf8.count + $1.value.utf8.count }
    return bytes > Limits.parameterBytes ? "parameters: \(bytes) bytes of \(Limits.parameterBytes)" : nil
  }
}
