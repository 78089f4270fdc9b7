import AppSessions
import HTTP
import TrunklineAppProtocol
import TrunklineBytes
import TrunklinePlatform

/// A server of WebSockets and HTTP on its own thread.
/// `send`, `ping`, `close` belong to the server's thread: they are called from the delegate's methods only.
protocol Transport: AnyObject {
  func send(_ id: ConnectionID, _ bytes: [UInt8])
  func ping(_ id: ConnectionID)
  /// Sends the queued frames, then the close frame; cuts the socket if that lasts too long.
  func close(_ id: ConnectionID, _ code: CloseCode)
  /// Any thread: makes `step` run soon.
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
  /// Whether it has a valid token: its connection is evicted last.
  func trusts(_ request: HTTPRequest) -> Bool
  /// Exactly one answer must follow, from any thread.
  func requestReceived(_ request: HTTPRequest, answer: @escaping @Sendable (HTTPResponse) -> Void)
  /// Whether a page of this origin may open a WebSocket.
  func allows(origin: String) -> Bool
  /// After each round of socket work, and after `wake`. Returns when it must be called at the latest.
  func step(_ now: Instant) -> Instant?
}

extension TransportDelegate {
  func trusts(_ request: HTTPRequest) -> Bool { false }
}

/// Receives a request's body in pieces, one per read, before the request is delivered without it. On the server's thread; it must
/// bound what it keeps. It is released when the connection ends early.
public protocol BodySink: AnyObject, Sendable {
  func receive(_ octets: [UInt8])
}

/// One HTTP request, whole.
public struct HTTPRequest: Sendable {
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
  /// The name of the request's token at the admin port; empty without one.
  public var client = ""
  public var body: [UInt8]
  /// The sink that received the body, if the row has one.
  public var sink: (any BodySink)?
  public var peer: IPAddress
  /// The instant of the step that read it: requests of one step have the same, whatever they cost.
  public var received = Instant.zero
  /// Deducts the cost of one more request from the token's rate, for an answer that costs as much; false: none was left when the
  /// request arrived. Always true without a rate. Any thread.
  public var spend: @Sendable () -> Bool = { true }

  /// The first value of a field; `name` in lower case.
  public func first(_ name: String) -> String? { fields.first { $0.name == name }?.value }

  /// An argument of the row's path: `call` of `/v1/calls/{call}`. Empty if the path has none of that name.
  public func argument(_ name: String) -> String { arguments[name] ?? "" }

  /// A field of the query; nil if absent. A repeated or empty one is ambiguous and refused.
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
  /// The data after the body.
  public var stream: (any ResponseStream)?
  /// Checked before each feed of the stream; nil: the first check is sufficient.
  var licence: StreamLicence?

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
/// | concurrently | `Limits.streams`, per token `Limits.streamsPerToken` | as many as there are connections |
/// | a peer that reads nothing | is closed after `Limits.unreadTime` | is cut after `Limits.answerTime` without progress |
public protocol ResponseStream: AnyObject, Sendable {
  /// The server's thread, whenever the pieces so far are written, after `AdminServer.wakeStreams` and every
  /// `Limits.streamInterval`. Must not wait. Empty: nothing now. Nil: it has ended.
  func next() -> [UInt8]?
  /// The last octets of a stream that the server ends, with the reason.
  func last(_ why: APIError) -> [UInt8]
  var hasEnd: Bool { get }
  /// After `next` was nil: the rest is unavailable, and the connection is cut, so that no client accepts a part as the whole.
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
  /// More attempts from one address than it may make per second.
  case tooFast
  /// No octet came in time, or the connection was evicted for another; a request that was not complete in time.
  case silent, slow
  /// Not HTTP, or HTTP that two parsers may read in two ways.
  case malformed
  case handshake, descriptors, upgrade, path, origin, subprotocol
  /// From an address that has sent too many invalid tokens.
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
