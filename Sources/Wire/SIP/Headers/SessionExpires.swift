/// Session-Expires (RFC 4028 §4).
public struct SessionExpires: Hashable, Sendable {
  public enum Refresher: String, Hashable, Sendable { case uac, uas }
  public var seconds: Int
  /// Who sends the refreshes; nil if left open.
  public var refresher: Refresher?

  public init(seconds: Int, refresher: Refresher? = nil) { (self.seconds, self.refresher) = (seconds, refresher) }

  /// As written on the wire.
  public var text: String { "\(seconds)" + (refresher.map { ";refresher=\($0.rawValue)" } ?? "") }
}

extension Message {
  /// Nil if absent; another word for the refresher counts as none.
  public var sessionExpires: SessionExpires? {
    get throws(ParseError) {
      guard let field = field(.sessionExpires) else { return nil }
      var scanner = Scanner(bytes.span, field.value)
      var value = SessionExpires(seconds: Int(try scanner.number(upTo: .max)))
      while let parameter = try scanner.parameter() {
        guard scanner.equals(parameter.name, "refresher"), let word = parameter.value else { continue }
        value.refresher = scanner.equals(word, "uac") ? .uac : scanner.equals(word, "uas") ? .uas : nil
      }
      try scanner.finish()
      return value
    }
  }

  /// Min-SE in seconds (RFC 4028 §5); nil if absent.
  public var minimumSessionSeconds: Int? {
    get throws(ParseError) {
      guard let field = field(.minSE) else { return nil }
      var scanner = Scanner(bytes.span, field.value)
      let seconds = Int(try scanner.number(upTo: .max))
      while try scanner.parameter() != nil {}
      try scanner.finish()
      return seconds
    }
  }
}
