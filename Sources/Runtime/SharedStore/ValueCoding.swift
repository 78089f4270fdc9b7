import Cluster
import Foundation

// Values as JSON with `v`, the format. Their names are short (`CodingKeys`): of an idle device nothing else is in the shared store.
// Unknown fields are ignored; a value that is not JSON, is longer than `Cluster.Limits.valueBytes` or has a format that we do not read is nil, and
// the reader counts it.

/// A value as it is in the shared store.
protocol StoredValue: Codable { var format: Int { get } }

enum ValueCoding {
  static func encode(_ value: some StoredValue) -> [UInt8] {
    let encoder = JSONEncoder()
    encoder.outputFormatting = .withoutEscapingSlashes
    // encoding these values cannot fail
    return (try? encoder.encode(value)).map { [UInt8]($0) } ?? []
  }

  static func decode<Value: StoredValue>(
    _ type: Value.Type, _ bytes: [UInt8], limit: Int = Cluster.Limits.valueBytes,
    formats: ClosedRange<Int> = Cluster.Limits.oldestFormat...Cluster.Limits.format
  ) -> Value? {
    guard bytes.count <= limit, nesting(bytes) <= depth, let value = try? JSONDecoder().decode(type, from: Data(bytes)),
      formats.contains(value.format)
    else { return nil }
    return value
  }

  /// The nesting limit: Foundation's parser is recursive.
  private static let depth = 16

  /// The most brackets that are open at once, including those in strings: no value of ours comes near the limit.
  private static func nesting(_ bytes: [UInt8]) -> Int {
    var (open, most, isText, isEscaped) = (0, 0, false, false)
    for byte in bytes {
      if isText {
        if isEscaped { isEscaped = false } else if byte == 92 { isEscaped = true } else if byte == 34 { isText = false }
        continue
      }
      switch byte {
      case 34: isText = true
      case 91, 123:
        open += 1
        most = max(most, open)
      case 93, 125: open -= 1
      default: break
      }
    }
    return most
  }
}

/// Bounds times since 1970, in milliseconds, and counts, so that later arithmetic does not overflow.
func isPlausible(_ numbers: Int64?...) -> Bool {
  numbers.allSatisfy { $0.map { (0...Int64(1) << 53).contains($0) } ?? true }
}

/// Whether the text has no control characters: it is shown on terminals.
func isPlain(_ text: String) -> Bool { text.utf8.allSatisfy { $0 >= 32 && $0 != 127 } }

/// Whether the text can be part of a URI and cannot end it: it is written into a Contact, and sent to apps.
func isWord(_ text: String) -> Bool {
  text.utf8.count <= 512 && text.utf8.allSatisfy { (33...126).contains($0) && !"<>\"".utf8.contains($0) }
}
