/// A command of the Redis protocol (RESP2): its name and arguments, any bytes. Adding an argument copies it once; writing is a
/// copy.
///
///     var command = RESPCommand("HSET", key, field)
///     command.add(value)                       // [UInt8]
///     command.write(to: &unsent)               // *4\r\n$4\r\nHSET\r\n…
///
/// The bytes equal those of hiredis' `redisFormatCommandArgv` (RESPCommandTests compares them), which needs an array of C
/// pointers where this needs one loop.
public struct RESPCommand: Hashable, Sendable {
  /// Number of arguments, including the name.
  public private(set) var arguments = 0
  /// `\r\n$length\r\nargument` of each: the line end of one is added with the head of the next.
  private var body: [UInt8] = []

  public init(_ parts: String...) {
    body.reserveCapacity(Limits.commandBytes)
    for part in parts { add(part) }
  }

  public mutating func add(_ text: String) {
    var text = text
    text.withUTF8 { add($0) }
  }

  public mutating func add(_ bytes: [UInt8]) { bytes.withUnsafeBufferPointer { add($0) } }

  public mutating func add(_ number: Int64) { add(String(number)) }

  /// The size of what `write` appends, within 24 bytes.
  public var byteCount: Int { body.count + 24 }

  /// Appends the command to the octets to be sent.
  public func write(to unsent: inout [UInt8]) {
    Self.withHead("*", arguments) { head in
      unsent.append(contentsOf: UnsafeBufferPointer(rebasing: head.dropFirst(2).dropLast(2)))
    }
    unsent += body
    unsent.append(13)
    unsent.append(10)
  }

  private mutating func add(_ bytes: UnsafeBufferPointer<UInt8>) {
    arguments &+= 1
    Self.withHead("$", bytes.count) { head in body.append(contentsOf: head) }
    body.append(contentsOf: bytes)
  }

  /// `\r\n`, kind, number, `\r\n`.
  private static func withHead(_ kind: Unicode.Scalar, _ number: Int, _ use: (UnsafeBufferPointer<UInt8>) -> Void) {
    withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 32) { head in
      var offset = head.count - 2
      head[offset] = 13
      head[offset + 1] = 10
      var rest = UInt(bitPattern: number)
      repeat {
        offset -= 1
        head[offset] = 48 + UInt8(truncatingIfNeeded: rest % 10)
        rest /= 10
      } while rest > 0
      offset -= 3
      head[offset] = 13
      head[offset + 1] = 10
      head[offset + 2] = UInt8(ascii: kind)
      use(UnsafeBufferPointer(rebasing: head[offset...]))
    }
  }
}
