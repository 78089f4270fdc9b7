public import Bytes

/// One event of a phone, one line of text. The format is stable: traces of a device are checked against it.
///
/// ```
/// line  = time SP who SP event *(SP key "=" value)
/// time  = seconds since the phone's start, three decimals, rounded down: 0.020
/// who   = "app" / "system" / "user" / "network"
/// value = a word; what is empty or has a space, a quote or a control character is a JSON string
/// ```
/// Events are those of `AppMessage`, `SystemMachine.Action` and the person's inputs, by the names in
/// docs/design/apple-stand-in.md.
/// Keys come in a fixed order; a reader passes over keys and events that it does not know.
public struct LogLine: Sendable, Equatable, CustomStringConvertible {
  public enum Who: String, Sendable { case app, system, user, network }

  public var time: Instant
  public var who: Who
  public var event: String
  public var fields: [(key: String, value: String)]

  init(_ time: Instant, _ who: Who, _ event: String, _ fields: [(key: String, value: String)] = []) {
    (self.time, self.who, self.event, self.fields) = (time, who, event, fields)
  }

  public var description: String {
    let milliseconds = time.nanoseconds / 1_000_000
    let fraction = String(milliseconds % 1_000)
    let padded = String(repeating: "0", count: 3 - fraction.count) + fraction
    let words = fields.map { " \($0.key)=\(Self.word($0.value))" }.joined()
    return "\(milliseconds / 1_000).\(padded) \(who.rawValue) \(event)\(words)"
  }

  public static func == (a: LogLine, b: LogLine) -> Bool { a.description == b.description }

  private static func word(_ text: String) -> String {
    if !text.isEmpty, !text.unicodeScalars.contains(where: { $0.value <= 32 || $0 == "\"" || $0.value == 127 }) { return text }
    let inner = text.unicodeScalars.map { scalar in
      switch scalar {
      case "\"": "\\\""
      case "\\": "\\\\"
      case _ where scalar.value < 32 || scalar.value == 127:
        "\\u" + String(repeating: "0", count: scalar.value < 16 ? 3 : 2) + String(scalar.value, radix: 16)
      default: String(scalar)
      }
    }
    return "\"" + inner.joined() + "\""
  }
}
