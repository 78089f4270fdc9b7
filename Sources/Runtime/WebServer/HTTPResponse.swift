/// The answer to a request; with `stream`, `body` is only its beginning.
public struct HTTPResponse: Sendable {
  public var status: Int
  public var contentType: String
  public var headers: [(name: String, value: String)]
  public var body: [UInt8]
  /// The data after the body.
  public var stream: (any ResponseStream)?
  /// Checked before each feed of the stream; nil: the first check is sufficient.
  public var licence: StreamLicence?

  public init(_ status: Int, contentType: String, headers: [(name: String, value: String)] = [], body: [UInt8]) {
    (self.status, self.contentType, self.headers, self.body) = (status, contentType, headers, body)
  }

  /// A short answer in plain text.
  public static func text(_ status: Int, _ text: String) -> HTTPResponse {
    HTTPResponse(status, contentType: "text/plain; charset=utf-8", body: Array((text + "\n").utf8))
  }
}

/// A body in pieces: one without a stated end, such as Server-Sent Events, or a long one that is made as it is read (`hasEnd`).
///
/// | | without end | with one |
/// |---|---|---|
/// | is sent | until one side closes; the connection ends with it | in the chunked coding (RFC 9112 §7.1); the connection stays open |
/// | concurrently | `Limits.streams`, per client `Limits.streamsPerClient` | as many as there are connections |
/// | a peer that reads nothing | is closed after `Limits.unreadTime` | is cut after `Limits.answerTime` without progress |
public protocol ResponseStream: AnyObject, Sendable {
  /// The server's thread, whenever the pieces so far are written, after `HTTPServer.wake` and every `Limits.streamInterval`. Must
  /// not wait. Empty: nothing now. Nil: it has ended.
  func next() -> [UInt8]?
  /// The last octets of a stream that the server ends, with the reason.
  func last(_ why: HTTPProblem) -> [UInt8]
  var hasEnd: Bool { get }
  /// After `next` was nil: the rest is unavailable, and the connection is cut, so that no client accepts a part as the whole.
  var isBroken: Bool { get }
}

extension ResponseStream {
  public func last(_ why: HTTPProblem) -> [UInt8] { [] }
  public var hasEnd: Bool { false }
  public var isBroken: Bool { false }
}

/// Why an answer in pieces may continue: whether its client may still have it is checked before each feed.
public struct StreamLicence: Sendable {
  /// The client's name; empty without one. Streams without an end are counted by it.
  var client: String
  /// Nil: it may continue.
  var refusal: @Sendable () -> HTTPProblem?

  public init(client: String, refusal: @escaping @Sendable () -> HTTPProblem?) {
    (self.client, self.refusal) = (client, refusal)
  }
}
