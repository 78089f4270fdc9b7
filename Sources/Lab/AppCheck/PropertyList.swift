import Foundation

/// A property list of an app: XML or binary, a dictionary at its root.
struct PropertyList {
  /// The file's name in the report.
  let name: String
  let values: [String: Any]

  /// - Throws: if the data is no property list, or has no dictionary at its root.
  init(_ data: Data, name: String) throws(AppCheck.Problem) {
    guard data.count <= Self.maximumBytes else {
      throw AppCheck.Problem(in: name, "has more than \(Self.maximumBytes >> 20) MiB: it is not a property list of an app")
    }
    guard let root = try? PropertyListSerialization.propertyList(from: data, format: nil) else {
      throw AppCheck.Problem(in: name, Self.why(data))
    }
    guard let values = root as? [String: Any] else {
      throw AppCheck.Problem(in: name, "holds \(Self.kind(root)), where a dictionary must be: recreate it from Xcode's template")
    }
    (self.name, self.values) = (name, values)
  }

  private static let maximumBytes = 4 << 20

  /// The line at which the XML stops being well formed, as far as that can be found without a parser's message.
  private static func why(_ data: Data) -> String {
    if data.isEmpty { return "is empty: recreate it from Xcode's template" }
    let text = String(decoding: data, as: UTF8.self)
    guard text.hasPrefix("<?xml") || text.hasPrefix("<!DOCTYPE") || text.hasPrefix("<plist") else {
      return "is not a property list (neither XML nor binary): open it in Xcode, or recreate it"
    }
    let lines = text.reduce(1) { $0 + ($1.isNewline ? 1 : 0) }
    let hasEnd = text.contains("</plist>")
    return hasEnd
      ? "is not a well-formed property list: `plutil -lint` names the line"
      : "line \(lines): the XML ends before </plist>: the file was cut; restore it"
  }

  /// The type of a value in words.
  static func kind(_ value: Any) -> String {
    switch value {
    case is [String: Any]: "a dictionary"
    case is [Any]: "an array"
    case is String: "a string"
    case is Data: "data"
    case is Date: "a date"
    case _ where isBool(value): "a boolean"
    default: "a number"
    }
  }

  /// Needed as a number bridges to a boolean, too.
  static func isBool(_ value: Any) -> Bool { (value as? NSNumber).map { String(cString: $0.objCType) == "c" } ?? false }
}

extension PropertyList {
  /// The value of a key, or its problem.
  enum Value<Wanted> {
    case there(Wanted)
    case missing
    case wrong(String)
  }

  func string(_ key: String) -> Value<String> { value(key, as: "a string") { $0 as? String } }
  func strings(_ key: String) -> Value<[String]> { value(key, as: "an array of strings") { $0 as? [String] } }
  func dictionary(_ key: String) -> Value<[String: Any]> { value(key, as: "a dictionary") { $0 as? [String: Any] } }
  /// `<true/>` or `<false/>`; a number is not accepted.
  func bool(_ key: String) -> Value<Bool> {
    value(key, as: "a boolean") { Self.isBool($0) ? ($0 as? NSNumber)?.boolValue : nil }
  }

  private func value<Wanted>(_ key: String, as wanted: String, _ read: (Any) -> Wanted?) -> Value<Wanted> {
    guard let found = values[key] else { return .missing }
    guard let value = read(found) else { return .wrong("\(key) is \(Self.kind(found)), and must be \(wanted)") }
    return .there(value)
  }
}
