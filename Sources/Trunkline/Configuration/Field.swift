import Foundation
import TrunklineBytes
import Yams

/// One value of the file, as a row reads it. Every reader returns nil when the value is absent or wrong, and reports a wrong one.
struct Field {
  let parser: ConfigurationParser
  /// Nil if the key is not written, or has no value.
  let node: Node?
  let path: String
  /// Whether it names a file with a secret in it (`ConfigurationKey.Value.secretFile`).
  var isSecret = false
  /// Whether it stands in place of its section (`KeyTable.short`).
  var isShort = false

  var isWritten: Bool { node != nil }
  /// The text of a scalar; nil for a mapping or a list.
  var text: String? { node?.text }

  func problem(_ message: String, _ severity: Problem.Severity = .error) { parser.problem(at: path, message, severity) }

  /// Items; a single value counts as a list of one.
  func items(limit: Int) -> [Field] {
    func item(_ node: Node, _ index: Int) -> Field {
      let own = Field(parser: parser, node: node, path: path + "[\(index)]")
      parser.visit(own.path, node)
      return own
    }
    guard let node else { return [] }
    guard case .sequence(let sequence) = node else { return [item(node, 0)] }
    if sequence.count > limit { problem("\(sequence.count) items are more than the limit of \(limit)") }
    return sequence.prefix(limit).enumerated().compactMap { index, node in
      let own = item(node, index)
      if node.isNull { own.problem("is empty: write a value, or leave the item out") }
      return node.isNull ? nil : own
    }
  }

  /// The scalar parsed by `parse`; `expected` completes "expected …, got …".
  func value<Value>(_ expected: String, _ parse: (String) -> Value?) -> Value? {
    guard let node else { return nil }
    if let text = node.text, let value = parse(text) { return value }
    problem("expected \(expected), got \(shown(node))")
    return nil
  }

  func list<Value>(limit: Int, _ expected: String, _ parse: (String) -> Value?) -> [Value] {
    items(limit: limit).compactMap { $0.value(expected, parse) }
  }

  func string() -> String? { value("a text") { $0.isEmpty ? nil : $0 } }

  func integer(in range: ClosedRange<Int>) -> Int? {
    guard let number = value("an integer", { Int($0) }) else { return nil }
    guard range.contains(number) else {
      problem("\(number) is outside \(range.lowerBound)...\(range.upperBound)")
      return nil
    }
    return number
  }

  func flag() -> Bool? {
    value("true or false") { ["true": true, "yes": true, "on": true, "false": false, "no": false, "off": false][$0] }
  }

  func choice<Choice: RawRepresentable & CaseIterable>(_: Choice.Type) -> Choice? where Choice.RawValue == String {
    value(orList(Choice.allCases.map(\.rawValue))) { Choice(rawValue: $0) }
  }

  func duration(in range: ClosedRange<Duration>) -> Duration? {
    guard let value = value("a duration such as 45s or 500ms", durationValue) else { return nil }
    guard range.contains(value) else {
      problem("\(durationText(value)) is outside \(durationText(range.lowerBound))...\(durationText(range.upperBound))")
      return nil
    }
    return value
  }

  /// One address or a list of them.
  func socketAddresses() -> [SocketAddress] {
    if text != nil { return [socketAddress()].compactMap(\.self) }
    return items(limit: 16).compactMap { $0.socketAddress() }
  }

  func socketAddress() -> SocketAddress? {
    guard let address = value("an address with a port, such as 127.0.0.1:5060 or [::1]:5060", { SocketAddress($0) }) else {
      return nil
    }
    guard address.port != 0 else {
      problem("port 0 is outside 1...65535")
      return nil
    }
    return address
  }
}

/// Files that a value names.
extension Field {
  /// The file's content, as bytes; nil if the key is absent or the file cannot be read (which is reported).
  func fileContent(limit: Int = Limits.secretBytes) -> [UInt8]? {
    guard let name = string() else { return nil }
    let file = parser.resolve(name)
    guard access(file, R_OK) == 0 else {
      problem("cannot read \(file): \(String(cString: strerror(errno)))")
      return nil
    }
    guard let data = FileManager.default.contents(atPath: file) else {
      problem("cannot read \(file)")
      return nil
    }
    guard data.count <= limit else {
      problem("\(file) has \(data.count) bytes, more than the limit of \(limit)")
      return nil
    }
    if isSecret { checkReaders(of: file, data) }
    return [UInt8](data)
  }

  /// Warns if every user of the machine can read a secret: checks the file and every folder on its path. Files of public keys
  /// and certificates are exempt.
  private func checkReaders(of file: String, _ data: Data) {
    guard !SecretFile.isPublic(data), SecretFile.isOpenToAll(file) else { return }
    problem("every user of this machine can read the secret in \(file): chmod o= \(file), and make a new secret", .warning)
  }

  /// The file without trailing white space, which must not be empty.
  func secret() -> [UInt8]? {
    guard var bytes = fileContent() else { return nil }
    while let last = bytes.last, [0x20, 0x09, 0x0a, 0x0b, 0x0c, 0x0d].contains(last) { bytes.removeLast() }
    guard !bytes.isEmpty else {
      problem("\(parser.resolve(string() ?? "")) is empty")
      return nil
    }
    return bytes
  }

  /// A readable file's absolute path.
  func readableFile() -> String? {
    guard fileContent(limit: Limits.fileBytes) != nil, let name = string() else { return nil }
    return parser.resolve(name)
  }
}
