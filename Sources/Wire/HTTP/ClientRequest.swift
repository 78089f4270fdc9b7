/// One request of ours to a push service, a webhook, a verifier, or the server of the keys.
public struct HTTPClientRequest: Sendable {
  /// Requests of one name share HTTP/2 connections; another name never does (one APNs team and key per connection).
  public var connection: String
  public var method: String
  public var url: String
  /// Names in lower case, as HTTP/2 has them. May hold secrets: not for logs. A line break in one fails the request.
  public var headers: [(name: String, value: String)]
  public var body: [UInt8]
  public var timeout: Duration
  /// How long data on a connection that is opened for the request may lack an acknowledgement of the server's system before the
  /// connection counts as broken. A third of the time-out or less leaves time for another one.
  public var unacknowledged: Duration
  /// The request is sent again, on a new connection, if one that had served before breaks without any answer to it. Not for a
  /// caller that retries itself.
  public var goesAgain: Bool
  /// The protocols that the URL may have, as libcurl names them.
  public var protocols: String
  /// A longer body fails the request and closes its connection; nil: what is beyond the first 16 KiB is read and discarded.
  public var answerBytes: Int?
  /// Presents our certificate, if there is one. For other requests a server that asks for it gets none.
  public var showsCertificate: Bool

  public init(
    connection: String, method: String = "POST", url: String, headers: [(name: String, value: String)], body: [UInt8],
    timeout: Duration, unacknowledged: Duration = .seconds(3), goesAgain: Bool = false, protocols: String = "https",
    showsCertificate: Bool = false
  ) {
    (self.connection, self.method, self.url, self.headers, self.body) = (connection, method, url, headers, body)
    (self.timeout, self.unacknowledged, self.goesAgain) = (timeout, unacknowledged, goesAgain)
    (self.protocols, self.showsCertificate) = (protocols, showsCertificate)
  }

  /// The first value of a header; `name` in lower case.
  public func header(_ name: String) -> String? { headers.first { $0.name == name }?.value }
}

/// A server's response, as far as it is used here.
public struct HTTPClientResponse: Sendable, Hashable {
  public var status: Int
  /// `Retry-After` in seconds, if it was a number.
  public var retryAfter: Int?
  /// For how many seconds the response may be reused, by its Cache-Control and Age (RFC 9111 §4.2.1); nil: they do not state it.
  public var freshSeconds: Int?
  public var body: [UInt8]

  public init(status: Int, retryAfter: Int? = nil, freshSeconds: Int? = nil, body: [UInt8] = []) {
    (self.status, self.retryAfter, self.freshSeconds, self.body) = (status, retryAfter, freshSeconds, body)
  }
}
