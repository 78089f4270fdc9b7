/// The target of a request in origin form (RFC 9112 §3.2.1), divided before it is decoded (RFC 3986 §2.4): an encoded `/`, `&` or
/// `=` divides nothing, and each part is decoded exactly once.
///
///     /v1/users/a%2Fb/data?device=x%26y    segments v1, users, a/b, data; one pair, device = x&y
///
/// A `+` is a `+`: this is no form (RFC 3986 §2.2), and numbers begin with one.
public struct RequestTarget: Equatable, Sendable {
  /// The text between two `/` of the path.
  public struct Segment: Equatable, Sendable {
    /// As sent: ASCII.
    public let raw: String
    /// Percent-decoded.
    public let text: String
    /// Empty, `.` or `..`, in any spelling: it names nothing, and a proxy between the client and us may have removed it (RFC 3986
    /// §5.2.4).
    public var isRelative: Bool { text.isEmpty || text == "." || text == ".." }
  }
  /// The text between two `&` of the query; without `=` the value is empty.
  public struct Pair: Equatable, Sendable {
    public let name: String
    public let value: String
    public init(name: String, value: String) { (self.name, self.value) = (name, value) }
  }

  /// As sent, without the query.
  public let path: String
  /// As sent, behind the `?`.
  public let query: String
  /// Of `/` none; of `/a/` two, `a` and an empty one.
  public let segments: [Segment]
  public let pairs: [Pair]

  /// - Parameter octets: begin with `/`; of the asterisk form `*`, which is one segment.
  /// - Throws: 400 for a `%` that is not followed by two hexadecimal digits, for NUL, for text that is not UTF-8, and for too
  ///   many parts.
  public init(_ octets: some Collection<UInt8>) throws(RequestRefusal) {
    let octets = Array(octets)
    let question = octets.firstIndex(of: UInt8(ascii: "?")) ?? octets.endIndex
    let (path, query) = (octets[..<question], octets[question...].dropFirst())
    (self.path, self.query) = (String(decoding: path, as: UTF8.self), String(decoding: query, as: UTF8.self))
    let parts =
      path.elementsEqual("/".utf8) ? [] : Self.parts(path.first == UInt8(ascii: "/") ? path.dropFirst() : path, UInt8(ascii: "/"))
    guard parts.count <= Limits.segments else { throw RequestRefusal(400, "at most \(Limits.segments) segments of a path") }
    var segments: [Segment] = []
    for part in parts { segments.append(Segment(raw: String(decoding: part, as: UTF8.self), text: try Self.decoded(part))) }
    self.segments = segments
    let fields = Self.parts(query, UInt8(ascii: "&")).filter { !$0.isEmpty }
    guard fields.count <= Limits.pairs else { throw RequestRefusal(400, "at most \(Limits.pairs) fields of a query") }
    var pairs: [Pair] = []
    for field in fields {
      let equals = field.firstIndex(of: UInt8(ascii: "=")) ?? field.endIndex
      pairs.append(Pair(name: try Self.decoded(field[..<equals]), value: try Self.decoded(field[equals...].dropFirst())))
    }
    self.pairs = pairs
  }

  /// The target without a prefix of its path, such as `/phone`; nil: the path is not below it. `/phone` itself becomes `/`.
  public func below(_ prefix: String) -> RequestTarget? {
    guard path == prefix || path.hasPrefix(prefix + "/") else { return nil }
    let rest = path.dropFirst(prefix.count)
    return try? RequestTarget(((rest.isEmpty ? "/" : String(rest)) + (query.isEmpty ? "" : "?" + query)).utf8)
  }

  private static func parts(_ octets: ArraySlice<UInt8>, _ separator: UInt8) -> [ArraySlice<UInt8>] {
    octets.split(separator: separator, omittingEmptySubsequences: false)
  }

  private static func decoded(_ octets: ArraySlice<UInt8>) throws(RequestRefusal) -> String {
    var out: [UInt8] = []
    out.reserveCapacity(octets.count)
    var index = octets.startIndex
    while index < octets.endIndex {
      let octet = octets[index]
      guard octet == UInt8(ascii: "%") else {
        out.append(octet)
        index += 1
        continue
      }
      guard octets.endIndex - index >= 3, let high = HeadParser.hexValue(octets[index + 1]),
        let low = HeadParser.hexValue(octets[index + 2]), high | low != 0
      else { throw RequestRefusal(400, "a % in the request target is not followed by two hexadecimal digits, or encodes NUL") }
      out.append(high << 4 | low)
      index += 3
    }
    // also refuses the overlong forms of RFC 3629 §10, which some readers decode as `/` and others do not
    guard let text = String(validating: out, as: UTF8.self) else {
      throw RequestRefusal(400, "the request target is not UTF-8")
    }
    return text
  }
}
