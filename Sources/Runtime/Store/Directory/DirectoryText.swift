import Cluster

/// Parts of directories as the engine has them: a line of their own, then contacts as an import has them (`ContactReader`).
///
///     1 whole FROM VERSION PARTS                          the head of a whole directory; its parts are lines of contacts only
///     1 change FROM TO whole|part NUMBER OF               one of OF parts of a change; whole: the directory was replaced
///
/// The first number is the format. Whatever is not so is nil: who may write to the engine may have written it.
enum DirectoryText {
  struct Change: Equatable {
    var from: Int
    var to: Int
    var replaces: Bool
    var number: Int
    var count: Int
    var contacts: [(number: Int64, contact: Contact?)] = []

    static func == (a: Change, b: Change) -> Bool {
      (a.from, a.to, a.replaces, a.number, a.count) == (b.from, b.to, b.replaces, b.number, b.count)
    }
  }

  /// Contacts in as few parts as hold them; one without any if there are none.
  static func parts(_ contacts: [(number: Int64, contact: Contact?)]) -> [String] {
    var parts = [""]
    var (count, bytes) = (0, 0)
    for (number, contact) in contacts {
      let line = line(number, contact)
      if count == Limits.sharedPartContacts || bytes + line.utf8.count > Limits.sharedPartBytes {
        parts.append("")
        (count, bytes) = (0, 0)
      }
      parts[parts.count - 1] += line
      (count, bytes) = (count + 1, bytes + line.utf8.count)
    }
    return parts
  }

  static func line(_ number: Int64, _ contact: Contact?) -> String {
    guard let contact else { return "+\(number),,remove\n" }
    return "+\(number),\(CSVLine.quoted(contact.label ?? "")),\(contact.isBlocked ? "block" : "identify")\n"
  }

  static func changes(
    _ contacts: [(number: Int64, contact: Contact?)], from: Int, to: Int, replaces: Bool
  ) -> [[UInt8]] {
    let parts = parts(contacts)
    return parts.enumerated().map { number, lines in
      Array("\(format) change \(from) \(to) \(replaces ? "whole" : "part") \(number) \(parts.count)\n\(lines)".utf8)
    }
  }

  /// - Parameter from: the version that the engine had before; 0: none. The same: only written anew.
  static func head(from: Int, version: Int, parts: Int) -> [UInt8] {
    Array("\(format) whole \(from) \(version) \(parts)\n".utf8)
  }

  static func head(_ bytes: [UInt8]) -> (from: Int, version: Int, parts: Int)? {
    guard let (words, rest) = firstLine(bytes), rest.isEmpty, words.count == 5, words[1] == "whole",
      let from = number(words[2]), let version = number(words[3]), let parts = number(words[4]), version > 0, from <= version,
      parts <= Limits.contacts
    else { return nil }
    return (from, version, parts)
  }

  static func change(_ bytes: [UInt8]) -> Change? {
    guard let (words, rest) = firstLine(bytes), words.count == 7, words[1] == "change", let from = number(words[2]),
      let to = number(words[3]), from < to, words[4] == "whole" || words[4] == "part", let place = number(words[5]),
      let count = number(words[6]), place < count, count <= Cluster.Limits.directoryChanges
    else { return nil }
    var reader = ContactReader(.csv, takesRemovals: true, limit: Limits.sharedPartContacts)
    guard (try? reader.take(Array((ContactReader.head + "\n").utf8))) != nil, (try? reader.take(rest)) != nil,
      let list = try? reader.finish()
    else { return nil }
    let contacts = (0..<list.count).map { index in
      let (contact, isRemoved) = list.contact(index)
      return (contact.number, isRemoved ? nil : contact)
    }
    return Change(from: from, to: to, replaces: words[4] == "whole", number: place, count: count, contacts: contacts)
  }

  private static let format = 1

  private static func firstLine(_ bytes: [UInt8]) -> (words: [Substring], rest: ArraySlice<UInt8>)? {
    guard let end = bytes.prefix(Limits.sharedHeadBytes).firstIndex(of: UInt8(ascii: "\n")) else { return nil }
    let words = String(decoding: bytes[..<end], as: UTF8.self).split(separator: " ")
    guard words.first == "\(format)" else { return nil }
    return (words, bytes[(end + 1)...])
  }

  private static func number(_ word: Substring) -> Int? { Int(word).flatMap { (0...1 << 53).contains($0) ? $0 : nil } }
}

/// Changes as they are read from the engine, in order.
struct ChangeChain {
  let base: Int
  private(set) var incoming: [Int64: DirectoryFile.Incoming] = [:]
  /// The last that replaced the directory.
  private(set) var replaced = 0
  /// Up to which version it leads.
  private(set) var version: Int
  private var parts: Set<Int> = []
  private var current: DirectoryText.Change?
  /// Somebody who did not have `base` has changed what was before it: the engine has lost it.
  private(set) var isBroken = false

  init(from base: Int) { (self.base, version) = (base, base) }

  /// False: these do not follow each other from `base` on, are not readable, or too many.
  mutating func add(_ values: [[UInt8]]) -> Bool {
    for value in values {
      guard let change = DirectoryText.change(value) else { return false }
      if let current, change.to == current.to {
        guard (change.from, change.count, change.replaces) == (current.from, current.count, current.replaces) else {
          return false
        }
      } else {
        guard current == nil, change.from == version else {
          isBroken = version == base && change.from < base
          return false
        }
        (current, parts) = (change, [])
      }
      guard parts.insert(change.number).inserted else { return false }
      for (number, contact) in change.contacts { incoming[number] = .init(contact: contact, version: change.to) }
      if change.replaces { replaced = change.to }
      guard incoming.count <= Limits.logged else { return false }
      if parts.count == change.count { (version, current) = (change.to, nil) }
    }
    return true
  }

  /// It leads to this version, and no part is missing.
  func leads(to version: Int) -> Bool { current == nil && self.version == version }
}
