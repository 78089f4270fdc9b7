/// Reads a head whose end has been found. It is strict, because request smuggling relies on leniency (RFC 9112 §11.2): one
/// framing, one Host, no folded lines, no space before a colon, no octet that another parser might read differently.
enum HeadParser {
  /// `octets`: request line and fields with their CR LF, without the empty line.
  static func parse(_ octets: ArraySlice<UInt8>) throws(RequestRefusal) -> RequestHead {
    var lines = Lines(octets)
    guard let line = lines.next() else { throw RequestRefusal(400, "no request line") }
    var head = try requestLine(line)
    while let line = lines.next() {
      guard head.fields.count < Limits.fields else { throw RequestRefusal(431, "at most \(Limits.fields) fields") }
      head.fields.append(try field(line))
    }
    try host(&head)
    try framing(&head)
    let connection = head.list("connection").map { $0.lowercased() }
    head.keepsAlive = head.minorVersion == 1 ? !connection.contains("close") : false
    return head
  }

  private static func requestLine(_ line: ArraySlice<UInt8>) throws(RequestRefusal) -> RequestHead {
    let parts = line.split(separator: 32, maxSplits: 3, omittingEmptySubsequences: false)
    guard parts.count == 3, !parts[0].isEmpty, parts[0].count <= 32, parts[0].allSatisfy(isToken) else {
      throw RequestRefusal(400, "the request line is not: method, space, target, space, HTTP/1.1")
    }
    let version = Array(parts[2])
    guard version.count == 8, version.starts(with: "HTTP/".utf8), isDigit(version[5]), version[6] == UInt8(ascii: "."),
      isDigit(version[7])
    else { throw RequestRefusal(400, "no HTTP version in the request line") }
    guard version[5] == UInt8(ascii: "1"), version[7] <= UInt8(ascii: "1") else {
      throw RequestRefusal(505, "this port accepts HTTP/1.1 only")
    }
    let method = text(parts[0])
    let (target, host) = try Self.target(parts[1], of: method)
    return RequestHead(
      method: method, target: target, minorVersion: Int(version[7] - 48), fields: [], host: host, framing: .none,
      keepsAlive: false)
  }

  /// RFC 9112 §3.2: origin form, absolute form, and the asterisk of OPTIONS. The authority form belongs to CONNECT, which is
  /// not served. The host is that of the absolute form, else empty.
  private static func target(
    _ octets: ArraySlice<UInt8>, of method: String
  ) throws(RequestRefusal) -> (RequestTarget, host: String) {
    guard !octets.isEmpty, octets.allSatisfy({ $0 > 32 && $0 < 127 && $0 != UInt8(ascii: "#") }) else {
      throw RequestRefusal(400, "the request target has octets that must be percent-encoded")
    }
    if octets.elementsEqual("*".utf8), method == "OPTIONS" { return (try RequestTarget(octets), "") }
    var (rest, host) = (octets, "")
    for scheme in ["http://", "https://"] where text(octets.prefix(scheme.utf8.count)).lowercased() == scheme {
      let authority = octets.dropFirst(scheme.utf8.count).prefix { $0 != UInt8(ascii: "/") && $0 != UInt8(ascii: "?") }
      host = text(authority)
      guard isHost(host), !host.isEmpty else { throw RequestRefusal(400, "no host in the request target") }
      rest = octets.dropFirst(scheme.utf8.count + authority.count)
      if rest.first != UInt8(ascii: "/") { rest = ArraySlice("/".utf8) + rest }
    }
    guard rest.first == UInt8(ascii: "/") else { throw RequestRefusal(400, "the request target must begin with /") }
    return (try RequestTarget(rest), host)
  }

  private static func field(_ line: ArraySlice<UInt8>) throws(RequestRefusal) -> RequestHead.Field {
    guard let colon = line.firstIndex(of: UInt8(ascii: ":")), colon > line.startIndex else {
      throw RequestRefusal(400, "a field without a name, or without a colon")
    }
    // Also refuses folded lines and white space before the colon (RFC 9112 §5.1, §5.2).
    guard line[..<colon].allSatisfy(isToken) else { throw RequestRefusal(400, "a field's name has an octet that no name has") }
    let value = line[(colon + 1)...]
    guard value.allSatisfy({ $0 >= 32 && $0 != 127 || $0 == 9 }) else {
      throw RequestRefusal(400, "a field's value has a control character")
    }
    return RequestHead.Field(text(line[..<colon]).lowercased(), text(value)[...].trimmed)
  }

  private static func host(_ head: inout RequestHead) throws(RequestRefusal) {
    let hosts = head.all("host")
    guard hosts.count == 1 || (hosts.isEmpty && head.minorVersion == 0) else {
      throw RequestRefusal(400, "exactly one Host field is needed")
    }
    guard let host = hosts.first else { return }
    guard isHost(host) else { throw RequestRefusal(400, "the Host field is not a host") }
    if head.host.isEmpty { head.host = host }
  }

  private static func framing(_ head: inout RequestHead) throws(RequestRefusal) {
    let lengths = head.all("content-length")
    let codings = head.all("transfer-encoding")
    if !codings.isEmpty {
      guard lengths.isEmpty else { throw RequestRefusal(400, "Transfer-Encoding beside Content-Length") }
      guard head.minorVersion == 1 else { throw RequestRefusal(400, "Transfer-Encoding in HTTP/1.0") }
      guard codings.count == 1, codings[0].lowercased() == "chunked" else {
        throw RequestRefusal(501, "the only transfer coding is chunked")
      }
      head.framing = .chunked
    } else if let length = lengths.first {
      guard lengths.count == 1, (1...18).contains(length.utf8.count), length.utf8.allSatisfy(isDigit), let count = Int(length)
      else { throw RequestRefusal(400, "Content-Length must be one number") }
      head.framing = count == 0 ? .none : .length(count)
    }
  }

  // MARK: octets

  /// `tchar` of RFC 9110 §5.6.2.
  static func isToken(_ octet: UInt8) -> Bool {
    switch octet {
    case 48...57, 65...90, 97...122: true
    case 33, 35...39, 42, 43, 45, 46, 94, 95, 96, 124, 126: true
    default: false
    }
  }
  static func isDigit(_ octet: UInt8) -> Bool { octet >= 48 && octet <= 57 }
  static func hexValue(_ octet: UInt8) -> UInt8? {
    switch octet {
    case 48...57: octet - 48
    case 65...70: octet - 55
    case 97...102: octet - 87
    default: nil
    }
  }
  /// Whether this can be host and port of a URI; user information and lists cannot.
  private static func isHost(_ text: String) -> Bool {
    text.utf8.count <= 262 && text.utf8.allSatisfy { isDigit($0) || (97...122).contains($0 | 32) || ".-_:[]%".utf8.contains($0) }
  }
  private static func text(_ octets: ArraySlice<UInt8>) -> String { String(decoding: octets, as: UTF8.self) }
}

/// Lines that end in CR LF; `RequestReader` has checked that there is no other CR or LF.
private struct Lines {
  private var rest: ArraySlice<UInt8>
  init(_ octets: ArraySlice<UInt8>) { rest = octets }

  mutating func next() -> ArraySlice<UInt8>? {
    guard !rest.isEmpty else { return nil }
    let end = rest.firstIndex(of: 13) ?? rest.endIndex
    defer { rest = rest[end...].dropFirst(2) }
    return rest[..<end]
  }
}
