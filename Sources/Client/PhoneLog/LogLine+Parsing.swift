import TrunklineBytes

extension LogLine {
  /// Why a text is not a line of the log.
  public struct Problem: Error, Sendable, Equatable {
    public let text: String
  }

  /// Lines of both writers are far shorter.
  public static let maximumBytes = 4_096
  private static let maximumFields = 32

  /// - Parameter bytes: without the line's end.
  public init(parsing bytes: ArraySlice<UInt8>) throws(Problem) {
    guard bytes.count <= Self.maximumBytes else { throw Problem(text: "it is longer than \(Self.maximumBytes) bytes") }
    var rest = bytes
    let time = try Self.time(Self.word(&rest))
    guard let who = Who(rawValue: try Self.text(Self.word(&rest))) else {
      throw Problem(text: "the second word is not app, system, user or network")
    }
    let event = try Self.text(Self.word(&rest))
    guard !event.isEmpty, event.utf8.allSatisfy(Self.isNameByte) else { throw Problem(text: "the third word is not an event") }
    var fields: [Field] = []
    while !rest.isEmpty {
      guard fields.count < Self.maximumFields else { throw Problem(text: "it has more than \(Self.maximumFields) fields") }
      fields.append(try Self.field(&rest))
    }
    self.init(time, who, event, fields)
  }

  private static func isNameByte(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "0")...UInt8(ascii: "9"): true
    default: false
    }
  }

  /// Reads up to the next space, and consumes that too.
  private static func word(_ rest: inout ArraySlice<UInt8>) -> ArraySlice<UInt8> {
    let end = rest.firstIndex(of: UInt8(ascii: " ")) ?? rest.endIndex
    defer { rest = end < rest.endIndex ? rest[(end + 1)...] : [] }
    return rest[rest.startIndex..<end]
  }

  private static func text(_ bytes: ArraySlice<UInt8>) throws(Problem) -> String {
    guard let text = String(validating: bytes, as: UTF8.self) else { throw Problem(text: "it is not UTF-8") }
    return text
  }

  /// `12.345`, up to 30 years.
  private static func time(_ bytes: ArraySlice<UInt8>) throws(Problem) -> Instant {
    var (value, digits, decimals): (Int64, Int, Int?) = (0, 0, nil)
    for byte in bytes {
      if byte == UInt8(ascii: "."), decimals == nil, digits > 0 {
        decimals = 0
        continue
      }
      guard byte >= UInt8(ascii: "0"), byte <= UInt8(ascii: "9"), digits < 13 else {
        throw Problem(text: "the first word is not a time: seconds with three decimals")
      }
      value = value * 10 + Int64(byte - UInt8(ascii: "0"))
      digits += 1
      decimals = decimals.map { $0 + 1 }
    }
    guard decimals == 3, value <= 1_000_000_000_000 else {
      throw Problem(text: "the first word is not a time: seconds with three decimals")
    }
    return Instant(nanoseconds: value * 1_000_000)
  }

  private static func field(_ rest: inout ArraySlice<UInt8>) throws(Problem) -> Field {
    guard let equals = rest.firstIndex(of: UInt8(ascii: "=")), equals > rest.startIndex,
      rest[rest.startIndex..<equals].allSatisfy(isNameByte)
    else { throw Problem(text: "a field is not key=value") }
    let key = try text(rest[rest.startIndex..<equals])
    rest = rest[(equals + 1)...]
    guard rest.first == UInt8(ascii: "\"") else { return (key, try text(word(&rest))) }
    return (key, try quoted(&rest))
  }

  /// A JSON string; of the escapes only those that this format writes, and the single letters.
  private static func quoted(_ rest: inout ArraySlice<UInt8>) throws(Problem) -> String {
    var out: [UInt8] = []
    var index = rest.startIndex + 1
    while index < rest.endIndex {
      let byte = rest[index]
      if byte == UInt8(ascii: "\"") {
        let next = index + 1
        guard next == rest.endIndex || rest[next] == UInt8(ascii: " ") else {
          throw Problem(text: "a string continues after its end")
        }
        rest = next < rest.endIndex ? rest[(next + 1)...] : []
        return try text(out[...])
      }
      guard byte == UInt8(ascii: "\\") else {
        out.append(byte)
        index += 1
        continue
      }
      let (scalar, length) = try escape(rest[index...])
      out.append(contentsOf: Array(String(Character(scalar)).utf8))
      index += length
    }
    throw Problem(text: "a string has no end")
  }

  private static func escape(_ bytes: ArraySlice<UInt8>) throws(Problem) -> (Unicode.Scalar, length: Int) {
    switch bytes.dropFirst().first.map({ Character(Unicode.Scalar($0)) }) {
    case "\"": return ("\"", 2)
    case "\\": return ("\\", 2)
    case "/": return ("/", 2)
    case "n": return ("\n", 2)
    case "r": return ("\r", 2)
    case "t": return ("\t", 2)
    case "u":
      let digits = bytes.dropFirst(2).prefix(4)
      if digits.count == 4, let value = UInt32(String(decoding: digits, as: UTF8.self), radix: 16),
        let scalar = Unicode.Scalar(value)
      {
        return (scalar, 6)
      }
    default: break
    }
    throw Problem(text: "a string has an unknown escape")
  }
}
