// The named limits of this module; every bound on a queue, table or message stands here.
import Bytes

enum Limits {
  /// Calls of a group, as the gateway has it.
  static let groupedCalls = 5
  /// Numbered messages kept until acked (docs/reference/protocol.md, Frames); beyond it the session starts afresh.
  static let outboxMessages = 256
  /// Requests without an answer.
  static let openRequests = 256
  /// Longest text frame taken.
  static let frameBytes = 65_536
  /// Of an offer; a restart counts one up.
  static let generations = 1_000_000
  /// Longest heartbeat taken from a `welcome`.
  static let heartbeatLongest = Duration.seconds(600)
  static let reconnectFirst = Duration.milliseconds(200)
  static let reconnectLongest = Duration.seconds(5)
  /// A session resumes at its node's own address so often, or so long, before the general one (docs/reference/protocol.md, Many nodes).
  static let homeTries = 2
  static let homeTime = Duration.seconds(3)
  /// Longest `spreadMs`, `afterMs` and `retryMs` that is waited.
  static let spreadLongest = Duration.seconds(60)
  /// Words that name another node, followed without a `welcome` between them.
  static let pointers = 4
  static let addressBytes = 2_048
  /// Sessions at further nodes; and how long one without a call waits until the gateway has all that was said.
  static let furtherSessions = 8
  static let furtherFarewell = Duration.seconds(15)
  /// A connected call without a session and without media ends.
  static let strayTime = Duration.seconds(30)
  /// A received message is acked within this time (docs/reference/protocol.md: 200 ms).
  static let ackDelay = Duration.milliseconds(100)
  /// No `welcome` by then: the socket is given up.
  static let welcomeDeadline = Duration.seconds(10)
  /// From the report of a pushed call, and from its tap, to a word of the gateway (docs/reference/protocol.md, Parking and push).
  static let snapshotTime = Duration.seconds(15)
  static let snapshotTimeAfterTap = Duration.seconds(20)
  /// A call rings on for so long while its gateway cannot be reached: that the caller has given up would not be heard.
  static let ringsAloneTime = Duration.seconds(60)
  /// From a fulfilled unhold: by then audio runs, with `didActivate` or without.
  static let activationTime = Duration.seconds(1)
  /// Calls kept, ended ones too: a late push must find them.
  static let rememberedCalls = 32
  /// The phone's own deadline lies so long before the system's (docs/reference/protocol.md, The media gate).
  static let answerMargin = Duration.seconds(5)
  /// From the tap: the gateway's deadline for media (docs/reference/protocol.md, The media gate), and what a new attempt needs of it.
  static let gateTime = Duration.seconds(10)
  static let restartTime = Duration.seconds(3)
  /// Mute and unmute within this time count as the last.
  static let muteBurst = Duration.milliseconds(300)
  /// After an answer of the gateway that says nothing; and parts of one directory that are kept until all are here.
  static let directoryRetry = Duration.seconds(5)
  static let directoryParts = 100_000
  /// The app's token function is asked once in so long, and again after so long where it gave none that helps, then after twice that, and so on.
  static let tokenFloor = Duration.seconds(10)
  /// A backend that gives the token that there is already is asked so often in so long: 90 s from the announcement to the end of the leeway, 10 s apart
  /// at least.
  static let tokenStaleRetry = Duration.seconds(20)
  static let tokenStaleTries = 9
  /// A session that was online for so long is stable: after it the waits between attempts begin at the shortest again.
  static let stableTime = Duration.seconds(10)
  /// With a call the wait doubles so often at most: to 0.8 s.
  static let reconnectStepsInCall = 2
  static let tokenRetryLongest = Duration.seconds(300)
  /// TURN: servers that are asked for one path, and the connections to them, those to which a server points included.
  static let relayServers = 6
  static let relayConnections = 16
  /// Paths without a relay have so long before a server is asked, and each server before the next one.
  static let relayHeadStart = Duration.milliseconds(400)
  static let relayStagger = Duration.milliseconds(300)
  /// From the connection attempt to the allocation.
  static let relaySetup = Duration.seconds(8)
  /// An allocation is kept so long after media has another path.
  static let relayFarewell = Duration.seconds(5)
  /// Nothing from the gateway for so long in a connected call: it is asked, on the socket and on all paths; and for so long more: media is recreated,
  /// sooner where a stream broke off than in a pause, in which the gateway sends every 0.4 s, or on hold, when its reports are 1.5 s apart at most.
  static let mediaSilence = Duration.milliseconds(1_500)
  static let mediaAnswer = Duration.seconds(1)
  static let mediaAnswerInPause = Duration.milliseconds(2_500)
  /// Packets in a second that are a stream.
  static let streamPackets = 10
  /// A timer that is so late has nothing to say of a heartbeat.
  static let timerLateness = Duration.seconds(1)
  /// A socket that was asked has so long to answer. A new one has so long to come about before the next is tried, then twice that, and so on.
  static let socketAnswer = Duration.seconds(1)
  static let connectTime = Duration.seconds(3)
  /// A connection attempt that has not opened by then has a second one beside it, over another interface.
  static let alternateDelay = Duration.seconds(1)
  static let connectTimeLongest = Duration.seconds(12)
  /// How often a timer runs whose deadline stays in the past.
  static let stuckDeadline = Duration.milliseconds(10)
  /// The least time until a handshake is looked at again.
  static let handshakePause = Duration.milliseconds(1)
  /// RTCP reports, half to one and a half of it (RFC 3550 §6.3.1); a loss is told soon enough for the next words.
  /// The gateway ends a test call 5 s after it was connected (docs/reference/protocol.md, Test calls).
  static let testCallTime = Duration.seconds(20)
  static let reportInterval = Duration.seconds(2)
  static let reportBytes = 256
  /// An RTP packet that is sent: 20 ms of any codec, header and tag.
  static let packetBytes = 1_024
}
