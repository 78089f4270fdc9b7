import TrunklineBytes

/// Undoes the backslashes of a quoted string.
func unescapeQuoted(_ text: ArraySlice<UInt8>) -> String {
  guard text.contains(.backslash) else { return String(decoding: text, as: UTF8.self) }
  var out: [UInt8] = []
  var escaped = false
  for byte in text {
    if byte == .backslash, !escaped {
      escaped = true
    } else {
      out.append(byte)
      escaped = false
    }
  }
  return String(decoding: out, as: UTF8.self)
}

/// Undoes `%HH` once (RFC 3986 §2.1); other text stays.
public func percentDecoded(_ text: ArraySlice<UInt8>) -> [UInt8] {
  text.contains(.percent) ? decodingEscapes(text) : Array(text)
}

/// The same for bytes that are not a message's.
public func percentDecoded(_ text: some Sequence<UInt8>) -> [UInt8] { decodingEscapes(text) }

private func decodingEscapes(_ text: some Sequence<UInt8>) -> [UInt8] {
  var out: [UInt8] = []
  var pending: [UInt8] = []
  for byte in text {
    pending.append(byte)
    if pending[0] != .percent || (pending.count == 2 && hexDigit(byte) == nil) {
      out += pending
      pending.removeAll(keepingCapacity: true)
    } else if pending.count == 3 {
      if let high = hexDigit(pending[1]), let low = hexDigit(byte) { out.append(high << 4 | low) } else { out += pending }
      pending.removeAll(keepingCapacity: true)
    }
  }
  return out + pending
}

/// The text as `user` of a SIP URI: other characters are escaped, and also `%`, `?`, `,` and `;`: some peers
/// split at `;`.
public func percentEncodedUser(_ text: String) -> String {
  if text.utf8.allSatisfy({ CharacterClass.user.contains($0) && !$0.isEscapedInUser }) { return text }
  var out = ""
  for byte in text.utf8 {
    if CharacterClass.user.contains(byte), !byte.isEscapedInUser {
      out.unicodeScalars.append(Unicode.Scalar(byte))
    } else {
      out += "%" + hexString([byte]).uppercased()
    }
  }
  return out
}

extension UInt8 {
  /// Allowed in `user`, but with a meaning of its own there.
  fileprivate var isEscapedInUser: Bool { self == .percent || self == .semicolon || self == .question || self == .comma }
}

/// The text as a quoted string, quotes included; control characters are left out.
public func quotedString(_ text: String) -> String {
  var out = "\""
  for character in text.unicodeScalars where character.value >= 32 && character.value != 127 {
    if character == "\"" || character == "\\" { out += "\\" }
    out.unicodeScalars.append(character)
  }
  return out + "\""
}
