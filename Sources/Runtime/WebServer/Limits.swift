/// The named limits and times of this module.
public enum Limits {
  /// Concurrent answers without a stated end, and how often each is read for more data without a wake.
  static let streams = 16
  /// Those of one client, or of those without a name; beyond this, and beyond the total, the idlest is closed.
  static let streamsPerClient = 8
  /// A stream whose client reads nothing for this long is closed.
  static let unreadTime = Duration.seconds(10)
  static let streamInterval = Duration.seconds(5)
  /// How many times the share of an IPv6 /64 a /48 may have.
  static let addressesPerSite = 4
  /// Connections that an address may open at once: four times its share, since all of a site's clients reconnect together and more
  /// than once, and at least this; an eighth of it in each following second.
  static let attemptBurst = 800
  /// Addresses whose attempts are stored.
  static let addresses = 65_536
  /// Refused requests with an Authorization: of one address at once and per second, and of all addresses per second. Beyond this,
  /// requests of such an address with one are not checked, and its connection ends.
  static let refusedCredentials = 20
  static let refusedCredentialsInAll = 1_000
  /// Connections accepted in one step.
  static let acceptsPerStep = 64
  /// Reads of one connection in one step, and octets of a read: a TLS record at least, so that none stays inside OpenSSL.
  static let readsPerStep = 4
  static let readBytes = 16_384
  /// Octets written to one connection in one step: a long answer to a fast reader delays no other connection.
  static let writeBytes = 262_144
  /// The kernel holds a connection back until its first octet, for about this long (TCP_DEFER_ACCEPT).
  static let deferAcceptSeconds: Int32 = 1
  /// Times of a connection: until its first octet; until a request, with the TLS handshake before it, is complete; until the next
  /// request begins; until a request is answered.
  static let firstOctetTime = Duration.seconds(2)
  static let requestTime = Duration.seconds(10)
  static let keepAliveTime = Duration.seconds(5)
  public static let answerTime = Duration.seconds(30)
  /// For the whole body of a request with a sink, and again until it is answered: earlier ones are stored first, and a million
  /// contacts take a slow machine a minute. And the octets that add a second to a request's time.
  public static let sinkTime = Duration.seconds(120)
  static let sinkBytesPerSecond: Int64 = 65_536
  /// After our last octet: how long, and for how many octets, the peer may continue before the socket is closed. A close with
  /// unread octets would discard our answer (RFC 9112 §9.6).
  static let lingerTime = Duration.seconds(1)
  static let lingerBytes = 262_144
  /// A WebSocket that is being closed is cut after this time, whether its peer read the queued octets or not.
  public static let closeTime = Duration.seconds(5)
  /// How often deadlines are checked.
  static let sweepInterval = Duration.milliseconds(250)
  /// Processor time of TLS handshakes per second; beyond this they wait for one another, until this share of it is available.
  static let handshakeTimePerSecond = Duration.milliseconds(120)
  static let handshakeResumeShare = 0.05
  /// Octets queued for one WebSocket; beyond this it is a slow consumer and closed with 4008.
  static let queueBytes = 1_048_576
  /// Frames without a message (pings, pongs, fragments) of one WebSocket: at once, and per second; beyond this 1008.
  static let controlBurst = 1_024.0
  static let controlPerSecond = 64.0
  /// The body of a request, unless its row or the settings permit more.
  public static let bodyBytes = 65_536
  /// How long a browser may cache whether a page of another origin may send a request.
  static let preflightSeconds = 7_200
  /// A longer Origin is invalid.
  static let originBytes = 4_096
  /// How often the log reports refused connections.
  static let logInterval = Duration.seconds(10)
  /// How long a stop waits for its sockets to close.
  static let stopTime = Duration.seconds(1)
}
