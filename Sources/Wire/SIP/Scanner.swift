/// Reads a part of a message's bytes. Never reads outside its range; every failure is a `ParseError`.
///
/// Folded lines are already unfolded: `Message` replaces the line ends inside a field by spaces first.
struct Scanner: ~Escapable {
  let bytes: Span<UInt8>
  var position: Int
  let end: Int

  @_lifetime(copy bytes)
  init(_ bytes: Span<UInt8>, _ range: ByteRange) {
    self.bytes = bytes
    end = min(range.upper, bytes.count)
    position = min(range.lower, end)
  }

  @inline(__always) var atEnd: Bool { position >= end }
  /// The next byte; 0 at the end (a NUL is legal nowhere outside quoted strings).
  @inline(__always) var next: UInt8 { position < end ? bytes[position] : 0 }

  @inline(__always) @_lifetime(self: copy self) mutating func skipBlanks() {
    while position < end, bytes[position].isBlank { position &+= 1 }
  }

  @inline(__always) @_lifetime(self: copy self) mutating func skip(_ byte: UInt8) -> Bool {
    guard position < end, bytes[position] == byte else { return false }
    position &+= 1
    return true
  }

  @inline(__always) @_lifetime(self: copy self) mutating func expect(_ byte: UInt8, _ rule: ParseError.Rule) throws(ParseError) {
    guard skip(byte) else { throw ParseError(rule, at: position) }
  }

  /// The longest run of bytes in a class; may be empty.
  @inline(__always) @_lifetime(self: copy self) mutating func run(_ set: CharacterClass) -> ByteRange {
    let start = position
    while position < end, set.contains(bytes[position]) { position &+= 1 }
    return ByteRange(from: start, to: position)
  }

  @_lifetime(self: copy self) mutating func token(_ rule: ParseError.Rule = .token) throws(ParseError) -> ByteRange {
    let range = run(.token)
    guard !range.isEmpty else { throw ParseError(rule, at: position) }
    return range
  }

  /// A decimal number of at most `limit`; leading zeros are legal.
  @_lifetime(self: copy self) mutating func number(upTo limit: UInt32, _ rule: ParseError.Rule = .number) throws(ParseError)
    -> UInt32
  {
    let start = position
    var value: UInt64 = 0
    while position < end, bytes[position].isDigit {
      value = value &* 10 &+ UInt64(bytes[position] &- 48)
      guard value <= UInt64(limit) else { throw ParseError(rule, at: start) }
      position &+= 1
    }
    guard position > start else { throw ParseError(rule, at: start) }
    return UInt32(truncatingIfNeeded: value)
  }

  /// Reads a quoted string at the opening quote; returns the text between the quotes, still escaped.
  @_lifetime(self: copy self) mutating func quoted() throws(ParseError) -> ByteRange {
    let open = position
    try expect(.quote, .quotedString)
    let start = position
    while position < end {
      let byte = bytes[position]
      if byte == .quote {
        position &+= 1
        return ByteRange(from: start, to: position - 1)
      }
      position &+= byte == .backslash ? 2 : 1
    }
    position = end
    throw ParseError(.quotedString, at: open)
  }

  /// Throws unless only blanks follow.
  @_lifetime(self: copy self) mutating func finish() throws(ParseError) {
    skipBlanks()
    guard atEnd else { throw ParseError(.trailing, at: position) }
  }

  /// Case-insensitive comparison of a range with a lower-case literal.
  @inline(__always) func equals(_ range: ByteRange, _ literal: StaticString) -> Bool {
    bytes.equals(range, literal)
  }
}

/// `;name` or `;name=value`.
struct Parameter {
  var name: ByteRange
  /// Without the quotes of a quoted string; nil if there was no `=`.
  var value: ByteRange?
  var isQuoted: Bool
}

extension Scanner {
  /// The next `; name [= value]`; nil at the end or at anything but a semicolon, which stays unread.
  @_lifetime(self: copy self) mutating func parameter() throws(ParseError) -> Parameter? {
    skipBlanks()
    guard skip(.semicolon) else { return nil }
    skipBlanks()
    let name = try token(.parameter)
    skipBlanks()
    guard skip(.equals) else { return Parameter(name: name, value: nil, isQuoted: false) }
    skipBlanks()
    if next == .quote { return Parameter(name: name, value: try quoted(), isQuoted: true) }
    let value = run(.parameterValue)
    guard !value.isEmpty else { throw ParseError(.parameter, at: position) }
    return Parameter(name: name, value: value, isQuoted: false)
  }
}

extension Span<UInt8> {
  /// Case-insensitive comparison of a range with a lower-case literal. A range outside the bytes equals nothing.
  @inline(__always) func equals(_ range: ByteRange, _ literal: StaticString) -> Bool {
    guard range.count == literal.utf8CodeUnitCount, range.upper <= count else { return false }
    let text = UnsafeBufferPointer(start: literal.utf8Start, count: literal.utf8CodeUnitCount)
    for index in 0..<text.count where self[range.lower &+ index].lowered != text[index] { return false }
    return true
  }
}
