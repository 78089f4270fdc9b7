// The named limits of this module: every bound on a queue, table or message.
import TrunklineBytes

enum Limits {
  /// Calls of a group; the gateway has the same limit.
  static let groupedCalls = 5
  /// Numbered messages kept until acked (docs/reference/protocol.md, Frames); beyond it a fresh session starts.
  static let outboxMessages = 256
  /// Requests without an answer.
  static let openRequests = 256
  /// Longest text frame that is accepted.
  static let frameBytes = 65_536
  /// Highest generation of an offer; each restart adds one.
  static let generations = 1_000_000
  /// Longest heartbeat that is accepted from a `welcome`.
  static let heartbeatLongest = Duration.seconds(600)
  static let reconnectFirst = Duration.milliseconds(200)
  static let reconnectLongest = Duration.seconds(5)
  /// A session resumes at its node's own address for this number of tries, or this time, before it uses the general one
  /// (docs/reference/protocol.md, Many nodes).
  static let homeTries = 2
  static let homeTime = Duration.seconds(3)
  /// Longest wait for a `spreadMs`, `afterMs` or `retryMs`.
  static let spreadLongest = Duration.seconds(60)
  /// Redirections to another node that are followed without a `welcome` between them.
  static let pointers = 4
  static let addressBytes = 2_048
  /// Sessions at further nodes; and how long one without a call waits until the gateway has received all messages.
  static let furtherSessions = 8
  static let furtherFarewell = Duration.seconds(15)
  /// A connected call without a session and without media ends.
  static let strayTime = Duration.seconds(30)
  /// A received message is acked within this time (docs/reference/protocol.md: 200 ms).
  static let ackDelay = Duration.milliseconds(100)
  /// Without a `welcome` by then the socket is closed.
  static let welcomeDeadline = Duration.seconds(10)
  /// From the report of a pushed call, and from its tap, to a message from the gateway (docs/reference/protocol.md, Parking and
  /// push).
  static let snapshotTime = Duration.seconds(15)
  static let snapshotTimeAfterTap = Duration.seconds(20)
  /// How long a call rings while its gateway cannot be reached: the phone would not receive the caller's cancel.
  static let ringsAloneTime = Duration.seconds(60)
  /// From a fulfilled unhold: audio runs after this time, with or without `didActivate`.
  static let activationTime = Duration.seconds(1)
  /// Calls kept, including ended ones: a late push must find them.
  static let rememberedCalls = 32
  /// The phone's own deadline is this long before the system's (docs/reference/protocol.md, The media gate).
  static let answerMargin = Duration.seconds(5)
  /// From the tap: the gateway's deadline for media (docs/reference/protocol.md, The media gate), and the time that a new attempt
  /// needs before it.
  static let gateTime = Duration.seconds(10)
  static let restartTime = Duration.seconds(3)
  /// Of several mutes and unmutes within this time only the last is sent.
  static let muteBurst = Duration.milliseconds(300)
  /// Retry time after an answer without a directory; and the limit of directory parts that are kept until all have arrived.
  static let directoryRetry = Duration.seconds(5)
  static let directoryParts = 100_000
  /// Least time between two calls of the app's token function; after a call without a usable token the wait starts at this value
  /// and doubles each time.
  static let tokenFloor = Duration.seconds(10)
  /// If the backend returns the present token, the wait is at most this time for this number of attempts. At 10 s each, the
  /// least, they cover the 90 s from the announcement to the end of the leeway.
  static let tokenStaleRetry = Duration.seconds(20)
  static let tokenStaleTries = 9
  /// A session that was online for this time is stable: the waits between attempts start at the shortest again.
  static let stableTime = Duration.seconds(10)
  /// With a call the wait doubles at most this many times: to 0.8 s.
  static let reconnectStepsInCall = 2
  static let tokenRetryLongest = Duration.seconds(300)
  /// TURN: servers used for one path, and connections to them, including those to redirection targets.
  static let relayServers = 6
  static let relayConnections = 16
  /// Paths without a relay start this long before the first server, and each server this long before the next.
  static let relayHeadStart = Duration.milliseconds(400)
  static let relayStagger = Duration.milliseconds(300)
  /// From the connection attempt to the allocation.
  static let relaySetup = Duration.seconds(8)
  /// How long an allocation is kept after media has another path.
  static let relayFarewell = Duration.seconds(5)
  /// After this silence of the gateway in a connected call, a check is sent on the socket and on all paths; after the second time
  /// media restarts. That time is shorter if a stream broke off than in a pause, in which the gateway sends every 0.4 s, or on
  /// hold, when its reports are at most 1.5 s apart.
  static let mediaSilence = Duration.milliseconds(1_500)
  static let mediaAnswer = Duration.seconds(1)
  static let mediaAnswerInPause = Duration.milliseconds(2_500)
  /// Packets per second that count as a stream.
  static let streamPackets = 10
  /// A timer that is late by this time proves nothing about a heartbeat.
  static let timerLateness = Duration.seconds(1)
  /// `socketAnswer`: time limit for the answer of a checked socket. `connectTime`: time limit of a new socket before the next is
  /// tried; it doubles each time.
  static let socketAnswer = Duration.seconds(1)
  static let connectTime = Duration.seconds(3)
  /// When a connection attempt has not opened after this time, a second one starts over another interface.
  static let alternateDelay = Duration.seconds(1)
  static let connectTimeLongest = Duration.seconds(12)
  /// Interval of a timer whose deadline stays in the past.
  static let stuckDeadline = Duration.milliseconds(10)
  /// The least time between two checks of a handshake.
  static let handshakePause = Duration.milliseconds(1)
  /// The gateway ends a test call 5 s after it was connected (docs/reference/protocol.md, Test calls).
  static let testCallTime = Duration.seconds(20)
  /// RTCP reports are sent after half to one and a half of this time (RFC 3550 §6.3.1), so that a loss is reported quickly.
  static let reportInterval = Duration.seconds(2)
  static let reportBytes = 256
  /// Size of a sent RTP packet: 20 ms of any codec, header and tag.
  static let packetBytes = 1_024
}
