import Cluster

/// A part of a version, as its head lists it: contacts from `first` on, up to the next part's.
struct DirectoryPartName: Hashable {
  var first: Int64
  /// Never used for other content.
  var name: String
}

/// The contents of a version of a directory.
struct DirectoryHead: Equatable {
  var version: Int
  /// The version that this one was made from; 0: none.
  var from: Int
  var contacts: Int
  /// Ascending. Nil: they are listed in `pages`.
  var parts: [DirectoryPartName]?
  /// Names of parts that contain names of parts.
  var pages: [String] = []
}

/// The text format of directories in the shared store: lines.
///
///     2 VERSION FROM CONTACTS parts N        a head; N lines FIRST NAME follow
///     2 VERSION FROM CONTACTS pages N        N lines NAME follow: names of pages, which contain lines FIRST NAME
///     +15550000001,Ann Example,identify      a part: contacts as an import has them, without its first line
///
/// The first number is the format. Any other text gives nil: other clients may write to the shared store, too.
enum DirectoryText {
  static func line(_ contact: Contact) -> String {
    "+\(contact.number),\(CSVLine.quoted(contact.label ?? "")),\(contact.isBlocked ? "block" : "identify")\n"
  }

  static func page(_ parts: some Sequence<DirectoryPartName>) -> [UInt8] {
    Array(parts.map { "\($0.first) \($0.name)\n" }.joined().utf8)
  }

  /// - Parameter pages: used when there are more parts than a head holds (`Limits.headParts`).
  static func head(_ head: DirectoryHead) -> [UInt8] {
    let start = "\(format) \(head.version) \(head.from) \(head.contacts)"
    guard let parts = head.parts else {
      return Array("\(start) pages \(head.pages.count)\n\(head.pages.map { $0 + "\n" }.joined())".utf8)
    }
    return Array("\(start) parts \(parts.count)\n".utf8) + page(parts)
  }

  static func head(_ bytes: [UInt8]) -> DirectoryHead? {
    guard let end = bytes.prefix(Limits.sharedHeadBytes).firstIndex(of: UInt8(ascii: "\n")) else { return nil }
    let words = String(decoding: bytes[..<end], as: UTF8.self).split(separator: " ")
    guard words.count == 6, words[0] == "\(format)", let version = number(words[1]), let from = number(words[2]),
      let contacts = number(words[3]), let count = number(words[5]), version > from, contacts <= Limits.contacts
    else { return nil }
    var head = DirectoryHead(version: version, from: from, contacts: contacts)
    let rest = bytes[(end + 1)...]
    switch words[4] {
    case "parts":
      guard let parts = parts(rest), parts.count == count else { return nil }
      head.parts = parts
    case "pages":
      guard let pages = lines(rest), pages.count == count, count > 0, pages.allSatisfy(isName) else { return nil }
      head.pages = pages.map(String.init)
    default: return nil
    }
    return head
  }

  static func parts(_ bytes: some Collection<UInt8>) -> [DirectoryPartName]? {
    guard let lines = lines(bytes) else { return nil }
    var out: [DirectoryPartName] = []
    for line in lines {
      let words = line.split(separator: " ")
      guard words.count == 2, let first = number(words[0]), isName(words[1]), first > out.last?.first ?? -1,
        out.count < Limits.sharedParts
      else { return nil }
      out.append(.init(first: Int64(first), name: String(words[1])))
    }
    return out
  }

  private static let format = 2

  /// Each ends with a line break.
  private static func lines(_ bytes: some Collection<UInt8>) -> [Substring]? {
    let text = String(decoding: bytes, as: UTF8.self)
    guard text.isEmpty || text.utf8.last == 10 else { return nil }
    return text.split(separator: "\n")
  }

  private static func isName(_ name: Substring) -> Bool {
    (1...40).contains(name.utf8.count)
      && name.utf8.allSatisfy { (48...57).contains($0) || (97...122).contains($0) || $0 == UInt8(ascii: ".") }
  }
  private static func number(_ word: Substring) -> Int? { Int(word).flatMap { (0...1 << 53).contains($0) ? $0 : nil } }
}
