import Foundation

/// A JSON value that distinguishes whole numbers, other numbers and truth values.
enum JSON: Hashable, Codable {
  case null, bool(Bool), integer(Int), number(Double), text(String), list([JSON]), object([String: JSON])

  init(from decoder: any Decoder) throws {
    let value = try decoder.singleValueContainer()
    if value.decodeNil() {
      self = .null
    } else if let read = try? value.decode(Bool.self) {
      self = .bool(read)
    } else if let read = try? value.decode(Int.self) {
      self = .integer(read)
    } else if let read = try? value.decode(Double.self) {
      self = .number(read)
    } else if let read = try? value.decode(String.self) {
      self = .text(read)
    } else if let read = try? value.decode([JSON].self) {
      self = .list(read)
    } else {
      self = .object(try value.decode([String: JSON].self))
    }
  }

  func encode(to encoder: any Encoder) throws {
    var value = encoder.singleValueContainer()
    switch self {
    case .null: try value.encodeNil()
    case .bool(let it): try value.encode(it)
    case .integer(let it): try value.encode(it)
    case .number(let it): try value.encode(it)
    case .text(let it): try value.encode(it)
    case .list(let it): try value.encode(it)
    case .object(let it): try value.encode(it)
    }
  }

  init(_ bytes: some Sequence<UInt8>) throws { self = try JSONDecoder().decode(JSON.self, from: Data(bytes)) }
  var bytes: [UInt8] { get throws { Array(try JSONEncoder().encode(self)) } }
  var fields: [String: JSON] { if case .object(let fields) = self { fields } else { [:] } }
  var elements: [JSON] { if case .list(let elements) = self { elements } else { [] } }
  var string: String? { if case .text(let text) = self { text } else { nil } }
  var double: Double? {
    switch self {
    case .integer(let value): Double(value)
    case .number(let value): value
    default: nil
    }
  }
}

/// The part of JSON Schema (draft 2020-12) that docs/reference/schemas uses; any other keyword is a problem.
struct JSONSchema {
  let root: JSON
  var definitions: [String: JSON] { root.fields["$defs"]?.fields ?? [:] }

  func resolve(_ reference: JSON) -> JSON? {
    let prefix = "#/$defs/"
    guard let text = reference.string, text.hasPrefix(prefix) else { return nil }
    return definitions[String(text.dropFirst(prefix.count))]
  }

  /// The problems of the value, with the path to it; empty if it is valid.
  func problems(_ value: JSON, _ schema: JSON, at path: String = "") -> [String] {
    schema.fields.flatMap { keyword, rule in problems(value, keyword, rule, at: path) }
  }

  private func problems(_ value: JSON, _ keyword: String, _ rule: JSON, at path: String) -> [String] {
    func unless(_ isValid: Bool) -> [String] { isValid ? [] : ["\(path): \(keyword) \(rule)"] }
    func bound(_ size: Double?, _ isValid: (Double, Double) -> Bool) -> [String] {
      unless(size.map { isValid($0, rule.double ?? .nan) } ?? true)
    }
    let length = value.string.map { Double($0.utf8.count) }
    switch keyword {
    case "$ref": return resolve(rule).map { problems(value, $0, at: path) } ?? ["\(path): nothing at \(rule)"]
    case "type": return unless(isOf(type: rule.string ?? "", value))
    case "const": return unless(value == rule)
    case "enum": return unless(rule.elements.contains(value))
    case "required":
      guard case .object(let fields) = value else { return [] }
      return unless(rule.elements.allSatisfy { fields[$0.string ?? ""] != nil })
    case "properties":
      return rule.fields.flatMap { key, schema in
        value.fields[key].map { problems($0, schema, at: path + "." + key) } ?? []
      }
    case "items": return value.elements.flatMap { problems($0, rule, at: path + "[]") }
    case "minimum": return bound(value.double, >=)
    case "maximum": return bound(value.double, <=)
    case "minLength": return bound(length, >=)
    case "maxLength": return bound(length, <=)
    case "maxItems": return bound(Double(value.elements.count), <=)
    case "pattern":
      guard let text = value.string else { return [] }
      return unless((try? Regex(rule.string ?? "(").firstMatch(in: text)) != nil)
    case "oneOf": return unless(rule.elements.count { problems(value, $0).isEmpty } == 1)
    case "anyOf": return unless(rule.elements.contains { problems(value, $0).isEmpty })
    case "description", "default", "examples", "format": return []
    default: return ["\(path): the keyword \(keyword) is not checked"]
    }
  }

  private func isOf(type: String, _ value: JSON) -> Bool {
    switch (type, value) {
    case ("object", .object), ("array", .list), ("string", .text), ("boolean", .bool), ("integer", .integer),
      ("number", .integer), ("number", .number):
      true
    default: false
    }
  }
}
