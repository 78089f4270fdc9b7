public import TrunklineBytes

/// One event of a phone as one line of text, in the stand-in's log and in the SDK's trace on a device. The format is stable.
///
/// ```
/// trace = header *line                          a process or a phone; a file may hold several, one after the other
/// line  = time SP who SP event *(SP key "=" value)
/// time  = seconds since the trace's start, three decimals, rounded down, never less than in the line before: 0.020
/// who   = "app" / "system" / "user" / "network"
/// value = text; if it is empty or has a space, a quote or a control character, a JSON string
/// ```
/// The header is `TraceHeader`. Events are those in docs/design/apple-stand-in.md.
/// Keys have a fixed order; a reader ignores unknown keys and events.
public struct LogLine: Sendable, Equatable, CustomStringConvertible {
  public enum Who: String, Sendable { case app, system, user, network }
  public typealias Field = (key: String, value: String)

  public var time: Instant
  public var who: Who
  public var event: String
  public var fields: [Field]

  public init(_ time: Instant, _ who: Who, _ event: String, _ fields: [Field] = []) {
    (self.time, self.who, self.event, self.fields) = (time, who, event, fields)
  }

  /// The value of the first field with this key.
  public subscript(key: String) -> String? { fields.first { $0.key == key }?.value }

  public var description: String {
    let words = fields.map { " \($0.key)=\(Self.word($0.value))" }.joined()
    return "\(Self.text(time)) \(who.rawValue) \(event)\(words)"
  }

  /// Seconds with three decimals.
  public static func text(_ time: Instant) -> String {
    let milliseconds = time.nanoseconds / 1_000_000
    let fraction = String(milliseconds % 1_000)
    return "\(milliseconds / 1_000)." + String(repeating: "0", count: max(0, 3 - fraction.count)) + fraction
  }

  public static func == (a: LogLine, b: LogLine) -> Bool { a.description == b.description }

  /// The text as the value of a field is written.
  public static func word(_ text: String) -> String {
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
