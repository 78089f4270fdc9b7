/// Request line and fields of one HTTP/1.1 request, checked (RFC 9110, RFC 9112).
public struct RequestHead: Equatable, Sendable {
  /// A field line; the name in lower case, the value without the white space around it.
  public struct Field: Equatable, Sendable {
    public var name: String
    public var value: String
    public init(_ name: String, _ value: String) { (self.name, self.value) = (name, value) }
  }
  /// What follows the head (RFC 9112 §6.3).
  public enum Framing: Equatable, Sendable {
    case none
    case length(Int)
    case chunked
  }

  /// As received: methods are case-sensitive.
  public var method: String
  /// `*` only for OPTIONS.
  public var target: RequestTarget
  /// HTTP/1.0 or HTTP/1.1.
  public var minorVersion: Int
  public var fields: [Field]
  /// From the Host field, or from a target in absolute form, which takes precedence (RFC 9112 §3.2.2).
  public var host: String
  public var framing: Framing
  /// The client will use the connection for another request (RFC 9112 §9.3).
  public var keepsAlive: Bool

  /// The first value of a field; `name` in lower case.
  public func first(_ name: String) -> String? { fields.first { $0.name == name }?.value }

  /// Every value of a field in order; `name` in lower case.
  public func all(_ name: String) -> [String] { fields.filter { $0.name == name }.map(\.value) }

  /// The members of a comma-separated field, over all its lines, without the white space around them (RFC 9110 §5.6.1).
  public func list(_ name: String) -> [String] {
    all(name).flatMap { value in
      value.split(separator: ",").map { $0.trimmed }.filter { !$0.isEmpty }
    }
  }
}

/// Why a request is refused, as the status to answer with and a sentence for the client's author.
public struct RequestRefusal: Error, Equatable, Sendable {
  public var status: Int
  public var reason: String
  public init(_ status: Int, _ reason: String) { (self.status, self.reason) = (status, reason) }
}

extension Substring {
  /// Without spaces and tabs at both ends (OWS, RFC 9110 §5.6.3).
  var trimmed: String {
    var rest = utf8[...]
    while let first = rest.first, first == 32 || first == 9 { rest = rest.dropFirst() }
    while let last = rest.last, last == 32 || last == 9 { rest = rest.dropLast() }
    return String(Substring(rest))
  }
}
