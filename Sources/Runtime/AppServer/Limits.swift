/// The named limits and times of this module.
public enum Limits {
  /// Sockets of the app port in all, and from one address; a connection beyond is closed before it is served.
  public static let connections = 20_000
  public static let connectionsPerAddress = 200
  /// Answers without a stated end that are under way at a time, and how often each is asked for more unasked.
  static let streams = 16
  /// Those of one token, or without any; beyond, and beyond all of them, the idlest gives way.
  static let streamsPerToken = 8
  /// A stream whose client takes nothing of what was written to it for so long is closed.
  static let unreadTime = Duration.seconds(10)
  static let streamInterval = Duration.seconds(5)
  /// Sockets of the admin port: in all, from one address (without streams, which have separate slots), and of the whole those that only
  /// connections have whose last request came with a good token. Where one more has no room, the idlest gives way.
  public static let adminConnections = 64
  static let adminConnectionsPerAddress = 16
  static let adminReserved = 16
  /// How many times an IPv6 /64's share a /48 may have.
  static let addressesPerSite = 4
  /// Connections that an address may begin at once: four times what it may have, since all of a site's apps come back together and
  /// more than once, and this at least; an eighth of it in each second that follows.
  static let attemptBurst = 800
  /// Addresses whose attempts are remembered.
  static let addresses = 65_536
  /// Requests with an Authorization that were refused: of one address at once and a second, and of all addresses a second. Beyond it what
  /// such an address asks for with one is not looked at, and its connection ends.
  static let refusedTokens = 20
  static let refusedTokensInAll = 1_000
  /// Connections taken in one turn.
  static let acceptsPerStep = 64
  /// Reads of one connection in one turn, and octets of a read: a TLS record at least, so that none stays inside OpenSSL.
  static let readsPerStep = 4
  static let readBytes = 16_384
  /// Octets written to one connection in one step: a long answer to a quick reader delays no other client.
  static let writeBytes = 262_144
  /// The kernel keeps a connection to itself until it says something, for about this long (TCP_DEFER_ACCEPT).
  static let deferAcceptSeconds: Int32 = 1
  /// Times of a connection: until its first octet; until a request, with the TLS handshake before it, is whole; until the next
  /// request begins; until a request is answered.
  static let firstOctetTime = Duration.seconds(2)
  static let requestTime = Duration.seconds(10)
  static let keepAliveTime = Duration.seconds(5)
  static let answerTime = Duration.seconds(30)
  /// Of an import's body in all, and what of it adds a second to a request's time.
  static let importTime = Duration.seconds(120)
  static let importBytesPerSecond: Int64 = 65_536
  /// After the last octet of ours: how long, and for how many octets, the peer may continue before the socket is closed. A close
  /// with unread octets would take our answer with it (RFC 9112 §9.6).
  static let lingerTime = Duration.seconds(1)
  static let lingerBytes = 262_144
  /// A WebSocket that is being closed is cut after this time, whether its peer took what was queued or not.
  static let closeTime = Duration.seconds(5)
  /// How often deadlines are looked at.
  static let sweepInterval = Duration.milliseconds(250)
  /// Processor time that TLS handshakes may take in a second; beyond it they wait for one another, until this share of it is there.
  static let handshakeTimePerSecond = Duration.milliseconds(120)
  static let handshakeResumeShare = 0.05
  /// What is queued toward one WebSocket; beyond it is a slow consumer and closed with 4008.
  static let queueBytes = 1_048_576
  /// Frames that are no messages (pings, pongs, fragments) of one WebSocket: at once, and a second; beyond it 1008.
  static let controlBurst = 1_024.0
  static let controlPerSecond = 64.0
  /// Body of `POST /v1/calls/<id>/reject`.
  public static let rejectBytes = 4_096
  /// Body of an HTTP request; of an import of contacts by who may make one, at the admin port.
  static let bodyBytes = 65_536
  public static let importBytes = 64 << 20
  /// Other nodes whose pages may connect here, and that our pages may connect to: their addresses stand in each page's header.
  static let nodeOrigins = 64
  /// How long a browser need not ask again whether a page of another origin may reject.
  static let preflightSeconds = 7_200
  /// An Origin that is longer is no origin.
  static let originBytes = 4_096
  /// How often the log tells of connections that were refused.
  static let logInterval = Duration.seconds(10)
  /// Commands from control that wait for the app thread. A device whose command does not fit loses its session.
  static let commands = 65_536
  /// Events that control's inbox refused and that are offered again; beyond, the sockets that cause them are closed.
  static let waitingEvents = 8_192
  static let retryMilliseconds: Int64 = 5
  /// How long a stop waits for its sockets to close.
  static let stopTime = Duration.seconds(1)
}
