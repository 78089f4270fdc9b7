public import Bytes

/// What goes to a push service. `host` and `port` name the connection it may share with others of the same `connection`.
public struct PushRequest: Sendable, Hashable {
  /// Requests of one name share HTTP/2 connections; another name never does (one APNs team and key per connection).
  public var connection: String
  public var host: String
  public var port: UInt16
  public var path: String
  /// In lower case, as HTTP/2 has them. May hold secrets: not for logs.
  public var headers: [(name: String, value: String)]
  public var body: [UInt8]
  /// What the call began with, for a first attempt that is to be measured from there. No part of the request.
  public var since: Instant?

  public init(
    connection: String, host: String, port: UInt16 = 443, path: String, headers: [(name: String, value: String)], body: [UInt8]
  ) {
    (self.connection, self.host, self.port, self.path) = (connection, host, port, path)
    (self.headers, self.body) = (headers, body)
  }

  public func header(_ name: String) -> String? { headers.first { $0.name == name }?.value }

  public static func == (a: PushRequest, b: PushRequest) -> Bool {
    a.connection == b.connection && a.host == b.host && a.port == b.port && a.path == b.path && a.body == b.body
      && a.headers.elementsEqual(b.headers) { $0 == $1 }
  }
  public func hash(into hasher: inout Hasher) {
    hasher.combine(connection)
    hasher.combine(path)
    hasher.combine(body)
  }
}

/// A push service's answer, as far as anything here reads it.
public struct PushAnswer: Sendable, Hashable {
  public var status: Int
  /// `Retry-After` in seconds, if it was a number.
  public var retryAfter: Int?
  public var body: [UInt8]

  public init(status: Int, retryAfter: Int? = nil, body: [UInt8] = []) {
    (self.status, self.retryAfter, self.body) = (status, retryAfter, Array(body.prefix(Limits.answerBytes)))
  }
}
