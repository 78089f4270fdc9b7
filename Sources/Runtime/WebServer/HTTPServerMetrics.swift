public import TrunklinePlatform

/// Why a socket or upgrade was refused; for counting.
public enum ConnectionRefusal: String, CaseIterable, Sendable {
  case tooMany, tooManyFromAddress
  /// More attempts from one address than it may make per second.
  case tooFast
  /// No octet came in time, or the connection was evicted for another; a request that was not complete in time.
  case silent, slow
  /// Not HTTP, or HTTP that two parsers may read in two ways.
  case malformed
  case handshake, descriptors, upgrade, path, origin, subprotocol
  /// From an address whose credentials were refused too often.
  case token
}

/// Counts of one server, written on its thread.
public final class HTTPServerMetrics: Sendable {
  public let connections = Gauge()
  public let webSockets = Gauge()
  public let bytesReceived = Counter()
  public let bytesSent = Counter()
  /// Pings, pongs and fragments that WebSockets sent.
  public let controlFrames = Counter()
  public let refused = LabelledCounters<ConnectionRefusal>()
  public let closes = CounterTable(labelNames: ["code", "by"])
  public let requests = CounterTable(labelNames: ["status"])
}
