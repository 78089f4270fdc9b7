/// Masks secrets in a SIP message, byte for byte, so that lengths and framing hold.
///
/// Masked with `x`: nonce, cnonce, response, rspauth, nextnonce and opaque of digest headers, whole credentials of other schemes;
/// Identity tokens (RFC 8224); passwords in SIP URIs; `a=crypto` and MIKEY keys, `k=`, `a=ice-pwd`; digits in INFO,
/// telephone-event and KPML bodies. It reads lines, not messages: bytes that are no SIP are masked by the same rules.
enum SecretMask {
  private static let mask = UInt8(ascii: "x")

  static func apply(to bytes: inout [UInt8]) {
    var state = Line(isInfo: starts(bytes.drop { $0 == 13 || $0 == 10 }, "info "))
    var index = 0
    while index < bytes.count {
      var end = lineEnd(bytes, index)
      var next = afterLineEnd(bytes, end)
      // a line that begins with a blank continues the one before
      while next < bytes.count, end > index, bytes[next] == 32 || bytes[next] == 9 {
        end = lineEnd(bytes, next)
        next = afterLineEnd(bytes, end)
      }
      state.mask(&bytes, index..<end)
      index = next
    }
  }

  private static func lineEnd(_ bytes: [UInt8], _ start: Int) -> Int {
    bytes[start...].firstIndex { $0 == 10 || $0 == 13 } ?? bytes.count
  }

  /// A line ends with CRLF, or with CR or LF alone.
  private static func afterLineEnd(_ bytes: [UInt8], _ end: Int) -> Int {
    end + 1 < bytes.count && bytes[end] == 13 && bytes[end + 1] == 10 ? end + 2 : end + 1
  }

  /// The context from the lines before.
  private struct Line {
    enum Header { case other, credentials, parameters, token }
    let isInfo: Bool
    var isBody = false
    var holdsDigits = false
    var holdsSession = false

    init(isInfo: Bool) { self.isInfo = isInfo }

    mutating func mask(_ bytes: inout [UInt8], _ line: Range<Int>) {
      if line.isEmpty {
        isBody = true
        return
      }
      maskPasswords(&bytes, line)
      maskSession(&bytes, line)
      // the parts of a multipart body have their own header fields
      if let colon = bytes[line].firstIndex(of: UInt8(ascii: ":")) {
        let value = (colon + 1)..<line.upperBound
        switch read(SecretMask.name(bytes[line.lowerBound..<colon]), bytes[value]) {
        case .other: break
        case .credentials: SecretMask.maskCredentials(&bytes, value)
        case .parameters: SecretMask.maskParameters(&bytes, value)
        case .token: SecretMask.cover(&bytes, value)
        }
      }
      if isBody, holdsDigits || (isInfo && !holdsSession) { SecretMask.maskDigits(&bytes, line) }
    }

    private mutating func read(_ name: String, _ value: ArraySlice<UInt8>) -> Header {
      switch name {
      case "authorization", "proxy-authorization", "www-authenticate", "proxy-authenticate": return .credentials
      case "authentication-info", "proxy-authentication-info": return .parameters
      case "identity", "y": return .token
      case "content-type", "c":
        let type = SecretMask.name(value)
        if [
          "application/dtmf", "application/kpml", "application/telephone-event", "audio/telephone-event",
          "application/vnd.nortel",
        ]
        .contains(where: type.hasPrefix) {
          holdsDigits = true
        }
        if type.hasPrefix("application/sdp") { holdsSession = true }
        return .other
      default: return .other
      }
    }

    private func maskSession(_ bytes: inout [UInt8], _ line: Range<Int>) {
      for name in ["a=crypto:", "a=key-mgmt:", "a=ice-pwd:", "k="] where SecretMask.starts(bytes[line], name) {
        var from = line.lowerBound + name.utf8.count
        if name == "a=crypto:" {
          from = SecretMask.find("inline:", in: bytes, within: from..<line.upperBound).map { $0 + 7 } ?? from
        }
        SecretMask.cover(&bytes, from..<line.upperBound)
      }
    }

    /// `sip:user:password@host`
    private func maskPasswords(_ bytes: inout [UInt8], _ line: Range<Int>) {
      for scheme in ["sip:", "sips:"] {
        var from = line.lowerBound
        while let found = SecretMask.find(scheme, in: bytes, within: from..<line.upperBound) {
          from = found + scheme.utf8.count
          var colon: Int?
          var index = from
          while index < line.upperBound, !SecretMask.endsUserInfo(bytes[index]) {
            if bytes[index] == UInt8(ascii: ":"), colon == nil { colon = index }
            index += 1
          }
          if let colon, index < line.upperBound, bytes[index] == UInt8(ascii: "@") {
            SecretMask.cover(&bytes, (colon + 1)..<index)
          }
        }
      }
    }
  }

  // MARK: pieces

  private static func isBlank(_ byte: UInt8) -> Bool { byte == 32 || byte == 9 || byte == 13 || byte == 10 }

  private static func cover(_ bytes: inout [UInt8], _ range: Range<Int>) {
    for index in range where !isBlank(bytes[index]) { bytes[index] = mask }
  }

  /// Digits, `*`, `#` and single letters A to D.
  private static func maskDigits(_ bytes: inout [UInt8], _ line: Range<Int>) {
    for index in line {
      let byte = bytes[index]
      let isLetter = (65...68).contains(byte) || (97...100).contains(byte)
      let stands =
        (index == line.lowerBound || !isWord(bytes[index - 1])) && (index + 1 == line.upperBound || !isWord(bytes[index + 1]))
      // "d=5" of some senders names the digit with a single letter
      let isName = index + 1 < line.upperBound && bytes[index + 1] == UInt8(ascii: "=")
      if (48...57).contains(byte) || byte == UInt8(ascii: "*") || byte == UInt8(ascii: "#") || (isLetter && stands && !isName) {
        bytes[index] = mask
      }
    }
  }

  /// Parameters of a digest; the whole value for another scheme.
  private static func maskCredentials(_ bytes: inout [UInt8], _ value: Range<Int>) {
    let start = bytes[value].firstIndex { !isBlank($0) } ?? value.upperBound
    let end = bytes[start..<value.upperBound].firstIndex(where: isBlank) ?? value.upperBound
    if name(bytes[start..<end]) == "digest" { maskParameters(&bytes, value) } else { cover(&bytes, end..<value.upperBound) }
  }

  private static func maskParameters(_ bytes: inout [UInt8], _ value: Range<Int>) {
    for name in ["nonce", "cnonce", "response", "nextnonce", "rspauth", "opaque"] {
      var from = value.lowerBound
      while let found = find(name, in: bytes, within: from..<value.upperBound) {
        from = found + name.utf8.count
        if isWord(bytes[found - 1]) { continue }
        guard let equal = bytes[from..<value.upperBound].firstIndex(where: { !isBlank($0) }), bytes[equal] == UInt8(ascii: "=")
        else {
          continue
        }
        let start = bytes[(equal + 1)..<value.upperBound].firstIndex { !isBlank($0) } ?? value.upperBound
        from = maskValue(&bytes, start..<value.upperBound)
      }
    }
  }

  /// Masks one token or quoted string; returns its end.
  private static func maskValue(_ bytes: inout [UInt8], _ rest: Range<Int>) -> Int {
    guard let first = rest.first else { return rest.upperBound }
    let isQuoted = bytes[first] == UInt8(ascii: "\"")
    var index = isQuoted ? first + 1 : first
    while index < rest.upperBound {
      let byte = bytes[index]
      if isQuoted ? byte == UInt8(ascii: "\"") : (byte == UInt8(ascii: ",") || isBlank(byte)) { break }
      // an escaped quote is part of the value
      if isQuoted, byte == UInt8(ascii: "\\"), index + 1 < rest.upperBound {
        bytes[index] = mask
        index += 1
      }
      if index < rest.upperBound, !isBlank(bytes[index]) { bytes[index] = mask }
      index += 1
    }
    return index
  }

  private static func isWord(_ byte: UInt8) -> Bool {
    (48...57).contains(byte) || (65...90).contains(byte) || (97...122).contains(byte) || byte == UInt8(ascii: "-")
      || byte == UInt8(ascii: "_")
  }

  private static func endsUserInfo(_ byte: UInt8) -> Bool {
    isBlank(byte)
      || [UInt8(ascii: "@"), UInt8(ascii: ">"), UInt8(ascii: "<"), UInt8(ascii: "\""), UInt8(ascii: ",")].contains(byte)
  }

  private static func lower(_ byte: UInt8) -> UInt8 { (65...90).contains(byte) ? byte + 32 : byte }

  /// Lower case, without blanks at the ends.
  private static func name(_ bytes: ArraySlice<UInt8>) -> String {
    let trimmed = bytes.drop { $0 == 32 || $0 == 9 }.prefix(64)
    var text = String(decoding: trimmed.map(lower), as: UTF8.self)
    while text.hasSuffix(" ") || text.hasSuffix("\t") { text.removeLast() }
    return text
  }

  private static func starts(_ bytes: ArraySlice<UInt8>, _ text: String) -> Bool {
    bytes.count >= text.utf8.count && zip(bytes, text.utf8).allSatisfy { lower($0) == $1 }
  }

  private static func find(_ text: String, in bytes: [UInt8], within range: Range<Int>) -> Int? {
    let wanted = Array(text.utf8)
    guard range.count >= wanted.count else { return nil }
    return (range.lowerBound...(range.upperBound - wanted.count)).first { start in
      wanted.indices.allSatisfy { lower(bytes[start + $0]) == wanted[$0] }
    }
  }
}
