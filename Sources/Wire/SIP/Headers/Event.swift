extension Message {
  /// The event package of Event (RFC 6665 §8.4) in lower case, without parameters; empty if absent.
  public var eventPackage: String { firstWord(.event) }
  /// The state of Subscription-State (RFC 6665 §8.2.3) in lower case, without parameters; empty if absent.
  public var subscriptionState: String { firstWord(.subscriptionState) }

  /// The `id` of Event where it is a CSeq number, as that of REFER's events is (RFC 3515 §2.4.6).
  public var eventID: UInt32? {
    guard let field = field(.event) else { return nil }
    for parameter in text(field.value).split(separator: ";").dropFirst() {
      let pair = parameter.split(separator: "=", maxSplits: 1).map { $0.trimmingPrefix { $0 == " " } }
      if pair.count == 2, pair[0].lowercased() == "id" { return UInt32(pair[1].prefix { $0 != " " }) }
    }
    return nil
  }

  private func firstWord(_ name: HeaderName) -> String {
    guard let field = field(name) else { return "" }
    var scanner = Scanner(bytes.span, field.value)
    return text(scanner.run(.token)).lowercased()
  }

  /// Whether a comma-separated header holds a token, in any case; false if the header is malformed.
  public func lists(_ token: String, in name: HeaderName) -> Bool {
    guard field(name) != nil, let all = try? tokens(name) else { return false }
    return all.contains { $0.lowercased() == token.lowercased() }
  }
}
