import AppProtocol
import AppSessions
import Bytes
import HTTP
import Platform

/// A server of WebSockets and HTTP on a thread of its own.
/// `send`, `ping`, `close` belong to the server's thread: they are called from the delegate's methods only.
protocol Transport: AnyObject {
  func send(_ id: ConnectionID, _ bytes: [UInt8])
  func ping(_ id: ConnectionID)
  /// Sends what is queued, then the close frame; cuts the socket if that takes too long.
  func close(_ id: ConnectionID, _ code: CloseCode)
  /// Any thread: makes `turn` come soon.
  func wake()
  /// Any thread: closes every socket, ends the thread and waits for it.
  func stop()
  /// The bound address.
  var address: SocketAddress { get }
}

/// All on the server's thread.
protocol TransportDelegate: AnyObject {
  func webSocketOpened(_ id: ConnectionID, from address: IPAddress)
  func webSocketReceived(_ id: ConnectionID, _ bytes: [UInt8])
  func webSocketAlive(_ id: ConnectionID)
  func webSocketCongested(_ id: ConnectionID)
  /// Once for each opened one; nothing follows for this id.
  func webSocketClosed(_ id: ConnectionID, _ code: CloseCode?)
  /// Whether it comes with a good token: its connection gives way last.
  func trusts(_ request: HTTPRequest) -> Bool
  /// Exactly one answer must follow, from any thread.
  func requestReceived(_ request: HTTPRequest, answer: @escaping @Sendable (HTTPResponse) -> Void)
  /// Whether a page of this origin may open a WebSocket.
  func allows(origin: String) -> Bool
  /// After each round of socket work, and after `wake`. Returns when it wants to be called at the latest.
  func step(_ now: Instant) -> Instant?
}

extension TransportDelegate {
  func trusts(_ request: HTTPRequest) -> Bool { false }
}

/// Takes a request's body as it comes, before the request is handed over without it. On the server's thread, a piece of a read at a time; what it
/// keeps is its own to bound. It is let go when the connection ends early.
public protocol BodySink: AnyObject, Sendable {
  func receive(_ octets: [UInt8])
}

/// One HTTP request, whole.
public struct HTTPRequest: Sendable {
  public var method: String
  /// Split first, each part percent-decoded once.
  public var target: RequestTarget
  /// The path as sent; compared with a path that is written plainly, an encoded spelling of it is another one.
  public var path: String { target.path }
  /// What the row of a `RouteTable` has in braces, by its name.
  public var arguments: [String: String] = [:]
  public var host: String
  public var origin: String?
  public var authorization: Redacted<String>?
  /// All but Authorization, which is a secret; names in lower case.
  public var fields: [(name: String, value: String)] = []
  /// The name of the token that the admin port knows the request by; empty without one.
  public var client = ""
  public var body: [UInt8]
  /// What took the body, of a row that has one.
  public var sink: (any BodySink)?
  public var peer: IPAddress
  /// The instant of the turn in which it came: requests of one turn have the same, whatever they cost.
  public var received = Instant.zero
  /// Takes as much from the rate of the token as one more request, for an answer that costs as much; false: there is no more at the instant in
  /// which the request came. Always true without a rate. Any thread.
  public var spend: @Sendable () -> Bool = { true }

  /// The first value of a field; `name` in lower case.
  public func first(_ name: String) -> String? { fields.first { $0.name == name }?.value }

  /// What stands in the braces of the row's path: `call` of `/v1/calls/{call}`. Empty where the path has none of that name.
  public func argument(_ name: String) -> String { arguments[name] ?? "" }

  /// A field of the query; nil where it is not there. One that is there twice, or is empty, could be read in two ways and is refused.
  public func queryValue(_ name: String) throws(APIError) -> String? {
    let values = target.pairs.filter { $0.name == name }
    guard let value = values.first?.value else { return nil }
    guard values.count == 1, !value.isEmpty else {
      throw APIError(.badRequest, "\(name): once in a query, and not empty")
    }
    return value
  }
}

public struct HTTPResponse: Sendable {
  public var status: Int
  public var contentType: String
  public var headers: [(name: String, value: String)]
  public var body: [UInt8]
  /// What follows the body.
  public var stream: (any ResponseStream)?
  /// Looked at before each feed of the stream; nil: who may ask once may continue.
  var licence: StreamLicence?

  public init(_ status: Int, contentType: String, headers: [(name: String, value: String)] = [], body: [UInt8]) {
    (self.status, self.contentType, self.headers, self.body) = (status, contentType, headers, body)
  }

  /// A short answer in plain text.
  public static func text(_ status: Int, _ text: String) -> HTTPResponse {
    HTTPResponse(status, contentType: "text/plain; charset=utf-8", body: Array((text + "\n").utf8))
  }
}

/// A body that comes in pieces: one without a stated end, such as Server-Sent Events, or a long one that is made as it is read (`hasEnd`).
///
/// | | without end | with one |
/// |---|---|---|
/// | is sent | until one side closes; the connection ends with it | in the chunked coding (RFC 9112 §7.1); the connection continues |
/// | at a time | `Limits.streams`, of one token `Limits.streamsPerToken` | as many as there are connections |
/// | a peer that reads nothing | is closed after `Limits.unreadTime` | is cut after `Limits.answerTime` without progress |
public protocol ResponseStream: AnyObject, Sendable {
  /// The server's thread, whenever what was given is written, after `AdminServer.wakeStreams` and every `Limits.streamInterval`. Must not wait.
  /// Empty: nothing now. Nil: it is over.
  func next() -> [UInt8]?
  /// The last octets, of one that the server ends: why.
  func last(_ why: APIError) -> [UInt8]
  var hasEnd: Bool { get }
  /// After `next` was nil: the rest is not available, and the connection is cut, so that no client mistakes a part for the whole.
  var isBroken: Bool { get }
}

extension ResponseStream {
  public func last(_ why: APIError) -> [UInt8] { [] }
  public var hasEnd: Bool { false }
  public var isBroken: Bool { false }
}

/// Why a socket or upgrade was refused; for counting.
enum ConnectionRefusal: String, CaseIterable, Sendable {
  case tooMany, tooManyFromAddress
  /// More attempts from one address than it may make in a second.
  case tooFast
  /// No octet came in time, or the connection gave way to another; a request that was not complete in time.
  case silent, slow
  /// No HTTP, or HTTP that two parsers may read in two ways.
  case malformed
  case handshake, descriptors, upgrade, path, origin, subprotocol
  /// Of an address that has shown too many bad tokens.
  case token
}

/// Counts of one server, written on its thread.
final class TransportMetrics: Sendable {
  let connections = Gauge()
  let webSockets = Gauge()
  let bytesReceived = Counter()
  let bytesSent = Counter()
  /// Pings, pongs and fragments that WebSockets sent.
  let controlFrames = Counter()
  let refused = LabelledCounters<ConnectionRefusal>()
  let closes = CounterTable(labelNames: ["code", "by"])
  let requests = CounterTable(labelNames: ["status"])
}
