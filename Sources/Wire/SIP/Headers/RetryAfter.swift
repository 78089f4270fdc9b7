extension Message {
  /// Retry-After in seconds (RFC 3261 §20.33); nil if absent or unreadable. Comment and parameters are passed over.
  public var retryAfterSeconds: Int? {
    guard let field = field(.retryAfter) else { return nil }
    var scanner = Scanner(bytes.span, field.value)
    return (try? scanner.number(upTo: .max)).map { Int($0) }
  }
}
