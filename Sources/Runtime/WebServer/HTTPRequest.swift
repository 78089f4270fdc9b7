public import HTTP
public import TrunklineBytes

/// One HTTP request, whole.
public struct HTTPRequest: Sendable {
  /// Gets the one answer to a request; any thread.
  public typealias Answer = @Sendable (HTTPResponse) -> Void

  public var method: String
  /// Split first, each part percent-decoded once.
  public var target: RequestTarget
  /// The path as sent; an encoded spelling is not equal to the plain path.
  public var path: String { target.path }
  /// The arguments in braces of a `RouteTable` row, by name.
  public var arguments: [String: String] = [:]
  public var host: String
  public var origin: String?
  public var authorization: Redacted<String>?
  /// All but Authorization, which is a secret; names in lower case.
  public var fields: [(name: String, value: String)] = []
  /// The name that the check of its credentials gave its client; empty without one.
  public var client = ""
  public var body: [UInt8]
  /// The sink that received the body, if the delegate has one for it.
  public var sink: (any BodySink)?
  public var peer: IPAddress
  /// The instant of the step that read it: requests of one step have the same, whatever they cost.
  public var received = Instant.zero
  /// Deducts the cost of one more request from the client's rate, for an answer that costs as much; false: none was left when the
  /// request arrived. Always true without a rate. Any thread.
  public var spend: @Sendable () -> Bool = { true }

  /// The first value of a field; `name` in lower case.
  public func first(_ name: String) -> String? { fields.first { $0.name == name }?.value }

  /// An argument of the row's path: `call` of `/v1/calls/{call}`. Empty if the path has none of that name.
  public func argument(_ name: String) -> String { arguments[name] ?? "" }
}

/// Receives a request's body in pieces, one per read, before the request is delivered without it. On the server's thread; it must
/// bound what it keeps. It is released when the connection ends early.
public protocol BodySink: AnyObject, Sendable {
  func receive(_ octets: [UInt8])
}
