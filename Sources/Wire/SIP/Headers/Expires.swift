extension Message {
  /// Expires in seconds (RFC 3261 §20.19); too large a number counts as the largest, an unreadable one as absent.
  public var expiresSeconds: Int? { seconds(.expires) }

  /// Min-Expires of a 423, in seconds (RFC 3261 §20.23), read likewise.
  public var minimumExpiresSeconds: Int? { seconds(.minExpires) }

  private func seconds(_ name: HeaderName) -> Int? {
    guard let field = field(name) else { return nil }
    let digits = bytes.slice(field.value)
    guard !digits.isEmpty, digits.allSatisfy(\.isDigit) else { return nil }
    return Int(min(UInt64(text(field.value)) ?? UInt64(UInt32.max), UInt64(UInt32.max)))
  }
}
