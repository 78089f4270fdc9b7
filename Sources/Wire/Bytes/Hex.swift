/// The value of one hexadecimal digit in either case.
@inlinable public func hexDigit(_ byte: UInt8) -> UInt8? {
  switch byte {
  case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
  case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
  case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
  default: nil
  }
}

/// 16 lower-case digits.
public func hexString(_ value: UInt64) -> String {
  let text = String(value, radix: 16)
  return String(repeating: "0", count: 16 - text.count) + text
}

/// Two lower-case digits a byte.
public func hexString(_ bytes: some Sequence<UInt8>) -> String {
  let digits = Array("0123456789abcdef".utf8)
  var out: [UInt8] = []
  for byte in bytes {
    out.append(digits[Int(byte >> 4)])
    out.append(digits[Int(byte & 15)])
  }
  return String(decoding: out, as: UTF8.self)
}

/// Bytes of a hexadecimal text without separators; nil if a character is not a digit or the length is odd.
public func hexBytes(_ text: some StringProtocol) -> [UInt8]? {
  let digits = Array(text.utf8)
  guard digits.count % 2 == 0 else { return nil }
  var out: [UInt8] = []
  out.reserveCapacity(digits.count / 2)
  for index in stride(from: 0, to: digits.count, by: 2) {
    guard let a = hexDigit(digits[index]), let b = hexDigit(digits[index + 1]) else { return nil }
    out.append(a << 4 | b)
  }
  return out
}
