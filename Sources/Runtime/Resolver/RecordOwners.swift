/// States for each record of a type in a DNS answer, in their order, whether its owner is the queried name or an alias of it (RFC
/// 1034 §3.6.2). c-ares checks this for addresses, but accepts SRV and NAPTR records of any name. Empty if the message is
/// malformed.
///
/// Costs an array for each name of the message, `Limits.records` of them at most.
func recordsOfQuestion(_ message: UnsafeBufferPointer<UInt8>, type: Int) -> [Bool] {
  var reader = NameReader(message)
  guard let questions = reader.word(4), let answers = reader.word(6), questions == 1, let question = reader.name() else {
    return []
  }
  reader.at += 4
  var owners: [[UInt8]] = []
  var aliases: [[UInt8]: [UInt8]] = [:]
  for _ in 0..<min(answers, Limits.records) {
    guard let owner = reader.name(), let kind = reader.word(reader.at), let length = reader.word(reader.at + 8) else { break }
    let data = reader.at + 10
    if kind == type { owners.append(owner) }
    if kind == NameReader.alias {
      reader.at = data
      aliases[owner] = reader.name()
    }
    reader.at = data + length
  }
  var names: Set<[UInt8]> = [question]
  var next = aliases[question]
  while let name = next, names.insert(name).inserted { next = aliases[name] }
  return owners.map(names.contains)
}

/// Names of a DNS message (RFC 1035 §3.1, §4.1.4), as labels with their lengths in lower case.
private struct NameReader {
  static let alias = 5
  private static let nameBytes = 255
  private let message: UnsafeBufferPointer<UInt8>
  /// Offset of the next name.
  var at = 12

  init(_ message: UnsafeBufferPointer<UInt8>) { self.message = message }

  func word(_ offset: Int) -> Int? {
    guard offset >= 0, offset + 1 < message.count else { return nil }
    return Int(message[offset]) << 8 | Int(message[offset + 1])
  }

  /// Nil if the name does not end within the message or is too long, as with a pointer to itself.
  mutating func name() -> [UInt8]? {
    var out: [UInt8] = []
    var (offset, isBehindPointer, pointers) = (at, false, 0)
    while offset < message.count {
      let length = message[offset]
      if length == 0 {
        if !isBehindPointer { at = offset + 1 }
        return out
      }
      if length & 0xc0 == 0xc0 {
        guard let pointer = word(offset), pointers < Self.nameBytes else { return nil }
        if !isBehindPointer { at = offset + 2 }
        offset = pointer & 0x3fff
        isBehindPointer = true
        pointers = pointers + 1
        continue
      }
      let end = offset + 1 + Int(length)
      guard length & 0xc0 == 0, end <= message.count, out.count + Int(length) < Self.nameBytes else { return nil }
      out.append(length)
      for index in (offset + 1)..<end {
        let octet = message[index]
        out.append((UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(octet) ? octet | 0x20 : octet)
      }
      offset = end
    }
    return nil
  }
}
