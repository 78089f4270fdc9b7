// The named limits of this module; every bound on a queue, table or message stands here.
enum Limits {
  /// Devices of one user that ring together; later ones are told that the call is gone.
  static let devicesPerCall = 16
  /// Devices that are told of a call's end: those of each user that it was diverted to.
  static let terminalsPerCall = 16 * (diversions + 1)
  /// A call may ring for as many users at once.
  static let usersPerCall = 16
  /// Ended calls that are remembered; the oldest are forgotten first.
  static let tombstones = 20_000
  /// `call.gone` behind one `welcome`: half of the numbered messages that a session keeps.
  static let goneInWelcome = 128
  /// Calls of other nodes whose end is asked for at a time, and devices that wait for one.
  static let askedTombstones = 1_000
  static let tombstoneReaders = 16
  /// Devices whose last connection is remembered; those without a live call are forgotten first.
  static let devices = 50_000
  /// A connected device that said neither `call.ringing` nor `call.unavailable` so long after its offer is pushed to.
  static let ringingAfterOffer = Duration.seconds(3)
  /// A device at another node that cannot be pushed to is woken so often, at this interval.
  static let wakes = 5
  static let wakeInterval = Duration.seconds(2)
  /// A client tries again every 5 s at the latest (its backoff): so long a device that had a socket is waited for.
  static let reconnect = Duration.seconds(5)
  /// A wake token's first use must come before the ring deadline and this.
  static let wakeAfterRing = Duration.seconds(30)
  /// Calls of a group; as many as one mixer takes.
  static let groupedCalls = 5
  /// Test calls: of one user an hour; as a part of the calls that a node takes, and the part of those that they leave free; how long one is
  /// measured at least, and how long it lasts at most.
  static let testCallsPerHour = 20
  static let testCallsPart = 50
  static let testCallsSpare = 4
  static let testCallLeast = Duration.seconds(4)
  static let testCallMost = Duration.seconds(15)
  /// Digits that wait behind a pause.
  static let pendingDigits = 256
  /// Diversion values of an INVITE; more are a loop.
  static let diversions = 3
  /// A stream's URL.
  static let urlBytes = 2_048
  /// Files of one call's audio.
  static let recordingsPerCall = 16
  /// Transfers in a call's record.
  static let recordedTransfers = 8
  /// Characters of a number or name that go into messages and records.
  static let textCharacters = 128
  /// Of an emergency call's location; the INVITE holds it beside the offer.
  static let locationBytes = 8_192
  /// The longest believable time between a tap and its `call.answer`.
  static let answerAgeMilliseconds = 0...60_000
  /// What is believed of an app's `stats`: round trip and jitter, bytes, concealed audio of a call, MOS, a codec's name.
  static let statsMilliseconds = 0.0...60_000
  static let statsBytes: ClosedRange<Int64> = 0...1_000_000_000_000
  static let concealedMilliseconds = 0.0...86_400_000
  static let opinionScore = 1.0...5
  static let codecCharacters = 1...64
  /// `timeoutMs` beyond this is no bound.
  static let answerTimeoutMilliseconds = 0...600_000
  /// Of a table of imported numbers: all, of one user, digits of one (E.164), bytes of a user's id (as long as `sub` may be).
  static let tableNumbers = 2_000_000
  static let tableNumbersPerUser = 100
  static let tableDigits = 15
  static let tableUserBytes = 256
  /// Users and numbers of login tokens.
  static let grantedUsers = 200_000
  static let tableGrantedNumbers = 1_000_000
  /// Answers of the operator's server about users that are remembered, calls that wait for one, and the pause after a question
  /// without an answer.
  static let userAnswersHeld = 100_000
  static let userQuestionsWaiting = 1_000
  static let userRetry = Duration.seconds(5)
  /// How often calls of one user's apps may wait for such an answer, and users whose rate is remembered: a rate is forgotten after 5 s of rest.
  static let userQuestionsPerSecond = 2.0
  static let userQuestionBurst = 10.0
  static let userQuestionRates = 50_000
  /// What no token has named for so long gives way; its last appearance is stored again when it moved by more than the other.
  static let grantSeconds: Int64 = 30 * 86_400
  static let grantSeenSeconds: Int64 = 3_600
}
