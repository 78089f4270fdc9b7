import Foundation

/// Reads contacts from a file or a request's body, piece by piece: memory holds one line and the resulting list.
///
/// | form | first line | each further line |
/// |---|---|---|
/// | CSV | `number,label,kind` | `+15550000001,Ann Example,identify`; a field may be in double quotes |
/// | JSON lines | – | `{"number":"+15550000001","label":"Ann Example","kind":"block"}` |
///
/// `kind` is `identify` (or empty), `block`, with a label or without, or, where a list changes a directory, `remove`. Every line
/// ends with a line break: without one the file is incomplete.
public struct ContactReader: Sendable {
  public enum Form: Sendable { case csv, jsonLines }

  /// The fault and its line.
  public struct Fault: Error, Equatable, Sendable, CustomStringConvertible {
    /// Counted from 1.
    public var line: Int
    public var why: String
    public var description: String { "line \(line): \(why)" }
  }
  public static let head = "number,label,kind"

  private let form: Form
  private let acceptsRemovals: Bool
  private var list: ContactList
  private var rest: [UInt8] = []
  private var line = 0

  /// - Parameters:
  ///   - acceptsRemovals: the list changes a directory; else `remove` is a fault.
  ///   - limit: the maximum of contacts.
  public init(_ form: Form, acceptsRemovals: Bool = false, limit: Int = Limits.contacts) {
    (self.form, self.acceptsRemovals) = (form, acceptsRemovals)
    list = ContactList(limit: limit)
  }

  public var count: Int { list.count }

  /// The next bytes, cut anywhere. Throws `Fault`; call nothing afterwards.
  public mutating func read(_ bytes: some Collection<UInt8>) throws {
    rest.append(contentsOf: bytes)
    var start = 0
    while let end = rest[start...].firstIndex(of: UInt8(ascii: "\n")) {
      line += 1
      guard end - start <= Limits.contactLineBytes else { throw Fault(line: line, why: Self.tooLong) }
      try readLine(rest[start..<end])
      start = end + 1
    }
    rest.removeFirst(start)
    guard rest.count <= Limits.contactLineBytes else { throw Fault(line: line + 1, why: Self.tooLong) }
  }
  private static var tooLong: String { "is longer than \(Limits.contactLineBytes) bytes" }

  /// The whole list. Throws `Fault`.
  public mutating func finish() throws -> ContactList {
    guard rest.isEmpty else { throw Fault(line: line + 1, why: "ends without a line break: is the file whole?") }
    guard line > 0 || form == .jsonLines else { throw Fault(line: 1, why: "the file is empty; it begins with \(Self.head)") }
    do throws(ContactList.Fault) {
      try list.finish()
    } catch {
      guard case .twice(_, let first, let second) = error else { throw Fault(line: line, why: error.description) }
      let before = form == .csv ? 2 : 1
      throw Fault(line: second + before, why: "\(error), first in line \(first + before)")
    }
    return list
  }

  private mutating func readLine(_ bytes: ArraySlice<UInt8>) throws {
    var bytes = bytes
    if bytes.last == UInt8(ascii: "\r") { bytes.removeLast() }
    if line == 1, bytes.starts(with: [0xef, 0xbb, 0xbf]) { bytes = bytes.dropFirst(3) }
    guard let text = String(validating: bytes, as: UTF8.self) else { throw Fault(line: line, why: "is not UTF-8") }
    let fields: [String]
    switch form {
    case .csv:
      if line == 1 {
        guard text == Self.head else { throw Fault(line: 1, why: "is not \(Self.head), but \"\(text.prefix(40))\"") }
        return
      }
      guard let read = CSVLine.fields(text) else { throw Fault(line: line, why: "a quotation mark is misplaced") }
      guard read.count == 3 else { throw Fault(line: line, why: "has \(read.count) fields, not \(Self.head)") }
      fields = read
    case .jsonLines:
      struct Row: Decodable {
        var number: String
        var label: String?
        var kind: String?
      }
      guard let row = try? JSONDecoder().decode(Row.self, from: Data(text.utf8)) else {
        throw Fault(line: line, why: #"is not {"number":"+…","label":"…","kind":"identify or block"}"#)
      }
      fields = [row.number, row.label ?? "", row.kind ?? ""]
    }
    do throws(ContactList.Fault) {
      try add(fields)
    } catch {
      throw Fault(line: line, why: error.description)
    }
  }

  private mutating func add(_ fields: [String]) throws(ContactList.Fault) {
    let number = try ContactList.number(fields[0])
    let label = fields[1].isEmpty ? nil : fields[1]
    switch fields[2] {
    case "identify", "": try list.add(Contact(number, label: label))
    case "block": try list.add(Contact(number, label: label, isBlocked: true))
    case "remove" where acceptsRemovals: try list.add(Contact(number), isRemoved: true)
    default: throw .unknownKind(fields[2])
    }
  }
}
