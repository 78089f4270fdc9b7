import AppleStandIn
import Foundation

/// A line of the log as JSON, for `--events`: `{"time":1.05,"who":"system","event":"didActivate"}` and the event's fields.
struct HandsetEvent: Encodable {
  let line: LogLine

  private struct Key: CodingKey {
    let stringValue: String
    var intValue: Int? { nil }
    init(_ text: String) { stringValue = text }
    init?(stringValue: String) { self.stringValue = stringValue }
    init?(intValue: Int) { nil }
  }

  func encode(to encoder: any Encoder) throws {
    var values = encoder.container(keyedBy: Key.self)
    try values.encode(Double(line.time.nanoseconds / 1_000_000) / 1_000, forKey: Key("time"))
    try values.encode(line.who.rawValue, forKey: Key("who"))
    try values.encode(line.event, forKey: Key("event"))
    for field in line.fields { try values.encode(field.value, forKey: Key(field.key)) }
  }

  var text: String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    return (try? encoder.encode(self)).map { String(decoding: $0, as: UTF8.self) } ?? "{}"
  }
}
