import CallModel

// The named limits of this module: every bound on a queue, table or message.
enum Limits {
  /// Devices of one user that ring together; later ones are notified that the call is gone.
  static let devicesPerCall = 16
  /// Devices that are notified of a call's end: 16 of its user and of each user that it was diverted to.
  static let terminalsPerCall = 16 * (diversions + 1)
  /// Users for whom one call may ring at once.
  static let usersPerCall = 16
  /// Ended calls that are remembered; the oldest are forgotten first.
  static let tombstones = 20_000
  /// `call.gone` messages after one `welcome`: half of the numbered messages that a session keeps.
  static let goneInWelcome = 128
  /// Calls of other nodes whose end is queried at a time, and devices that wait for the answer to one query.
  static let askedTombstones = 1_000
  static let tombstoneReaders = 16
  /// Devices whose last connection is remembered; those without a live call are forgotten first.
  static let devices = 50_000
  /// A connected device that sent neither `call.ringing` nor `call.unavailable` for this long after its offer gets a push.
  static let ringingAfterOffer = Duration.seconds(3)
  /// How often, and at which interval, a device at another node is woken if it cannot get a push.
  static let wakes = 5
  static let wakeInterval = Duration.seconds(2)
  /// How long a call waits for a device whose socket was lost: a client retries every 5 s at the latest (its back-off).
  static let reconnect = Duration.seconds(5)
  /// How long after the ring deadline a wake token may first be used.
  static let wakeAfterRing = Duration.seconds(30)
  /// Calls of a group: as many as one mixer accepts.
  static let groupedCalls = 5
  /// Test calls: of one user an hour; the part of a node's calls (1/50) that they may be; the part (1/4) that must be free for
  /// one; the shortest measurement and the longest duration of one.
  static let testCallsPerHour = 20
  static let testCallsPart = 50
  static let testCallsSpare = 4
  static let testCallLeast = Duration.seconds(4)
  static let testCallMost = Duration.seconds(15)
  /// Digits that wait for the end of a pause.
  static let pendingDigits = 256
  /// Diversion values of an INVITE; more count as a loop.
  static let diversions = 3
  /// Recording files of one call.
  static let recordingsPerCall = 16
  /// Transfers in a call's record.
  static let recordedTransfers = 8
  /// Characters of a number or name that go into messages and records.
  static let textCharacters = 128
  /// Bytes of an emergency call's location, which the INVITE holds beside the offer.
  static let locationBytes = 8_192
  /// The longest believable time between a tap and its `call.answer`.
  static let answerAgeMilliseconds = 0...60_000
  /// A `timeoutMs` outside this range is ignored.
  static let answerTimeoutMilliseconds = 0...600_000
  /// Answers of the operator's server about users that are kept, calls that wait for one, and the pause after a query without an
  /// answer.
  static let userAnswersHeld = 100_000
  static let userQuestionsWaiting = 1_000
  static let userRetry = Duration.seconds(5)
  /// How often calls of one user's apps may wait for such an answer, and users whose rate is kept: a rate is forgotten after 5 s
  /// of rest.
  static let userQuestionsPerSecond = 2.0
  static let userQuestionBurst = 10.0
  static let userQuestionRates = 50_000
  /// Between two steps of the check of all grants after a reload.
  static let grantReviewPause = Duration.milliseconds(5)
}
