import CPhoneNumbers

/// The numbering plans of all regions, as Scripts/numbers has made them of libphonenumber's metadata: 128 KB in the binary, read once.
///
/// | part | what |
/// |---|---|
/// | header, 96 bytes | `trunkline-numbers 1 phonenumbers VERSION`; at 48 the body's FNV-1a, the length of all, and that of each section |
/// | regions | `Region.words` words each: by calling code, its main region first |
/// | marks | sets of `Marks`, of which states name one by its index |
/// | national, short | automata: a word of edges and marks, then (digits, state) for each edge |
/// | programs | of `match` |
/// | texts | a byte of length, then ASCII |
///
/// A look-up walks one state a digit. Immutable; read from any thread.
final class PlanTable: Sendable {
  enum Fault: Error, Equatable {
    /// The first bytes are those of another file, or of another version of the layout.
    case notATable
    /// The length or the checksum is another than the header says.
    case damaged
  }

  /// What a national number is, by the patterns of its region.
  struct Marks: OptionSet, Sendable {
    let rawValue: UInt16
    /// Fits the general pattern, whatever its length.
    static let general = Marks(rawValue: 1)
    static let premium = Marks(rawValue: 1 << 1)
    static let tollFree = Marks(rawValue: 1 << 2)
    static let sharedCost = Marks(rawValue: 1 << 3)
    static let voip = Marks(rawValue: 1 << 4)
    static let personal = Marks(rawValue: 1 << 5)
    static let universal = Marks(rawValue: 1 << 7)
    /// Any of the ten types: the number is valid.
    static let anyType = Marks(rawValue: 0x7FE)
    /// Types whose subscribers choose their digits for the letters on them.
    static let vanity: Marks = [.premium, .tollFree, .sharedCost, .personal, .universal]

    /// Of a short number.
    static let emergency = Marks(rawValue: 1)
    static let short = Marks(rawValue: 2)
  }

  /// A row of the table, read where it stands.
  struct Region: Sendable {
    static let words = 16
    /// ISO 3166-1, two letters, the first one below; 0 of a code that is no region's.
    let id: UInt16
    /// 1 to 3 digits.
    let code: UInt16
    let isMain: Bool
    let national: Int
    /// Nil: no short numbers are known.
    let short: Int?
    /// Bit n: n digits.
    let lengths: UInt32
    let localLengths: UInt32
    /// Programs.
    let international: Int?
    let prefix: Int?
    let leadingDigits: Int?
    /// A text: what `prefix` is replaced by, with `$1` and `$2`.
    let transform: Int?
    let groups: Int
    /// A text: what is dialled before a national number; nil: nothing is, or it is not simple.
    let nationalPrefix: Int?

    var isRegion: Bool { id != 0 }
    var name: String { isRegion ? String(decoding: [UInt8(id & 255), UInt8(id >> 8)], as: UTF8.self) : "001" }
  }

  let version: String
  let regions: [Region]
  private let regionIndexes: [UInt16: Int]
  /// The first region of a calling code; -1: none.
  private let ofCode: [Int16]
  private let marks: [UInt16]
  private let national: [UInt16]
  private let short: [UInt16]
  private let programs: [UInt16]
  private let texts: [UInt8]

  /// That of this binary; nil if it is damaged, in which case every number is refused.
  static let shared = try? PlanTable(UnsafeBufferPointer(start: cphone_numbers, count: cphone_numbers_length))

  private static let name = Array("trunkline-numbers 1 phonenumbers ".utf8)
  private static let headerBytes = 96

  init(_ bytes: some RandomAccessCollection<UInt8>) throws(Fault) {
    let bytes = Array(bytes)
    guard bytes.count >= Self.headerBytes, bytes.starts(with: Self.name) else { throw .notATable }
    func integer(_ offset: Int) -> Int { (0..<4).reduce(0) { $0 | Int(bytes[offset + $1]) << (8 * $1) } }
    let sizes = (0..<6).map { integer(56 + 4 * $0) }
    guard integer(52) == bytes.count, Self.headerBytes + sizes[..<5].reduce(0, +) * 2 + sizes[5] == bytes.count,
      sizes[0] % Region.words == 0,
      bytes[Self.headerBytes...].reduce(0x811C_9DC5 as UInt32, { ($0 ^ UInt32($1)) &* 0x0100_0193 }) == UInt32(integer(48))
    else { throw .damaged }
    version = String(decoding: bytes[Self.name.count..<48].prefix { $0 != 10 }, as: UTF8.self)
    var offset = Self.headerBytes
    func section(_ size: Int) -> [UInt16] {
      defer { offset += 2 * size }
      return (0..<size).map { UInt16(bytes[offset + 2 * $0]) | UInt16(bytes[offset + 2 * $0 + 1]) << 8 }
    }
    let rows = section(sizes[0])
    (marks, national, short, programs) = (section(sizes[1]), section(sizes[2]), section(sizes[3]), section(sizes[4]))
    texts = Array(bytes[offset...])
    func optional(_ word: UInt16) -> Int? { word == .max ? nil : Int(word) }
    regions = stride(from: 0, to: rows.count, by: Region.words).map { start in
      let row = rows[start..<start + Region.words].map { $0 }
      return Region(
        id: row[0], code: row[1], isMain: row[2] == 1, national: Int(row[3]), short: optional(row[4]),
        lengths: UInt32(row[5]) | UInt32(row[6]) << 16, localLengths: UInt32(row[7]) | UInt32(row[8]) << 16,
        international: optional(row[9]), prefix: optional(row[10]), leadingDigits: optional(row[11]),
        transform: optional(row[12]),
        groups: Int(row[13]), nationalPrefix: optional(row[14]))
    }
    var (ofCode, regionIndexes) = ([Int16](repeating: -1, count: 1_000), [UInt16: Int]())
    for (index, region) in regions.enumerated() {
      if region.isMain { ofCode[Int(region.code)] = Int16(index) }
      if region.isRegion { regionIndexes[region.id] = index }
    }
    (self.ofCode, self.regionIndexes) = (ofCode, regionIndexes)
  }

  /// By two letters, upper case.
  func region(_ id: String) -> Int? {
    let letters = Array(id.utf8)
    return letters.count == 2 ? regionIndexes[UInt16(letters[0]) | UInt16(letters[1]) << 8] : nil
  }

  func text(_ offset: Int) -> ArraySlice<UInt8> { texts[(offset + 1)...].prefix(Int(texts[offset])) }

  /// The main region of a calling code.
  func region(code: Int) -> Int? {
    guard ofCode.indices.contains(code), ofCode[code] >= 0 else { return nil }
    return Int(ofCode[code])
  }

  /// All regions of a calling code, the main one first.
  func regions(sharing main: Int) -> Range<Int> {
    var end = main + 1
    while end < regions.count, regions[end].code == regions[main].code { end += 1 }
    return main..<end
  }

  /// The calling code that digits begin with, and how many digits it has; nil: there is none such. No code begins with another one.
  func code(of digits: some Collection<UInt8>) -> (region: Int, length: Int)? {
    var (value, length) = (0, 0)
    for digit in digits.prefix(3) {
      value = value * 10 + Int(digit)
      length += 1
      if value == 0 { return nil }
      if let region = region(code: value) { return (region, length) }
    }
    return nil
  }

  // MARK: patterns

  func marks(national digits: some Collection<UInt8>, _ region: Int) -> Marks {
    Self.walk(national, from: regions[region].national, digits, marks)
  }
  func marks(short digits: some Collection<UInt8>, _ region: Int) -> Marks {
    regions[region].short.map { Self.walk(short, from: $0, digits, marks) } ?? []
  }

  private static func walk(_ words: [UInt16], from root: Int, _ digits: some Collection<UInt8>, _ marks: [UInt16]) -> Marks {
    var state = root
    digits: for digit in digits {
      let edges = Int(words[state] & 15)
      for edge in 0..<edges where words[state + 1 + 2 * edge] >> digit & 1 == 1 {
        state = Int(words[state + 2 + 2 * edge])
        continue digits
      }
      return []
    }
    return Marks(rawValue: marks[Int(words[state] >> 4)])
  }

  /// Where a pattern matched, and its first two groups.
  struct Match {
    var end = 0
    fileprivate var bounds = SIMD8<Int8>(repeating: -1)
    func group(_ number: Int) -> Range<Int>? {
      let (start, end) = (bounds[2 * number], bounds[2 * number + 1])
      return start < 0 || end < start ? nil : Int(start)..<Int(end)
    }
  }

  /// The beginning of `digits` as a regular expression takes it: alternatives in their order, as many repeats as there are, groups kept.
  /// Bounded by `Limits.steps`.
  func match(_ program: Int?, _ digits: some RandomAccessCollection<UInt8>) -> Match? {
    guard var counter = program else { return nil }
    var (found, at, steps) = (Match(), 0, 0)
    var others: [(counter: Int, at: Int, bounds: SIMD8<Int8>)] = []
    while steps < Limits.steps {
      steps += 1
      let (operation, operand) = (programs[counter] >> 12, Int(programs[counter] & 0xFFF))
      var continues = true
      switch operation {
      case 0:
        if at < digits.count, operand >> Int(digits[digits.index(digits.startIndex, offsetBy: at)]) & 1 == 1 {
          (counter, at) = (counter + 1, at + 1)
        } else {
          continues = false
        }
      case 1:
        others.append((counter + operand, at, found.bounds))
        counter += 1
      case 2: counter += operand
      case 3:
        if operand < 6 { found.bounds[operand] = Int8(truncatingIfNeeded: at) }
        counter += 1
      case 4 where at == digits.count: counter += 1
      case 5:
        found.end = at
        return found
      default: continues = false
      }
      guard !continues else { continue }
      guard let other = others.popLast() else { return nil }
      (counter, at, found.bounds) = other
    }
    return nil
  }
}
