import TrunklineBytes

/// Builds a flat JSON object: enough for health pages and log lines, without Foundation.
struct JSONText {
  static let contentType = "application/json; charset=utf-8"
  private var bytes: [UInt8] = []

  /// The object as UTF-8.
  var object: [UInt8] { [UInt8(ascii: "{")] + bytes + [UInt8(ascii: "}")] }

  mutating func field(_ name: String, _ value: String, limit: Int = .max) {
    key(name)
    string(value, limit)
  }
  mutating func field(_ name: String, _ value: Bool) {
    key(name)
    bytes += Array((value ? "true" : "false").utf8)
  }
  mutating func field(_ name: String, _ value: Int64) {
    key(name)
    bytes += Array(String(value).utf8)
  }
  mutating func field(_ name: String, objects: [JSONText]) {
    key(name)
    bytes.append(UInt8(ascii: "["))
    for (index, object) in objects.enumerated() {
      if index > 0 { bytes.append(UInt8(ascii: ",")) }
      bytes += object.object
    }
    bytes.append(UInt8(ascii: "]"))
  }

  private mutating func key(_ name: String) {
    if !bytes.isEmpty { bytes.append(UInt8(ascii: ",")) }
    string(name, 128)
    bytes.append(UInt8(ascii: ":"))
  }

  /// A JSON string of at most about `limit` bytes of the text; a longer text is cut and ends in `…`.
  private mutating func string(_ text: String, _ limit: Int) {
    bytes.append(UInt8(ascii: "\""))
    var used = 0
    for scalar in text.unicodeScalars {
      used += 1
      if used > limit {
        bytes += Array("…".utf8)
        break
      }
      switch scalar {
      case "\"": bytes += Array("\\\"".utf8)
      case "\\": bytes += Array("\\\\".utf8)
      case "\n": bytes += Array("\\n".utf8)
      case "\r": bytes += Array("\\r".utf8)
      case "\t": bytes += Array("\\t".utf8)
      case _ where TerminalText.isUnsafe(scalar): bytes += Array(TerminalText.escape(scalar).utf8)
      default: bytes += Array(UTF8.encode(scalar).map { Array($0) } ?? [])
      }
    }
    bytes.append(UInt8(ascii: "\""))
  }
}
