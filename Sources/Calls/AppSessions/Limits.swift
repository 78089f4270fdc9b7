/// The named limits and times of this module (docs/reference/protocol.md, Frames, Session and Details).
public enum Limits {
  /// A connection without `hello` for this long is closed with 4001.
  public static let helloWait = Duration.seconds(5)
  /// `welcome.hb`; a peer counts as dead after twice this time of silence.
  public static let heartbeat = Duration.seconds(15)
  /// Silence after a numbered message: after the first time a ping is sent, after the second the socket is dead. A caller waits
  /// no longer for a device that vanished without a close.
  public static let unansweredPing = Duration.seconds(2)
  public static let unanswered = Duration.seconds(6)
  /// A numbered message is acked within this time, if no other message is sent before.
  public static let ackDelay = Duration.milliseconds(150)
  /// Numbered messages kept until acked, and their bytes; beyond either the session is closed with 4008.
  public static let outboxMessages = 256
  public static let outboxBytes = 256 * 1_024
  /// Messages after a `hello` that wait for control's answer, and their bytes; beyond either the connection is closed with 1008.
  public static let earlyMessages = 64
  public static let earlyBytes = 64 * 1_024
  /// An answer is kept until both have passed.
  public static let answerLaterRequests = 64
  public static let answerAge = Duration.seconds(600)
  /// Answers kept for one device; beyond that the oldest are forgotten early, except those within `answerLaterRequests`. If all
  /// wait for control, so that none may be forgotten, a new request gets `err{tooMany}`.
  public static let answersPerDevice = 1_024
  /// The answers of a device without a session are forgotten after this time.
  public static let answersWithoutSession = Duration.seconds(3_600)
  /// How long a session can be resumed: one without calls after its socket closed, one with calls after the last call.
  public static let resumeWindow = Duration.seconds(120)
  /// `auth.expiring` is sent this long before the token expires; for a token with less than twice this left, at half of the rest.
  public static let expiryNotice = Duration.seconds(60)
  /// `auth.refresh` of one connection: a client requests a token at most once in ten seconds.
  public static let refreshesPerSecond = 0.5
  public static let refreshBurst = 10.0
  /// A token counts as valid this long after `exp`, as when it was verified.
  public static let expiryLeewayMilliseconds: Int64 = 30_000
  /// Sessions in all, and of one user.
  public static let sessions = 20_000
  public static let sessionsPerUser = 32
  /// Messages a second on one connection, and how many at once (a replay is up to 256); beyond that it is closed with 1008.
  public static let messagesPerSecond = 100.0
  public static let messageBurst = 600.0
  /// Bytes a second on one connection, and how many at once.
  public static let bytesPerSecond = 262_144.0
  public static let byteBurst = 1_048_576.0
  /// Bytes of the key that signs wake tokens.
  public static let wakeKeyBytes = 32
  /// A session by wake token that no call holds open ends this long after its `hello`, or when the token expires.
  public static let wakeSession = Duration.seconds(60)
  /// Calls whose wake tokens may be used again; beyond that the oldest are forgotten.
  public static let wokenCalls = 20_000
  /// Answers to HTTP requests that are awaited from control.
  public static let pendingHTTP = 1_024
  /// Known other nodes, and the bytes of a node's address, as `AppProtocol` reads it.
  public static let nodes = 5_000
  public static let nodeURLBytes = 2_048
  /// Bytes of `n1.1790000000000`.
  public static let incarnationBytes = 63 + 1 + 20
  /// A node that began less than this ago may live although it has not been reported yet: five times the renewal of a lease.
  static let unknownNode = Duration.seconds(10)
  /// After a break, and in a drain, sessions come or go at this rate per second and node, all of them within this time.
  public static let spreadPerSecond = 2_000
  public static let spread = Duration.seconds(60)
  /// A drain closes sessions each time this has passed.
  static let drainStep = Duration.milliseconds(50)
  /// `err.retryMs` where no other node can be named: from this to twice this. `retryWake`: for a wake whose node is not known
  /// yet.
  public static let retry = Duration.seconds(5)
  public static let retryWake = Duration.seconds(1)
  /// A wake token whose node is dead is accepted until this long after its expiry, by the wall clock: clocks of nodes may differ
  /// by as much. It opens only a session that is notified of the end of its call.
  public static let deadWake = Duration.seconds(3_600)
  /// A session that a wake token began is known by its resume token for this long: more than the longest call.
  public static let wakeResume = Duration.seconds(5 * 3_600)
  /// Bytes of a resume token of a cluster, unless `sub` and `dev` alone are longer. Accounts that do not fit are left out.
  public static let resumeTokenBytes = 1_024
  /// `err.retryMs` for a token whose key is unknown: from this to twice this.
  static let retryKeys = Duration.seconds(3)
  /// Values of `kid` that no key had, and how long each is remembered: after that, keys are fetched for it again.
  static let unknownKeys = 256
  static let unknownKeyTime = Duration.seconds(60)
  /// Silence after which a socket is pinged, in eighths of a heartbeat; and the grid of its timer, as parts of a heartbeat.
  static let pingAfterEighths = 9
  static let heartbeatGrid: Int64 = 64
}
