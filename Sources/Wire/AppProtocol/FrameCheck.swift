/// Why a frame ends its connection; the peer is sent `closeCode`.
public enum FrameError: Error, Hashable, Sendable {
  /// More than `Limits.frameBytes`.
  case tooBig(Int)
  /// Not a JSON object in UTF-8, at this byte where known.
  case notAnObject
  /// More than `Limits.jsonDepth` objects and arrays inside one another; the offset of the first one beyond it.
  case tooDeep(Int)
  /// No `t`, or one that is not a text.
  case noType

  public var closeCode: CloseCode {
    switch self {
    case .tooBig: .tooBig
    case .notAnObject, .tooDeep, .noType: .malformed
    }
  }
}

/// What must hold before a general JSON reader may see the bytes: size, depth, an object, no NUL (which would make it guess
/// UTF-16).
func checkFrame(_ bytes: [UInt8]) throws(FrameError) {
  guard bytes.count <= Limits.frameBytes else { throw .tooBig(bytes.count) }
  guard let first = bytes.first(where: { $0 != 0x20 && $0 != 0x09 && $0 != 0x0a && $0 != 0x0d }), first == UInt8(ascii: "{")
  else {
    throw .notAnObject
  }
  var depth = 0
  var inText = false
  var escaped = false
  var last = first
  for (offset, byte) in bytes.enumerated() {
    if byte == 0 { throw .notAnObject }
    if inText {
      if escaped {
        escaped = false
      } else if byte == UInt8(ascii: "\\") {
        escaped = true
      } else if byte == UInt8(ascii: "\"") {
        inText = false
      }
      continue
    }
    switch byte {
    case 0x20, 0x09, 0x0a, 0x0d: continue
    case UInt8(ascii: "\""): inText = true
    case UInt8(ascii: "{"), UInt8(ascii: "["):
      depth += 1
      if depth > Limits.jsonDepth { throw .tooDeep(offset) }
    case UInt8(ascii: "}"), UInt8(ascii: "]"):
      depth -= 1
      if last == UInt8(ascii: ",") { throw .notAnObject }  // the general reader would let a trailing comma pass
    default: break
    }
    last = byte
  }
  guard depth == 0, !inText, String(validating: bytes, as: UTF8.self) != nil else { throw .notAnObject }
}
