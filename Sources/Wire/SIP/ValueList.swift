extension Message {
  /// The values of a comma-separated header over all its fields, without blanks around them (RFC 3261 §7.3.1). Commas inside
  /// quotes and angle brackets do not separate; empty values are left out.
  public func values(of name: HeaderName) throws(ParseError) -> [ByteRange] {
    var out: [ByteRange] = []
    for field in fields where field.name == name {
      var scanner = Scanner(bytes.span, field.value)
      while !scanner.atEnd {
        let value = try scanner.listValue()
        if !value.isEmpty {
          guard out.count < Limits.listValues else { throw ParseError(.listTooLong, at: scanner.position) }
          out.append(value)
        }
        _ = scanner.skip(.comma)
      }
    }
    return out
  }
}

extension Scanner {
  /// Everything up to the next separating comma or the end, without blanks around it.
  @_lifetime(self: copy self) mutating func listValue() throws(ParseError) -> ByteRange {
    skipBlanks()
    let start = position
    var inBrackets = false
    while !atEnd {
      switch next {
      case .quote where !inBrackets:
        _ = try quoted()
        continue
      case .less: inBrackets = true
      case .greater: inBrackets = false
      case .comma where !inBrackets: return trimmed(start)
      default: break
      }
      position &+= 1
    }
    return trimmed(start)
  }

  private func trimmed(_ start: Int) -> ByteRange {
    var stop = position
    while stop > start, bytes[stop - 1].isBlank { stop -= 1 }
    return ByteRange(from: start, to: stop)
  }
}
