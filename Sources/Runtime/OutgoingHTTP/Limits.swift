// The named limits of this module, with every bound on a queue, table or message.
enum Limits {
  /// Groups of connections kept at one time; the one unused the longest is closed for a new one.
  static let groups = 64
  /// Bytes of an answer's body that are kept.
  static let answerBytes = 16_384
  /// TCP connections of one group: a second one carries requests that the first cannot (its streams are all in use, or it is
  /// closing).
  static let connectionsPerGroup = 4
  /// Streams of one connection, if the server allows as many.
  static let streams = 1_000
  static let connectTime = Duration.seconds(5)
  /// TCP probes an idle connection's server after the first time, then at intervals of the second.
  static let keepAliveIdleSeconds = 30
  static let keepAliveIntervalSeconds = 10
  /// A group without transfers is closed after this long; push services want connections kept open for hours.
  static let idleGroup = Duration.seconds(6 * 3600)
  /// Messages waiting for the push thread.
  static let mailbox = 32_768
  /// Questions to a verifier that wait or are under way; a further one is answered with nil at once.
  static let questions = 512
  static let messagesPerStep = 512
  /// The timer for the deadlines of thousands of pushes fires no more often than this.
  static let timerPause = Duration.milliseconds(20)
  /// How long a webhook may take to answer: after the call's deadline the answer is used for the caller's name only.
  static let webhookTime = Duration.seconds(10)
  static let userWebhookTime = Duration.seconds(2)
  static let webhookDeadline = Duration.seconds(1)
  static let webhookMailbox = 4_096
  /// A whole fetch of keys; messages to its thread, each of which is complete; and how soon keys are delivered again to a
  /// receiver whose queue was full.
  static let keysTime = Duration.seconds(10)
  static let keysMailbox = 64
  static let keysGivenAgain = Duration.seconds(1)
  /// How long an event's receiver may take to answer; and events read at once.
  static let eventTime = Duration.seconds(15)
  static let eventsPerRead = 256
  /// The longest Retry-After of a receiver that is obeyed.
  static let eventRetryAfter = Duration.seconds(3_600)
  /// How often a webhook's position is written: a killed process sends the events since then again.
  static let eventState = Duration.seconds(1)
}
