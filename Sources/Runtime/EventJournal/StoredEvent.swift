import Foundation

/// An event as the journal stores it: every reader gets it octet by octet.
///
/// Its line is `POSITION MILLISECONDS KIND SUBJECT JSON`: a search for a kind or a subject reads no JSON.
public struct StoredEvent: Sendable, Equatable {
  /// From 1, incremented with each event of this journal.
  public var position: UInt64
  /// Milliseconds since 1970.
  public var at: Int64
  public var kind: String
  /// Events of one subject are delivered in order.
  public var subject: String
  public var json: [UInt8]

  public init(position: UInt64, at: Int64, kind: String, subject: String, json: [UInt8]) {
    (self.position, self.at, self.kind, self.subject, self.json) = (position, at, kind, subject, json)
  }

  /// With its line break. A space in a word would end the word.
  var line: [UInt8] {
    Array("\(position) \(at) \(Self.word(kind)) \(Self.word(subject)) ".utf8) + json + [0x0a]
  }

  /// Nil if it is not such a line. Without its line break.
  init?(_ line: ArraySlice<UInt8>) {
    guard let line = EventLine(line) else { return nil }
    self = line.event
  }

  private static func word(_ text: String) -> String {
    var out = ""
    for scalar in text.unicodeScalars.prefix(Limits.wordBytes) {
      if scalar.value <= 32 || scalar == "%" || scalar.value == 127 {
        out += String(format: "%%%02X", scalar.value)
      } else {
        out.unicodeScalars.append(scalar)
      }
    }
    return out.isEmpty ? "-" : out
  }
}

/// A line of the journal, whose JSON is not copied yet.
struct EventLine {
  let position: UInt64
  let at: Int64
  let kind: String
  let subject: String
  private let json: ArraySlice<UInt8>

  /// Nil if it is not such a line. Without its line break.
  init?(_ line: ArraySlice<UInt8>) {
    let parts = line.split(separator: 0x20, maxSplits: 4, omittingEmptySubsequences: false)
    guard parts.count == 5, let position = UInt64(String(decoding: parts[0], as: UTF8.self)), position > 0,
      let at = Int64(String(decoding: parts[1], as: UTF8.self))
    else { return nil }
    (self.position, self.at, kind, subject, json) = (position, at, Self.text(parts[2]), Self.text(parts[3]), parts[4])
  }

  var event: StoredEvent { StoredEvent(position: position, at: at, kind: kind, subject: subject, json: Array(json)) }

  private static func text(_ octets: ArraySlice<UInt8>) -> String {
    let text = String(decoding: octets, as: UTF8.self)
    return text.contains("%") ? text.removingPercentEncoding ?? text : text
  }
}

/// The position of an event: the journal that numbered it, and that number. As text it is the event's id.
public struct EventCursor: Sendable, Hashable, CustomStringConvertible {
  /// Names the journal: a folder that was emptied begins with another epoch.
  public var epoch: String
  public var position: UInt64

  public init(epoch: String, position: UInt64) { (self.epoch, self.position) = (epoch, position) }

  public init?(_ text: String) {
    let parts = text.split(separator: "-", omittingEmptySubsequences: false)
    guard parts.count == 2, parts[0].utf8.count == 8, parts[0].allSatisfy(\.isHexDigit), parts[1].utf8.count <= 20,
      let position = UInt64(parts[1])
    else { return nil }
    self.init(epoch: String(parts[0]), position: position)
  }

  public var description: String { "\(epoch)-\(position)" }
}
