extension Message {
  /// The values of Reason (RFC 3326 §2). Values against the grammar are left out: a reason is information, no message fails
  /// for it.
  public var reasons: [ReasonValue] {
    guard field(.reason) != nil, let ranges = try? values(of: .reason) else { return [] }
    return ranges.compactMap { range in
      var scanner = Scanner(bytes.span, range)
      guard let name = try? scanner.token() else { return nil }
      var value = ReasonValue(protocolName: text(name), cause: nil)
      while let parameter = try? scanner.parameter() {
        guard let content = parameter.value else { continue }
        if scanner.equals(parameter.name, "cause") {
          value.cause = Int(text(content)).flatMap { (0...999).contains($0) ? $0 : nil }
        } else if scanner.equals(parameter.name, "text") {
          value.text = unescapeQuoted(bytes.slice(content))
        }
      }
      return value
    }
  }
}
