import TrunklineBytes

/// One Identity header field (RFC 8224 §4): a signed PASSporT (RFC 8225) and the URI of its key. The signature is not checked
/// here.
public struct SignedIdentity: Hashable, Sendable {
  /// The value as received.
  public var text: String
  /// `ppt` in lower case, such as `shaken`; nil if it is not named.
  public var type: String?
  /// Three parts in base64url (the first two empty in the compact form), and an `info` URI.
  public var isWellFormed: Bool

  public init(_ text: String) {
    self.text = text
    let parts = text.split(separator: ";", omittingEmptySubsequences: false).map { Self.trimmed($0) }
    let token = parts[0].split(separator: ".", omittingEmptySubsequences: false)
    var (hasInfo, isES256) = (false, true)
    for part in parts.dropFirst().prefix(Limits.parameters) {
      let pair = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      guard pair.count == 2 else { continue }
      let value = Self.trimmed(pair[1])
      switch Self.trimmed(pair[0]).lowercased() {
      case "info": hasInfo = value.hasPrefix("<") && value.hasSuffix(">") && value.count > 2
      case "alg": isES256 = value.filter { $0 != "\"" } == "ES256"
      case "ppt": type = value.filter { $0 != "\"" }.lowercased()
      default: break
      }
    }
    let isToken =
      token.count == 3 && token[0].isEmpty == token[1].isEmpty && !token[2].isEmpty
      && token.allSatisfy { $0.utf8.allSatisfy { Self.isBase64URL($0) } }
    isWellFormed = isToken && hasInfo && isES256
  }

  private static func trimmed(_ text: Substring) -> Substring {
    var text = text
    while let first = text.first, first == " " || first == "\t" { text.removeFirst() }
    while let last = text.last, last == " " || last == "\t" { text.removeLast() }
    return text
  }
  private static func isBase64URL(_ byte: UInt8) -> Bool {
    (48...57).contains(byte) || (65...90).contains(byte) || (97...122).contains(byte) || byte == 45 || byte == 95
  }
}

extension Message {
  /// The first `Limits.identities` Identity fields; those that are longer than `Limits.identityBytes` are left out.
  public var identities: [SignedIdentity] {
    let short = fields(.identity).filter { $0.value.count <= Limits.identityBytes }
    return short.prefix(Limits.identities).map { SignedIdentity(text($0.value)) }
  }

  /// The text of Date (RFC 3261 §20.17); a PASSporT in the compact form has its time from it.
  public var date: String? { fields.first { $0.name == .date }.map { text($0.value) } }
}
